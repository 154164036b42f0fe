#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/prob_in_registers.hpp"

namespace cingulum {
namespace {

template <Getter getter>
using Any = cuda::AnyShape<getter, field_of_amplitudes>;

// prob on the half of repulsion724, 362 directions, without angular weight. Bound by reading records: 16 warps on a
// multiprocessor leave their corners in its cache.
template <std::uint32_t given_threads, std::uint32_t given_blocks>
struct Prob362 {
  using Steps = kernel::ProbOnAmplitudes<362>;
  static constexpr std::uint32_t threads = given_threads;
  static constexpr std::uint32_t blocks = given_blocks;
  static constexpr bool shared_slabs = true;
  static constexpr SlabUse slab_use = SlabUse::nothing;
  static constexpr std::uint32_t directions = 362;
  static constexpr std::uint32_t rows = 12;

  static bool matches(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == Getter::prob && input.field.channels == directions &&
           input.sphere.half != 0u && input.plan.angular_weight == 0.0f;
  }
  static CGL_HD void fix(TrackingInput& input) {
    Any<Getter::prob>::fix(input);
    input.field.channels = directions;
    input.sphere.rows = rows;
    input.sphere.half = 1u;
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

}  // namespace

TrackKernelPair amplitude_kernels(const TrackingInput& input, bool any_shape) {
  if (input.field.kind != field_of_amplitudes) return {};
  const TrackKernel seeds = cuda::seeds_entry<Any<Getter::closest>>();
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob:
      if (!any_shape && Prob362<128, 4>::matches(input)) return {seeds, cuda::halves_entry<Prob362<128, 4>>()};
      return {seeds, cuda::halves_entry<Any<Getter::prob>>()};
    case Getter::det: return {seeds, cuda::halves_entry<Any<Getter::det>>()};
    case Getter::closest: return {seeds, cuda::halves_entry<Any<Getter::closest>>()};
    default: return {};
  }
}

}  // namespace cingulum
