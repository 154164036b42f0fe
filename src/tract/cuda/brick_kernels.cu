#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/brick_half.hpp"

namespace cingulum {
namespace {

// Equal to the other kernels where they can run: kernel/brick_half.hpp says by which tests.
// One kernel decides everything while it runs: bricks are for fields that fit no other way, and wait for copies.
struct Everything {
  static constexpr std::uint32_t threads = 128;
  static constexpr std::uint32_t blocks = 3;
  static constexpr bool shared_slabs = false;
  static constexpr SlabUse slab_use = SlabUse::all;
  static std::uint32_t table_words(const TrackingInput&) { return 0u; }
};

__global__ void __launch_bounds__(Everything::threads, Everything::blocks)
    track_halves_in_brick(const __grid_constant__ TrackingInput input, const __grid_constant__ kernel::PagedWork work,
                          const __grid_constant__ SlabMemoryOnDevice memory) {
  extern __shared__ float shared_memory[];
  kernel::run_halves_in_brick<numerics::WarpLanes, cuda::WarpMachine>(
      input, cuda::slab_of_warp<Everything>(memory, shared_memory), work.seeds, work.halves, work.store, work.brick);
}

}  // namespace

TrackKernel brick_kernel() {
  return cuda::entry<Everything>(reinterpret_cast<const void*>(&track_halves_in_brick));
}

}  // namespace cingulum
