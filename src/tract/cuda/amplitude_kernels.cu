#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/prob_in_registers.hpp"

namespace cingulum {
namespace {

template <Getter getter>
using Any = cuda::AnyShape<getter, field_of_amplitudes>;

// On the half of repulsion724, 362 directions, without angular weight.
template <Getter given_getter, class GivenSteps, SlabUse given_use, std::uint32_t given_threads,
          std::uint32_t given_blocks>
struct On362 {
  using Steps = GivenSteps;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = given_blocks;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = given_use;
  static constexpr std::uint32_t directions = 362;
  static constexpr std::uint32_t stride = 368;
  static constexpr std::uint32_t rows = 12;

  static bool matches(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == given_getter && input.field.channels == directions &&
           input.field.stride == stride && input.sphere.is_hemisphere != 0u && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any<given_getter>::fix(input);
    input.field.channels = directions;
    input.field.stride = stride;
    input.sphere.rows = rows;
    input.sphere.is_hemisphere = 1u;
    input.plan.angular_weight = 0.0f;
  }
  static std::uint32_t table_words(const TrackingInput&) { return numerics::lane_count * (3u * rows + 1u); }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.sphere.x = cuda::share(input.sphere.x, numerics::lane_count * rows, free);
    input.sphere.y = cuda::share(input.sphere.y, numerics::lane_count * rows, free);
    input.sphere.z = cuda::share(input.sphere.z, numerics::lane_count * rows, free);
    input.sphere.occupied = cuda::share(input.sphere.occupied, rows, free);
  }
};

// The corners of a warp take 12 kilobytes: 18 warps fill the memory of a multiprocessor, 96 registers suffice.
using Prob = On362<Getter::prob, kernel::ProbOnAmplitudes<362, 368>, SlabUse::corners, 576, 1>;
using Det = On362<Getter::det, kernel::StepsFromKept<362, 368>, SlabUse::all_and_corners, 512, 1>;

}  // namespace

TrackKernelPair amplitude_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_amplitudes) return {};
  const TrackKernel seeds = cuda::seeds_entry<Any<Getter::closest>>();
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob:
      if (!any_shape && Prob::matches(input)) return {seeds, cuda::halves_entry<Prob>()};
      return {seeds, cuda::halves_entry<Any<Getter::prob>>()};
    case Getter::det:
      if (!any_shape && Det::matches(input)) return {seeds, cuda::halves_entry<Det>()};
      return {seeds, cuda::halves_entry<Any<Getter::det>>()};
    case Getter::closest: return {seeds, cuda::halves_entry<Any<Getter::closest>>()};
    default: return {};
  }
}

}  // namespace cingulum
