// The functions that 32 lanes compute together, as cases: words in, words out, the same on PortableLanes, Avx2Lanes, a
// CUDA warp and a WGSL workgroup or subgroup of 32. One item is computed by one warp, workgroup or host call; every
// lane writes what it sees, so that a result that only some lanes have shows.
//
// Layout: item i has its in_words words at input[i in_words], its out_words at output[i out_words].
//   lane_sum, maximum, choose_by_weight: word 0 number of slots (0 to 736), word 1 the draw u (float), words 2 and on
//   the
//     slots (float). The words past the slots hold a NaN, which must not be seen.
//   mirror_sum: word 0 the degree (even, 0 to 12), words 1 to 91 the coefficients sorted by class, then 91 rows of 32
//     matrix entries.
// Outputs: lane_sum 32 words, the sum as each lane has it; maximum 64, values then slots; choose_by_weight 32 slots;
//   mirror_sum 128, the four members of the 32 orbits in slot order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "numerics/choose.hpp"
#include "numerics/lane_sum.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/portable.hpp"

namespace cingulum::parity {

inline constexpr std::uint32_t most_lane_slots = 736;

// The cases see an item's words as floats (integers by their bits), because that is what lanes load and store. Rows of
// an item's slots:
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline auto slot_rows(const float* in) {
  const float* slots = in + 2;
  const std::uint32_t count = numerics::float_bits(in[0]);
  return [slots, count](std::uint32_t row) { return Lanes::load_row(slots, row, count); };
}

struct LaneSumCase {
  static constexpr const char* name = "lane_sum";
  static constexpr int in_words = 2 + most_lane_slots, out_words = 32;
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void run(const float* in, float* out) {
    const float sum = numerics::lane_sum<Lanes>(numerics::float_bits(in[0]), slot_rows<Lanes>(in));
    Lanes::store(out, Lanes::broadcast(sum));
  }
};

struct MaximumCase {
  static constexpr const char* name = "maximum";
  static constexpr int in_words = 2 + most_lane_slots, out_words = 64;
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void run(const float* in, float* out) {
    const numerics::SlotMaximum found = numerics::maximum<Lanes>(numerics::float_bits(in[0]), slot_rows<Lanes>(in));
    Lanes::store(out, Lanes::broadcast(found.value));
    Lanes::store(out + 32, Lanes::broadcast(numerics::bits_float(found.slot)));
  }
};

struct ChooseByWeightCase {
  static constexpr const char* name = "choose_by_weight";
  static constexpr int in_words = 2 + most_lane_slots, out_words = 32;
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void run(const float* in, float* out) {
    const std::uint32_t slot =
        numerics::choose_by_weight<Lanes>(numerics::float_bits(in[0]), in[1], slot_rows<Lanes>(in));
    Lanes::store(out, Lanes::broadcast(numerics::bits_float(slot)));
  }
};

struct MirrorSumCase {
  static constexpr const char* name = "mirror_sum";
  static constexpr int most_coefficients = 91;
  static constexpr int in_words = 1 + most_coefficients + 32 * most_coefficients, out_words = 128;
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void run(const float* in, float* out) {
    const auto degree = static_cast<int>(numerics::float_bits(in[0]));
    const numerics::MirrorMembers<Lanes> found =
        numerics::mirror_sum<Lanes>(numerics::mirror_class_sizes(degree), in + 1 + most_coefficients, in + 1);
    for (int member = 0; member < 4; ++member) {
      Lanes::store(out + 32 * member, found.member[member]);
    }
  }
};

using LaneCases = std::tuple<LaneSumCase, MaximumCase, ChooseByWeightCase, MirrorSumCase>;

inline constexpr int lane_case_count = static_cast<int>(std::tuple_size_v<LaneCases>);

// What harnesses use.

// A case on one item of words, on the host.
template <class Case, class Lanes>
void run_lane_case_on_words(const std::uint32_t* in, std::uint32_t* out) {
  float in_floats[Case::in_words];
  float out_floats[Case::out_words];
  std::memcpy(in_floats, in, sizeof(in_floats));
  Case::template run<Lanes>(in_floats, out_floats);
  std::memcpy(out, out_floats, sizeof(out_floats));
}

// A case without its type. Defined in lane_cases.cpp, in the order of LaneCases.
struct LaneCaseEntry {
  const char* name;
  int in_words;
  int out_words;
  void (*run_portable)(const std::uint32_t* in, std::uint32_t* out);
  // Null where lane_cases_avx2.cpp was compiled without -mavx2. The caller asks the CPU first.
  void (*run_avx2)(const std::uint32_t* in, std::uint32_t* out);
  // `count` items: random slots of many sizes and numbers, and every tenth an adversarial one: zeros of both signs,
  // ties, a single slot that is not zero, u next to 1, weights whose parallel scan is not monotone, empty slots.
  // No NaN, infinities or subnormal numbers among the slots, and no sum that overflows.
  std::vector<std::uint32_t> (*make_arguments)(std::size_t count, std::uint64_t seed);
};

const std::vector<LaneCaseEntry>& lane_cases();

enum class WgslLanes { workgroup, subgroup };

// Entry point `main` with the bindings input (0), output (1) and uniforms (2: count: u32, negative_zero: f32), one
// workgroup of 32 per item; dispatch at most 65535 items in x and further ones in y: item = x + 65535 y. To be put
// after all files of src/numerics/wgsl (with the lane file of that kind) and lane_cases.wgsl.
std::string wgsl_entry(const LaneCaseEntry& entry, WgslLanes lanes);

// Runs a case on the current CUDA device: `input` and `output` are device pointers, `stream` a cudaStream_t. Returns
// the cudaError_t of the launch. Defined in lane_cases.cu.
int launch_lane_case(int case_index, const std::uint32_t* input, std::uint32_t* output, std::uint32_t count,
                     void* stream);

// Defined in lane_cases_avx2.cpp.
using LaneCaseRun = void (*)(const std::uint32_t* in, std::uint32_t* out);
LaneCaseRun avx2_lane_case(int case_index);

}  // namespace cingulum::parity
