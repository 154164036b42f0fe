#include "device/cuda/ahead_kernels.hpp"
#include "device/selfcheck_item.hpp"

namespace cingulum {
namespace {

constexpr unsigned block_threads = 128;  // no shared memory, few registers: any multiple of a warp does

__global__ void selfcheck_kernel(std::uint32_t* output, std::uint32_t items) {
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < items) selfcheck_item(index, output + std::size_t{selfcheck_words} * index);
}

}  // namespace

cudaError_t launch_selfcheck(std::uint32_t* output, std::uint32_t items, cudaStream_t stream) {
  selfcheck_kernel<<<(items + block_threads - 1) / block_threads, block_threads, 0, stream>>>(output, items);
  return cudaGetLastError();
}

}  // namespace cingulum
