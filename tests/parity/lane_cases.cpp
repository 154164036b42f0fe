#include "parity/lane_cases.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "numerics/classify.hpp"

namespace cingulum::parity {
namespace {

using numerics::float_bits;

constexpr std::uint32_t unseen = 0x7fc00abcu;  // a NaN

class SlotSource {
 public:
  explicit SlotSource(std::uint64_t seed) : generator_(seed) {}

  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(generator_() % count); }
  double unit() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

  // Eight decades of sizes, so that every order of addition has its own bits.
  float rough() { return static_cast<float>(std::exp(18 * unit() - 9)); }
  float signed_rough() { return below(2) == 0u ? rough() : -rough(); }

  // The sizes of our spheres and of gradient tables, the borders of rows, and anything else.
  std::uint32_t slot_count() {
    constexpr std::uint32_t usual[] = {1, 31, 32, 33, 64, 65, 150, 181, 288, 321, 362, 384, 406, 501, 642, 700, 724};
    return below(2) == 0u ? usual[below(static_cast<std::uint32_t>(std::size(usual)))] : below(most_lane_slots + 1u);
  }

  float draw() {
    switch (below(6)) {
      case 0: return 0.0f;
      case 1: return 0x1.fffffep-1f;
      default: return static_cast<float>(below(1u << 24)) * 0x1p-24f;
    }
  }

 private:
  std::mt19937_64 generator_;
};

// Weights and values of one item. `kind` 0 is random; 1 to 7 are adversarial.
void fill_slots(SlotSource& source, std::uint32_t kind, bool weights, float* slots, std::uint32_t count) {
  const auto any = [&] { return weights ? source.rough() : source.signed_rough(); };
  const double zeros = source.unit();
  for (std::uint32_t i = 0; i < count; ++i) {
    switch (kind) {
      case 1: slots[i] = source.below(2) == 0u || weights ? 0.0f : -0.0f; break;
      case 2: slots[i] = static_cast<float>(source.below(3)) - (weights ? 0.0f : 1.0f); break;  // ties
      case 3: slots[i] = 0.0f; break;
      case 4: slots[i] = source.below(4) == 0u ? 0x1p24f : source.below(3) == 0u ? 0.0f : 1.0f; break;
      case 5: slots[i] = std::ldexp(1.0f, static_cast<int>(source.below(60)) - 30); break;
      case 6: slots[i] = source.below(5) == 0u ? any() : weights ? 0.0f : numerics::empty_slot_value * 0x1p-60f; break;
      case 7: slots[i] = 0x1.000002p0f; break;
      default: slots[i] = source.unit() < zeros ? 0.0f : any(); break;
    }
  }
  if (kind == 3 && count != 0u) slots[source.below(count)] = any();
}

template <class Case>
std::vector<std::uint32_t> make_slot_arguments(std::size_t count, std::uint64_t seed) {
  constexpr bool weights = std::is_same_v<Case, ChooseByWeightCase>;
  constexpr bool maximum = std::is_same_v<Case, MaximumCase>;
  SlotSource source(seed);
  std::vector<std::uint32_t> arguments(count * Case::in_words, unseen);
  for (std::size_t item = 0; item < count; ++item) {
    std::uint32_t* words = &arguments[item * Case::in_words];
    float slots[most_lane_slots];
    const std::uint32_t used = source.slot_count();
    fill_slots(source, item % 10 == 0 ? 1u + source.below(7) : 0u, weights, slots, used);
    if (maximum && item % 4 == 1) {
      for (std::uint32_t i = 0; i < used; ++i) {
        if (source.below(2) == 0u) slots[i] = numerics::empty_slot_value;
      }
    }
    words[0] = used;
    words[1] = float_bits(source.draw());
    std::transform(slots, slots + used, words + 2, [](float value) { return float_bits(value); });
  }
  return arguments;
}

std::vector<std::uint32_t> make_mirror_arguments(std::size_t count, std::uint64_t seed) {
  SlotSource source(seed);
  std::vector<std::uint32_t> arguments(count * MirrorSumCase::in_words, unseen);
  for (std::size_t item = 0; item < count; ++item) {
    std::uint32_t* words = &arguments[item * MirrorSumCase::in_words];
    words[0] = 2u * source.below(7);
    const int used = numerics::coefficient_count(static_cast<int>(words[0]), false);
    std::uint32_t* matrix = words + 1 + MirrorSumCase::most_coefficients;
    for (int i = 0; i < used; ++i) words[1 + i] = float_bits(source.below(8) == 0u ? 0.0f : source.signed_rough());
    for (int i = 0; i < 32 * used; ++i) matrix[i] = float_bits(source.below(8) == 0u ? -0.0f : source.signed_rough());
  }
  return arguments;
}

template <class Case>
constexpr auto arguments_of() {
  if constexpr (std::is_same_v<Case, MirrorSumCase>) {
    return &make_mirror_arguments;
  } else {
    return &make_slot_arguments<Case>;
  }
}

template <std::size_t... index>
std::vector<LaneCaseEntry> make_entries(std::index_sequence<index...>) {
  return {{std::tuple_element_t<index, LaneCases>::name, std::tuple_element_t<index, LaneCases>::in_words,
           std::tuple_element_t<index, LaneCases>::out_words,
           &run_lane_case_on_words<std::tuple_element_t<index, LaneCases>, numerics::PortableLanes>,
           avx2_lane_case(static_cast<int>(index)), arguments_of<std::tuple_element_t<index, LaneCases>>()}...};
}

}  // namespace

const std::vector<LaneCaseEntry>& lane_cases() {
  static const std::vector<LaneCaseEntry> entries = make_entries(std::make_index_sequence<lane_case_count>());
  return entries;
}

std::string wgsl_entry(const LaneCaseEntry& entry, WgslLanes lanes) {
  const std::string lane = lanes == WgslLanes::workgroup ? "local_invocation_index" : "subgroup_invocation_id";
  return R"(
struct CaseUniforms {
  count: u32,
  negative_zero: f32,
}

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> uniforms: CaseUniforms;

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin()" +
         lane + R"() lane: u32) {
  negative_zero = uniforms.negative_zero;
  lane_index = lane;
  let item = workgroup.x + 65535u * workgroup.y;
  if (item < uniforms.count) {
    lane_case_)" +
         entry.name + "(item * " + std::to_string(entry.in_words) + "u, item * " + std::to_string(entry.out_words) +
         R"(u);
  }
}
)";
}

}  // namespace cingulum::parity
