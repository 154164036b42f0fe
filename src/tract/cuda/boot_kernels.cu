#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/boot_in_registers.hpp"

namespace cingulum {
namespace {

using Any = cuda::AnyShape<Getter::boot, field_of_bootstrap>;

// Degree 4 on the sphere of 321 directions, which is the default: 15 coefficients, 93 orbits in three rows of lanes.
template <std::uint32_t given_threads, std::uint32_t given_blocks>
struct Degree4 {
  using Steps = kernel::BootInRegisters<4>;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = given_blocks;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = SlabUse::all;
  static constexpr std::uint32_t rows = 12;
  static constexpr std::uint32_t coefficients = 15;
  static constexpr std::uint32_t neighbours = 6;

  static bool matches(const TrackingInput& input) {
    return input.harmonics.mirror != 0u && input.harmonics.degree == 4u && input.sphere.rows == rows &&
           input.sphere.degree == neighbours && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any::fix(input);
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
  static constexpr std::uint32_t matrix_words = numerics::lane_count * coefficients * rows / 4u;
  static CGL_HD std::uint32_t gradient_words(const TrackingInput& input) {
    return numerics::lane_count * coefficients * input.bootstrap.rows;
  }
  static std::uint32_t table_words(const TrackingInput& input) {
    return matrix_words + 2u * gradient_words(input) + numerics::lane_count;
  }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.harmonics.matrix = cuda::share(input.harmonics.matrix, matrix_words, free);
    input.bootstrap.basis = cuda::share(input.bootstrap.basis, gradient_words(input), free);
    input.bootstrap.fit = cuda::share(input.bootstrap.fit, gradient_words(input), free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
  }
};

}  // namespace

TrackKernelPair boot_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_bootstrap) return {};
  if (!any_shape && Degree4<384, 2>::matches(input)) {
    return {cuda::seeds_entry<Any>(), cuda::halves_entry<Degree4<384, 2>>()};
  }
  return {cuda::seeds_entry<Any>(), cuda::halves_entry<Any>()};
}

}  // namespace cingulum
