#include "tract/cuda/track_kernels.cuh"

namespace cingulum {
namespace {

using OnTensors = cuda::AnyShape<TrackKernelId::tensors>;
using OnPeaks = cuda::AnyShape<TrackKernelId::peaks>;

constexpr unsigned compaction_threads = 256;  // a warp per streamline; bound by memory, so any size does

__global__ void __launch_bounds__(compaction_threads)
    compact_lines(const __grid_constant__ TrackingInput input, const __grid_constant__ kernel::PagedWork work) {
  const std::uint32_t warps = gridDim.x * (blockDim.x / numerics::lane_count);
  const std::uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) / numerics::lane_count;
  for (std::uint32_t which = first; which < work.output.count; which += warps) {
    kernel::compact_line(input, work.seeds, work.halves, work.store, work.output, which,
                         threadIdx.x % numerics::lane_count, numerics::lane_count);
  }
}

}  // namespace

TrackKernel vector_kernel(TrackKernelId id, bool at_seeds) {
  switch (id) {
    case TrackKernelId::tensors: return at_seeds ? cuda::seeds_entry<OnTensors>() : cuda::halves_entry<OnTensors>();
    case TrackKernelId::peaks: return at_seeds ? cuda::seeds_entry<OnPeaks>() : cuda::halves_entry<OnPeaks>();
    default: return {};
  }
}

cudaError_t launch_compaction(const TrackingInput& input, const kernel::PagedWork& work, cudaStream_t stream) {
  constexpr unsigned lines_per_block = compaction_threads / numerics::lane_count;
  constexpr unsigned most_blocks = 65536;
  const unsigned wanted = (work.output.count + lines_per_block - 1u) / lines_per_block;
  const unsigned blocks = wanted < most_blocks ? wanted : most_blocks;
  compact_lines<<<blocks, compaction_threads, 0, stream>>>(input, work);
  return cudaGetLastError();
}

}  // namespace cingulum
