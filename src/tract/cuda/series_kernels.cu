#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/prob_in_registers.hpp"

namespace cingulum {
namespace {

template <Getter getter>
using Any = cuda::AnyShape<getter, field_of_harmonics>;

// prob from degree 8 on the sphere of 321 directions without angular weight: 45 coefficients, 93 orbits.
template <std::uint32_t given_threads, std::uint32_t given_blocks>
struct ProbDegree8 {
  using Steps = kernel::ProbOnMirroredSeries<8, 3>;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = given_blocks;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = SlabUse::record;
  static constexpr std::uint32_t rows = 12;
  static constexpr std::uint32_t coefficients = 45;

  static bool matches(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == Getter::prob && input.harmonics.mirror != 0u &&
           input.harmonics.degree == 8u && input.sphere.rows == rows && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any<Getter::prob>::fix(input);
    input.sphere.rows = rows;
    input.sphere.half = 1u;
    input.harmonics.mirror = 1u;
    input.harmonics.degree = 8u;
    input.harmonics.coefficients = coefficients;
    input.field.channels = coefficients;
    input.harmonics.class_sizes[0] = 15u;
    input.harmonics.class_sizes[1] = 10u;
    input.harmonics.class_sizes[2] = 10u;
    input.harmonics.class_sizes[3] = 10u;
    input.plan.angular_weight = 0.0f;
  }
  static constexpr std::uint32_t matrix_words = numerics::lane_count * coefficients * rows / 4u;
  static std::uint32_t table_words(const TrackingInput&) {
    return matrix_words + numerics::lane_count * (3u * rows + 1u);
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.harmonics.matrix = cuda::share(input.harmonics.matrix, matrix_words, free);
    input.sphere.x = cuda::share(input.sphere.x, numerics::lane_count * rows, free);
    input.sphere.y = cuda::share(input.sphere.y, numerics::lane_count * rows, free);
    input.sphere.z = cuda::share(input.sphere.z, numerics::lane_count * rows, free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
  }
};

}  // namespace

TrackKernelPair series_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_harmonics) return {};
  const TrackKernel seeds = cuda::seeds_entry<Any<Getter::closest>>();
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob:
      if (!any_shape && ProbDegree8<128, 5>::matches(input)) return {seeds, cuda::halves_entry<ProbDegree8<128, 5>>()};
      return {seeds, cuda::halves_entry<Any<Getter::prob>>()};
    case Getter::det: return {seeds, cuda::halves_entry<Any<Getter::det>>()};
    case Getter::closest: return {seeds, cuda::halves_entry<Any<Getter::closest>>()};
    default: return {};
  }
}

}  // namespace cingulum
