#include "tract/cuda/track_kernels.cuh"
#include "tract/kernel/brick_half.hpp"

namespace cingulum {
namespace {

// Equal to the other kernels where they can run: kernel/brick_half.hpp says by which tests.
using Everything = cuda::AnyShape<TrackKernelId::bricks>;

__global__ void __launch_bounds__(Everything::threads, Everything::blocks)
    track_halves_in_brick(const __grid_constant__ TrackingInput input, const __grid_constant__ kernel::PagedWork work,
                          const __grid_constant__ SlabMemoryOnDevice memory) {
  extern __shared__ float shared_memory[];
  kernel::run_halves_in_brick<numerics::WarpLanes, cuda::WarpMachine>(
      input, cuda::slab_of_warp<Everything>(memory, shared_memory), work.seeds, work.halves, work.store, work.brick);
}

}  // namespace

TrackKernel brick_kernel(TrackKernelId id, bool at_seeds) {
  if (id != TrackKernelId::bricks || at_seeds) return {};
  return cuda::entry<Everything>(reinterpret_cast<const void*>(&track_halves_in_brick));
}

}  // namespace cingulum
