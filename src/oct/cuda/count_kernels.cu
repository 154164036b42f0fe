// Ranks, medians, blends and attenuation: counts in shared memory, a thread per voxel or per A-line.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/attenuation_line.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/line_index.hpp"
#include "oct/kernel/ordered_key.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned count_block = 256;
constexpr unsigned voxel_block_x = 64;
constexpr unsigned voxel_block_y = 4;
constexpr unsigned attenuation_block = 64;

__global__ void __launch_bounds__(count_block)
    count_keys_kernel(CountKeysRecord record, const float* values, std::uint32_t* totals) {
  __shared__ std::uint32_t counts[most_key_bins];
  for (unsigned bin = threadIdx.x; bin < record.bins; bin += count_block) counts[bin] = 0;
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * count_block;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * count_block + threadIdx.x; i < record.count; i += stride) {
    const std::uint32_t key = ordered_key(values[i]);
    const bool counted =
        key >= record.least_key && (record.prefix_shift >= 32 || key >> record.prefix_shift == record.prefix);
    if (counted) atomicAdd(&counts[(key >> record.shift) & (record.bins - 1)], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < record.bins; bin += count_block) {
    if (counts[bin] != 0) atomicAdd(&totals[bin], counts[bin]);
  }
}

__global__ void __launch_bounds__(voxel_block_x* voxel_block_y)
    blend_add_kernel(BlendAddRecord record, const float* tile, const float* weights, float* sum, float* weight_sum) {
  const std::uint32_t x = blockIdx.x * voxel_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * voxel_block_y + threadIdx.y;
  if (x >= record.x || y >= record.y) return;
  const std::uint64_t pixel = (std::uint64_t{record.tile_first_y} + y) * record.tile_x + record.tile_first_x + x;
  const std::uint64_t place =
      (std::uint64_t{blockIdx.z} * record.sum_y + record.sum_first_y + y) * record.sum_x + record.sum_first_x + x;
  const float weight = weights[pixel];
  const float value = tile[std::uint64_t{blockIdx.z} * record.tile_y * record.tile_x + pixel];
  sum[place] = sum[place] + weight * value;
  weight_sum[place] = weight_sum[place] + weight;
}

__global__ void __launch_bounds__(voxel_block_x* voxel_block_y)
    blend_finish_kernel(BlendFinishRecord record, const float* sum, const float* weight_sum, float* out) {
  const std::uint32_t x = blockIdx.x * voxel_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * voxel_block_y + threadIdx.y;
  if (x >= record.x || y >= record.y) return;
  const std::uint64_t i = (std::uint64_t{blockIdx.z} * record.y + y) * record.x + x;
  out[i] = weight_sum[i] > 0.0f ? sum[i] / weight_sum[i] : 0.0f;
}

__global__ void __launch_bounds__(voxel_block_x* voxel_block_y)
    median_box_kernel(MedianBoxRecord record, const float* in, float* out) {
  const std::uint32_t x = blockIdx.x * voxel_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * voxel_block_y + threadIdx.y;
  const std::uint32_t z = blockIdx.z;
  if (x >= record.x || y >= record.y) return;
  const std::uint32_t rank = record.size_z * record.size_y * record.size_x / 2;
  // The greatest key that at most `rank` samples lie below, bit after bit.
  std::uint32_t found = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    const std::uint32_t trial = found | bit;
    std::uint32_t lower = 0;
    for (std::uint32_t k = 0; k < record.size_z; ++k) {
      const std::int32_t iz = reflected(static_cast<std::int32_t>(z + k) - static_cast<std::int32_t>(record.size_z / 2),
                                        static_cast<std::int32_t>(record.z));
      for (std::uint32_t j = 0; j < record.size_y; ++j) {
        const std::int32_t iy =
            reflected(static_cast<std::int32_t>(y + j) - static_cast<std::int32_t>(record.size_y / 2),
                      static_cast<std::int32_t>(record.y));
        const float* const row =
            in + (static_cast<std::uint64_t>(iz) * record.y + static_cast<std::uint64_t>(iy)) * record.x;
        for (std::uint32_t i = 0; i < record.size_x; ++i) {
          const std::int32_t ix =
              reflected(static_cast<std::int32_t>(x + i) - static_cast<std::int32_t>(record.size_x / 2),
                        static_cast<std::int32_t>(record.x));
          lower += ordered_key(row[ix]) < trial ? 1u : 0u;
        }
      }
    }
    if (lower <= rank) found = trial;
  }
  out[(std::uint64_t{z} * record.y + y) * record.x + x] = value_of_key(found);
}

__global__ void __launch_bounds__(attenuation_block)
    attenuation_lines_kernel(AttenuationRecord record, const float* in, const float* tails, float* out) {
  const std::uint32_t x = blockIdx.x * attenuation_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  float below = record.tail_factor * tails[line];
  for (std::uint32_t z = record.z; z > 0; --z) {
    const float sample = in[(z - 1) * plane + line];
    const float value = sample > 0.0f ? sample : 0.0f;
    out[(z - 1) * plane + line] = attenuation_of(value, below, record.scale);
    below = below + value;
  }
}

__global__ void __launch_bounds__(attenuation_block)
    compensate_lines_kernel(CompensationRecord record, const float* in, const float* attenuation, float* out) {
  const std::uint32_t x = blockIdx.x * attenuation_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  float depth = 0.0f;
  for (std::uint32_t z = 0; z < record.z; ++z) {
    const std::uint64_t at = z * plane + line;
    out[at] = compensated(in[at], depth, record.strength, record.least);
    depth = depth + attenuation[at] * record.step;
  }
}

}  // namespace

cudaError_t launch_count_keys(const CudaCall& call) {
  return launch_on(call, dim3(count_block), count_keys_kernel);
}

cudaError_t launch_blend_add(const CudaCall& call) {
  return launch_on(call, dim3(voxel_block_x, voxel_block_y), blend_add_kernel);
}

cudaError_t launch_blend_finish(const CudaCall& call) {
  return launch_on(call, dim3(voxel_block_x, voxel_block_y), blend_finish_kernel);
}

cudaError_t launch_median_box(const CudaCall& call) {
  return launch_on(call, dim3(voxel_block_x, voxel_block_y), median_box_kernel);
}

cudaError_t launch_attenuation_lines(const CudaCall& call) {
  return launch_on(call, dim3(attenuation_block), attenuation_lines_kernel);
}

cudaError_t launch_compensate_lines(const CudaCall& call) {
  return launch_on(call, dim3(attenuation_block), compensate_lines_kernel);
}

}  // namespace cingulum::oct
