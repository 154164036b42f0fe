// Volumes read at coordinates: a thread per pixel and a few planes of the output.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/sample_item.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned sample_block_x = 64;
constexpr unsigned sample_block_y = 4;

// One for each order: that of order 3 needs many more registers.
template <std::uint32_t order>
__global__ void __launch_bounds__(sample_block_x* sample_block_y)
    sample_volume_kernel(SampleVolumeRecord record, const float* volume, const float* of_z, const float* of_y,
                         const float* of_x, float* out) {
  const std::uint32_t x = blockIdx.x * sample_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * sample_block_y + threadIdx.y;
  if (x >= record.out_x || y >= record.out_y) return;
  record.order = order;
  const float* const coordinates[3] = {of_z, of_y, of_x};
  const std::uint32_t first = blockIdx.z * sample_planes_per_thread;
#pragma unroll
  for (std::uint32_t i = 0; i < sample_planes_per_thread; ++i) {
    const std::uint32_t z = first + i;
    if (z >= record.out_z) return;
    out[(std::size_t{z} * record.out_y + y) * record.out_x + x] = sampled_output(volume, coordinates, record, z, y, x);
  }
}

}  // namespace

cudaError_t launch_sample_volume(const CudaCall& call) {
  const dim3 block(sample_block_x, sample_block_y, 1);
  const auto record = call.pointers.record<SampleVolumeRecord>();
  const auto kernel = record.order == 0   ? sample_volume_kernel<0>
                      : record.order == 1 ? sample_volume_kernel<1>
                                          : sample_volume_kernel<3>;
  kernel<<<blocks_for(call.threads, block), block, 0, call.stream>>>(
      record, call.pointers.at[0], call.pointers.at[1], call.pointers.at[2], call.pointers.at[3], call.pointers.at[4]);
  return cudaGetLastError();
}

}  // namespace cingulum::oct
