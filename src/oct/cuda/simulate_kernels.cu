// Simulated tiles: noise of the sample's lattice, its exponential, and voxels; a thread for each number.
#include "numerics/trilinear.hpp"
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/simulated_voxel.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned simulate_block_x = 64;
constexpr unsigned simulate_block_y = 4;

__global__ void __launch_bounds__(simulate_block_x* simulate_block_y)
    texture_noise_kernel(TextureNoiseRecord record, float* out) {
  const std::uint32_t x = blockIdx.x * simulate_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * simulate_block_y + threadIdx.y;
  const std::uint32_t z = blockIdx.z;
  if (x >= record.x || y >= record.y) return;
  out[(std::uint64_t{z} * record.y + y) * record.x + x] = texture_noise(
      {record.key_low, record.key_high}, record.first_plane + static_cast<std::int32_t>(z),
      record.first_row + static_cast<std::int32_t>(y), record.first_column + static_cast<std::int32_t>(x));
}

__global__ void __launch_bounds__(simulate_block_x* simulate_block_y)
    exponentiate_kernel(ExponentiateRecord record, float* values) {
  const std::uint32_t x = blockIdx.x * simulate_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * simulate_block_y + threadIdx.y;
  if (x >= record.x || y >= record.y) return;
  float& value = values[(std::uint64_t{blockIdx.z} * record.y + y) * record.x + x];
  value = numerics::exponential(record.factor * value);
}

__global__ void __launch_bounds__(simulate_block_x* simulate_block_y)
    tile_voxels_kernel(TileVoxelsRecord record, const float* texture, float* out) {
  const bool as_acquired = record.as_acquired != 0;
  const std::uint32_t fast = blockIdx.x * simulate_block_x + threadIdx.x;
  const std::uint32_t middle = blockIdx.y * simulate_block_y + threadIdx.y;
  const std::uint32_t fast_count = as_acquired ? record.z : record.lines;
  const std::uint32_t middle_count = as_acquired ? record.lines : record.y;
  if (fast >= fast_count || middle >= middle_count) return;
  const std::uint32_t plane = record.first_z + (as_acquired ? fast : blockIdx.z);
  const std::uint32_t row = record.first_y + (as_acquired ? blockIdx.z : middle);
  const LineSource source =
      line_source(as_acquired ? middle : fast, record.tile_x, record.last_line, record.extra_lines);
  const LineModel line = line_model(record.model, row, source.column);
  const numerics::TrilinearCell cell = numerics::trilinear_cell(
      {line.column, line.row, sample_plane_of(record.model, line, plane)}, {record.box_x, record.box_y, record.box_z});
  float weights[8];
  float values[8];
#pragma unroll
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const std::uint32_t x = (corner & 1u) != 0u ? cell.x.high : cell.x.low;
    const std::uint32_t y = ((corner & 2u) != 0u ? cell.y.high : cell.y.low) - record.part_first_y;
    const std::uint32_t z = ((corner & 4u) != 0u ? cell.z.high : cell.z.low) - record.part_first_z;
    weights[corner] = numerics::corner_weight(cell, corner);
    values[corner] = texture[(std::uint64_t{z} * record.part_y + y) * record.box_x + x];
  }
  float value = mean_intensity(record.model, line.surface, line.flat, line.in_tissue, static_cast<float>(plane),
                               numerics::combine_corners(weights, values));
  if (record.speckle_shape > 0) {
    const std::uint32_t voxel = (plane * record.tile_y + row) * record.tile_x + source.column;
    value = value * gamma_speckle({record.key_low, record.key_high}, voxel, record.tile, record.speckle_shape);
  }
  out[(std::uint64_t{blockIdx.z} * middle_count + middle) * fast_count + fast] = source.share * value;
}

}  // namespace

cudaError_t launch_texture_noise(const CudaCall& call) {
  return launch_on(call, dim3(simulate_block_x, simulate_block_y), texture_noise_kernel);
}

cudaError_t launch_exponentiate(const CudaCall& call) {
  return launch_on(call, dim3(simulate_block_x, simulate_block_y), exponentiate_kernel);
}

cudaError_t launch_tile_voxels(const CudaCall& call) {
  return launch_on(call, dim3(simulate_block_x, simulate_block_y), tile_voxels_kernel);
}

}  // namespace cingulum::oct
