#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/prob_in_registers.hpp"

namespace cingulum {
namespace {

template <Getter getter>
using Any = cuda::AnyShape<getter, field_of_harmonics>;

// From degree 8 on the sphere of 321 directions without angular weight: 45 coefficients, 93 orbits, in a record of 48
// numbers.
template <Getter given_getter, class GivenSteps, SlabUse given_use, std::uint32_t given_threads,
          std::uint32_t given_blocks>
struct Degree8 {
  using Steps = GivenSteps;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = given_blocks;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = given_use;
  static constexpr std::uint32_t rows = 12;
  static constexpr std::uint32_t coefficients = 45;
  static constexpr std::uint32_t stride = 48;
  static constexpr std::uint32_t neighbours = 6;
  static constexpr bool seeks_peaks = given_getter == Getter::closest;

  static bool matches(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == given_getter && input.harmonics.mirror != 0u &&
           input.harmonics.degree == 8u && input.field.stride == stride && input.sphere.rows == rows &&
           input.sphere.degree == neighbours && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any<given_getter>::fix(input);
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
  static constexpr std::uint32_t matrix_words = numerics::lane_count * coefficients * rows / 4u;
  static constexpr std::uint32_t sphere_words = numerics::lane_count * rows;
  static std::uint32_t table_words(const TrackingInput&) {
    return matrix_words + 3u * sphere_words + numerics::lane_count + (seeks_peaks ? neighbours * sphere_words : 0u);
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.harmonics.matrix = cuda::share(input.harmonics.matrix, matrix_words, free);
    input.sphere.x = cuda::share(input.sphere.x, sphere_words, free);
    input.sphere.y = cuda::share(input.sphere.y, sphere_words, free);
    input.sphere.z = cuda::share(input.sphere.z, sphere_words, free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
    if constexpr (seeks_peaks) {
      input.sphere.neighbours = cuda::share(input.sphere.neighbours, neighbours * sphere_words, free);
    }
  }
};

using Prob = Degree8<Getter::prob, kernel::ProbOnMirroredSeries<8, 3, 48>, SlabUse::record_and_corners, 128, 4>;
// Kept corners make nvcc unroll the series here (3720 instructions instead of 2792), and it was slower by a third.
using Det = Degree8<Getter::det, kernel::AnySteps, SlabUse::all, 128, 5>;
// Peaks need more of the memory than kept corners leave: with those it was slower by a quarter.
using Closest = Degree8<Getter::closest, kernel::AnySteps, SlabUse::all, 128, 4>;

template <class Shape>
TrackKernel halves_of(const TrackingInput& input, bool any_shape, const TrackKernel& otherwise) {
  return !any_shape && Shape::matches(input) ? cuda::halves_entry<Shape>() : otherwise;
}

}  // namespace

TrackKernelPair series_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_harmonics) return {};
  const TrackKernel seeds = cuda::seeds_entry<Any<Getter::closest>>();
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob: return {seeds, halves_of<Prob>(input, any_shape, cuda::halves_entry<Any<Getter::prob>>())};
    case Getter::det: return {seeds, halves_of<Det>(input, any_shape, cuda::halves_entry<Any<Getter::det>>())};
    case Getter::closest:
      return {seeds, halves_of<Closest>(input, any_shape, cuda::halves_entry<Any<Getter::closest>>())};
    default: return {};
  }
}

}  // namespace cingulum
