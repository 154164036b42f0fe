// Boxes between chunks and a region: a block finds its record, its threads move items that are neighbours.
#include "zarr/direct/cuda/box_launch.hpp"

namespace cingulum::zarr {
namespace {

__global__ void __launch_bounds__(box_block_threads)
    move_boxes_kernel(const BoxRecord* records, std::uint32_t count, BoxDirection direction, std::byte* chunks,
                      std::byte* places) {
  // In shared memory as words: the record is read by every thread for every item.
  __shared__ alignas(BoxRecord) std::uint32_t words[box_record_words];
  __shared__ std::uint32_t index;
  if (threadIdx.x == 0) index = box_of_block(records, count, blockIdx.x);
  __syncthreads();
  if (threadIdx.x < box_record_words) {
    words[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(records + index)[threadIdx.x];
  }
  __syncthreads();
  const BoxRecord& box = *reinterpret_cast<const BoxRecord*>(words);
  const std::uint32_t first = (blockIdx.x - box.first_block) * box_items_per_block;
  const std::uint32_t end = min(first + box_items_per_block, box.items);
  for (std::uint32_t item = first + threadIdx.x; item < end; item += box_block_threads) {
    move_box_item(box, item, direction, chunks, places);
  }
}

}  // namespace

cudaError_t launch_move_boxes(const BoxRecord* records, std::uint32_t count, std::uint32_t blocks,
                              BoxDirection direction, std::byte* chunks, std::byte* places, cudaStream_t stream) {
  move_boxes_kernel<<<blocks, box_block_threads, 0, stream>>>(records, count, direction, chunks, places);
  return cudaGetLastError();
}

}  // namespace cingulum::zarr
