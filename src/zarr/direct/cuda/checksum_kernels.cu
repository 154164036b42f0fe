// CRC-32C of chunks: a block sums a segment of 64 KiB, its threads take words that are neighbours.
#include "zarr/direct/cuda/checksum_launch.hpp"

namespace cingulum::zarr {
namespace {

constexpr unsigned whole_warp = 0xffffffffu;

__global__ void __launch_bounds__(crc_threads)
    crc32c_kernel(const CrcTask* tasks, std::uint32_t count, const CrcTables* tables, const std::byte* staging,
                  CrcAnswer* answers) {
  __shared__ CrcTables own;  // 5.2 KB: four lookups a word
  __shared__ std::uint32_t task_index;
  __shared__ std::uint32_t sums[crc_threads / 32];
  for (std::uint32_t w = threadIdx.x; w < sizeof(CrcTables) / 4; w += crc_threads) {
    reinterpret_cast<std::uint32_t*>(&own)[w] = reinterpret_cast<const std::uint32_t*>(tables)[w];
  }
  if (threadIdx.x == 0) {
    std::uint32_t low = 0;
    std::uint32_t left = count;
    while (left > 1) {
      const std::uint32_t half = left / 2;
      if (tasks[low + half].first_block <= blockIdx.x) {
        low += half;
        left -= half;
      } else {
        left = half;
      }
    }
    task_index = low;
  }
  __syncthreads();
  const CrcTask task = tasks[task_index];
  const std::uint32_t segment = blockIdx.x - task.first_block;
  std::uint32_t sum = crc_of_thread(staging, task, segment, threadIdx.x, own);
  for (int distance = 16; distance > 0; distance /= 2) sum ^= __shfl_xor_sync(whole_warp, sum, distance);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (std::uint32_t warp = 0; warp < crc_threads / 32; ++warp) sum ^= sums[warp];
  atomicXor(&answers[task_index].sum, crc_of_segment(sum, task, segment, own));
  if (segment == 0) answers[task_index].stored = stored_crc32c(staging, task);
}

}  // namespace

cudaError_t launch_crc32c(const CrcTask* tasks, std::uint32_t count, std::uint32_t blocks, const CrcTables* tables,
                          const std::byte* staging, CrcAnswer* answers, cudaStream_t stream) {
  crc32c_kernel<<<blocks, crc_threads, 0, stream>>>(tasks, count, tables, staging, answers);
  return cudaGetLastError();
}

}  // namespace cingulum::zarr
