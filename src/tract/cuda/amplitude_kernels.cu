#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/prob_in_registers.hpp"

namespace cingulum {
namespace {

template <Getter getter>
using Any = cuda::AnyShape<getter, field_of_amplitudes>;

// prob on the half of repulsion724, 362 directions, without angular weight. Its warps' corners take the memory of a
// multiprocessor: 18 of 12 kilobytes each; 96 registers suffice.
struct Prob362 {
  using Steps = kernel::ProbOnAmplitudes<362, 368>;
  static constexpr std::uint32_t threads = 576;
  static constexpr std::uint32_t blocks = 1;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = SlabUse::corners;
  static constexpr std::uint32_t directions = 362;
  static constexpr std::uint32_t stride = 368;
  static constexpr std::uint32_t rows = 12;

  static bool matches(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == Getter::prob && input.field.channels == directions &&
           input.field.stride == stride && input.sphere.half != 0u && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any<Getter::prob>::fix(input);
    input.field.channels = directions;
    input.field.stride = stride;
    input.sphere.rows = rows;
    input.sphere.half = 1u;
    input.plan.angular_weight = 0.0f;
  }
  static std::uint32_t table_words(const TrackingInput&) { return numerics::lane_count * 3u * rows; }
  static __device__ void share_tables(TrackingInput& input, float*& free) {
    input.sphere.x = cuda::share(input.sphere.x, numerics::lane_count * rows, free);
    input.sphere.y = cuda::share(input.sphere.y, numerics::lane_count * rows, free);
    input.sphere.z = cuda::share(input.sphere.z, numerics::lane_count * rows, free);
  }
};

}  // namespace

TrackKernelPair amplitude_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_amplitudes) return {};
  const TrackKernel seeds = cuda::seeds_entry<Any<Getter::closest>>();
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob:
      if (!any_shape && Prob362::matches(input)) return {seeds, cuda::halves_entry<Prob362>()};
      return {seeds, cuda::halves_entry<Any<Getter::prob>>()};
    case Getter::det: return {seeds, cuda::halves_entry<Any<Getter::det>>()};
    case Getter::closest: return {seeds, cuda::halves_entry<Any<Getter::closest>>()};
    default: return {};
  }
}

}  // namespace cingulum
