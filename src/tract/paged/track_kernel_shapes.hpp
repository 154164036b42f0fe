// The tracking kernels of CUDA by name, and what of each is known without a GPU: the getter and the field that it is
// for, the shape that it fixes, its steps, its threads and the memory that it takes. Free of vendors' headers: the .cu
// files of cuda/ make their kernels from it, track_kernel_choice.hpp chooses among them, and tests walk them on the
// host. Nothing here launches anything.
#pragma once

#include <array>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "tract/kernel/boot_in_registers.hpp"
#include "tract/kernel/kept_corners.hpp"
#include "tract/kernel/plan.hpp"
#include "tract/kernel/prob_in_registers.hpp"
#include "tract/kernel/ptt_in_registers.hpp"
#include "tract/kernel/steps.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum {

// `float16_...`: fields in half precision. `..._362`, `..._degree4`, `..._degree8` and `..._probes` fix a shape, the
// others take all sizes as they come.
enum class TrackKernelId : std::uint32_t {
  none,
  boot,
  amplitudes_prob,
  amplitudes_det,
  amplitudes_closest,
  amplitudes_ptt,
  series_prob,
  series_det,
  series_closest,
  series_ptt,
  float16_amplitudes_prob,
  float16_amplitudes_det,
  float16_amplitudes_closest,
  float16_amplitudes_ptt,
  float16_series_prob,
  float16_series_det,
  float16_series_closest,
  float16_series_ptt,
  tensors,
  peaks,
  boot_degree4,
  amplitudes_prob_362,
  amplitudes_det_362,
  amplitudes_ptt_probes,
  series_prob_degree8,
  series_det_degree8,
  series_closest_degree8,
  bricks,  // every getter and kind of field, where only a brick of the field is on the device
};
constexpr std::uint32_t track_kernel_count = static_cast<std::uint32_t>(TrackKernelId::bricks) + 1u;

// What a kernel has of its slab: all of it, the record, nothing, and behind it the records of kernel/kept_corners.hpp;
// or what kernel/ptt_in_registers.hpp has per streamline.
enum class SlabUse { all, all_and_corners, record_and_corners, corners, probes };

struct TrackKernelFacts {
  Getter getter = Getter::boot;
  std::uint32_t kind = field_of_bootstrap;
  bool is_float16 = false;
  std::uint32_t threads = 128;  // of a block, at most
  std::uint32_t blocks = 4;     // on a multiprocessor, for which its registers suffice
  bool shared_slabs = false;    // cannot have slabs in global memory
  SlabUse slab_use = SlabUse::all;
  std::uint32_t walks = 1;  // halves that a warp tracks at a time
};

[[nodiscard]] constexpr TrackKernelFacts track_kernel_facts(TrackKernelId id) {
  using enum TrackKernelId;
  constexpr std::uint32_t amplitudes = field_of_amplitudes, series = field_of_harmonics;
  switch (id) {
    case none: return {.threads = 0, .blocks = 0};
    case boot: return {Getter::boot, field_of_bootstrap};
    case amplitudes_prob: return {Getter::prob, amplitudes};
    case amplitudes_det: return {Getter::det, amplitudes};
    case amplitudes_closest: return {Getter::closest, amplitudes};
    case amplitudes_ptt: return {Getter::ptt, amplitudes};
    case series_prob: return {Getter::prob, series};
    case series_det: return {Getter::det, series};
    case series_closest: return {Getter::closest, series};
    case series_ptt: return {Getter::ptt, series};
    case float16_amplitudes_prob: return {Getter::prob, amplitudes, true};
    case float16_amplitudes_det: return {Getter::det, amplitudes, true};
    case float16_amplitudes_closest: return {Getter::closest, amplitudes, true};
    case float16_amplitudes_ptt: return {Getter::ptt, amplitudes, true};
    case float16_series_prob: return {Getter::prob, series, true};
    case float16_series_det: return {Getter::det, series, true};
    case float16_series_closest: return {Getter::closest, series, true};
    case float16_series_ptt: return {Getter::ptt, series, true};
    case tensors: return {Getter::tensor, field_of_tensors};
    case peaks: return {Getter::closest, field_of_peaks};
    case boot_degree4: return {Getter::boot, field_of_bootstrap, false, 384, 2, true};
    // The corners of a warp take 12 kilobytes: 18 warps fill the memory of a multiprocessor, 96 registers suffice.
    case amplitudes_prob_362: return {Getter::prob, amplitudes, false, 576, 1, true, SlabUse::corners};
    case amplitudes_det_362: return {Getter::det, amplitudes, false, 512, 1, true, SlabUse::all_and_corners};
    // 20 warps of 96 registers on a multiprocessor.
    case amplitudes_ptt_probes:
      return {Getter::ptt, amplitudes, false, 640, 1, true, SlabUse::probes, kernel::walks_of_a_warp};
    case series_prob_degree8: return {Getter::prob, series, false, 128, 4, true, SlabUse::record_and_corners};
    // Kept corners make nvcc unroll the series here (3720 instructions instead of 2792), and it was slower by a third.
    case series_det_degree8: return {Getter::det, series, false, 128, 5, true};
    // Peaks need more of the memory than kept corners leave: with those it was slower by a quarter.
    case series_closest_degree8: return {Getter::closest, series, false, 128, 4, true};
    // One kernel decides everything while it runs: bricks are for fields that fit no other way, and wait for copies.
    case bricks: return {.threads = 128, .blocks = 3};
  }
  return {};
}

// Whether there is a kernel of this name that finds initial directions: peaks are sought alike for all getters.
[[nodiscard]] constexpr bool finds_directions(TrackKernelId id) {
  using enum TrackKernelId;
  return id == boot || id == amplitudes_closest || id == series_closest || id == float16_amplitudes_closest ||
         id == float16_series_closest || id == tensors || id == peaks;
}

// The shapes that kernels fix. matches(): whether an input of the right getter and kind of field has it; fix_shape()
// writes it down once more where the compiler sees it, which changes no input that matches; table_words(): of shared
// memory that a block's tables take.

// Amplitudes on the half of repulsion724, 362 directions, without angular weight.
struct Amplitudes362 {
  static constexpr std::uint32_t directions = 362;
  static constexpr std::uint32_t stride = 368;
  static constexpr std::uint32_t rows = 12;

  static constexpr bool matches(const TrackingInput& input) {
    return input.field.channels == directions && input.field.stride == stride && input.sphere.is_hemisphere != 0u &&
           input.plan.angular_weight == 0.0f;
  }
  static CGL_HD constexpr void fix_shape(TrackingInput& input) {
    input.field.channels = directions;
    input.field.stride = stride;
    input.sphere.rows = rows;
    input.sphere.is_hemisphere = 1u;
    input.plan.angular_weight = 0.0f;
  }
  static constexpr std::uint32_t table_words(const TrackingInput&) { return numerics::lane_count * (3u * rows + 1u); }
};

// The bootstrap of degree 4 on the sphere of 321 directions, which is the default: 15 coefficients, 93 orbits in three
// rows of lanes.
struct BootstrapDegree4 {
  static constexpr std::uint32_t rows = 12;
  static constexpr std::uint32_t coefficients = 15;
  static constexpr std::uint32_t neighbours = 6;
  static constexpr std::uint32_t matrix_words = numerics::lane_count * coefficients * rows / 4u;

  static constexpr bool matches(const TrackingInput& input) {
    return input.harmonics.mirror != 0u && input.harmonics.degree == 4u && input.sphere.rows == rows &&
           input.sphere.degree == neighbours && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD constexpr void fix_shape(TrackingInput& input) {
    input.sphere.rows = rows;
    input.sphere.is_hemisphere = 1u;
    input.sphere.degree = neighbours;
    input.harmonics.mirror = 1u;
    input.harmonics.degree = 4u;
    input.harmonics.coefficients = coefficients;
    input.harmonics.class_sizes[0] = 6u;
    input.harmonics.class_sizes[1] = 3u;
    input.harmonics.class_sizes[2] = 3u;
    input.harmonics.class_sizes[3] = 3u;
    input.plan.angular_weight = 0.0f;
  }
  static CGL_HD constexpr std::uint32_t gradient_words(const TrackingInput& input) {
    return numerics::lane_count * coefficients * input.bootstrap.rows;
  }
  static constexpr std::uint32_t table_words(const TrackingInput& input) {
    return matrix_words + 2u * gradient_words(input) + numerics::lane_count;
  }
};

// From degree 8 on the sphere of 321 directions without angular weight: 45 coefficients, 93 orbits, in a record of 48
// numbers.
template <bool seeks_peaks>
struct SeriesDegree8 {
  static constexpr std::uint32_t rows = 12;
  static constexpr std::uint32_t coefficients = 45;
  static constexpr std::uint32_t stride = 48;
  static constexpr std::uint32_t neighbours = 6;
  static constexpr std::uint32_t matrix_words = numerics::lane_count * coefficients * rows / 4u;
  static constexpr std::uint32_t sphere_words = numerics::lane_count * rows;

  static constexpr bool matches(const TrackingInput& input) {
    return input.harmonics.mirror != 0u && input.harmonics.degree == 8u && input.field.stride == stride &&
           input.sphere.rows == rows && input.sphere.degree == neighbours && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD constexpr void fix_shape(TrackingInput& input) {
    input.sphere.rows = rows;
    input.sphere.is_hemisphere = 1u;
    input.sphere.degree = neighbours;
    input.harmonics.mirror = 1u;
    input.harmonics.degree = 8u;
    input.harmonics.coefficients = coefficients;
    input.field.channels = coefficients;
    input.field.stride = stride;
    input.harmonics.class_sizes[0] = 15u;
    input.harmonics.class_sizes[1] = 10u;
    input.harmonics.class_sizes[2] = 10u;
    input.harmonics.class_sizes[3] = 10u;
    input.plan.angular_weight = 0.0f;
  }
  static constexpr std::uint32_t table_words(const TrackingInput&) {
    return matrix_words + 3u * sphere_words + numerics::lane_count + (seeks_peaks ? neighbours * sphere_words : 0u);
  }
};

// The shapes that kernel/ptt_in_registers.hpp takes.
struct ProbesInRegisters {
  static constexpr std::uint32_t arc_words = numerics::lane_count * kernel::probe_arc_words;

  static constexpr bool matches(const TrackingInput& input) { return kernel::probes_in_registers(input); }
  static CGL_HD constexpr void fix_shape(TrackingInput& input) {
    input.sphere.is_hemisphere = 1u;
    input.plan.ptt_probe_count = 1u;
    input.plan.ptt_exponent_is_one = 1u;
  }
  static constexpr std::uint32_t table_words(const TrackingInput& input) {
    return arc_words + kernel::packed_nearest_words + 4u * numerics::lane_count * input.sphere.rows;
  }
};

// How a kernel takes its steps (the policy `Steps` of kernel/walk.hpp). That of probes has a loop of its own.
template <TrackKernelId id>
struct StepsOfKernel {
  using Steps = kernel::AnySteps;
};
template <>
struct StepsOfKernel<TrackKernelId::boot_degree4> {
  using Steps = kernel::BootInRegisters<4>;
};
template <>
struct StepsOfKernel<TrackKernelId::amplitudes_prob_362> {
  using Steps = kernel::ProbOnAmplitudes<Amplitudes362::directions, Amplitudes362::stride>;
};
template <>
struct StepsOfKernel<TrackKernelId::amplitudes_det_362> {
  using Steps = kernel::StepsFromKept<Amplitudes362::directions, Amplitudes362::stride>;
};
template <>
struct StepsOfKernel<TrackKernelId::series_prob_degree8> {
  using Steps = kernel::ProbOnMirroredSeries<8, SeriesDegree8<false>::rows / 4u, SeriesDegree8<false>::stride>;
};

}  // namespace cingulum
