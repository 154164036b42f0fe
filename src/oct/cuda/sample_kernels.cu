// Volumes read at coordinates: a thread per pixel and a few planes of the output.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/sample_item.hpp"

namespace cingulum::oct {
namespace {

// A warp reads a row; blocks are near to squares, since neighbouring rows read the same samples.
constexpr unsigned sample_block_x = 32;
constexpr unsigned sample_block_y = 8;
constexpr unsigned sample_threads = sample_block_x * sample_block_y;
constexpr unsigned planes = sample_planes_per_thread;

// Orders 0 and 3, one kernel each: that of order 3 needs many more registers.
template <std::uint32_t order>
__global__ void __launch_bounds__(sample_threads)
    sample_volume_kernel(SampleVolumeRecord record, const float* volume, const float* of_z, const float* of_y,
                         const float* of_x, float* out) {
  const std::uint32_t x = blockIdx.x * sample_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * sample_block_y + threadIdx.y;
  if (x >= record.out_x || y >= record.out_y) return;
  record.order = order;
  const float* const coordinates[3] = {of_z, of_y, of_x};
  const std::uint32_t first = blockIdx.z * planes;
#pragma unroll
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t z = first + i;
    if (z >= record.out_z) return;
    out[(std::size_t{z} * record.out_y + y) * record.out_x + x] = sampled_output(volume, coordinates, record, z, y, x);
  }
}

// position_of without its limit: what lies so far away is in no cell.
__device__ AxisPosition near_position(float coordinate) {
  const std::int32_t whole = __float2int_rd(coordinate);
  return {whole, coordinate - static_cast<float>(whole)};
}

// The parts of the positions that a row of a block shares: sums of those of z and y, as `joined` begins.
struct RowPositions {
  int4 whole[planes][sample_block_y];
  float4 fraction[planes][sample_block_y];
};

__device__ void share_row_positions(const SampleVolumeRecord& record, const float* of_z, const float* of_y,
                                    std::uint32_t first, RowPositions& rows) {
  const std::uint32_t item = threadIdx.y * sample_block_x + threadIdx.x;
  if (item < planes * sample_block_y * 3) {
    const std::uint32_t axis = item % 3;
    const std::uint32_t row = item / 3 % sample_block_y;
    const std::uint32_t plane = item / 3 / sample_block_y;
    const std::uint32_t z = record.out_first_z + min(first + plane, record.out_z - 1);
    const std::uint32_t y = min(blockIdx.y * sample_block_y + row, record.out_y - 1);
    const AxisPosition of_plane = table_position(reinterpret_cast<const std::uint32_t*>(of_z), record.all_z, z, axis);
    const AxisPosition of_row = table_position(reinterpret_cast<const std::uint32_t*>(of_y), record.out_y, y, axis);
    reinterpret_cast<std::int32_t*>(&rows.whole[plane][row])[axis] = of_plane.whole + of_row.whole;
    reinterpret_cast<float*>(&rows.fraction[plane][row])[axis] = of_plane.fraction + of_row.fraction;
  }
  __syncthreads();
}

// `joined` from where share_row_positions left it.
__device__ AxisPosition joined_in_row(std::int32_t whole, float part, AxisPosition x) {
  const float fraction = part + x.fraction;
  const float carried = numerics::floor_of(fraction);
  return {(whole + x.whole) + static_cast<std::int32_t>(carried), fraction - carried};
}

// Order 1. All positions of a thread stand before its first sample is read, so that reads of its planes are under way
// together; where one of them is in no cell, each goes its own way. `Index` counts voxels of the input: addresses in 64
// bits are a third of all instructions.
template <class Index>
__global__ void __launch_bounds__(sample_threads)
    sample_linear_kernel(SampleVolumeRecord record, const float* __restrict__ volume, const float* __restrict__ of_z,
                         const float* __restrict__ of_y, const float* __restrict__ of_x, float* __restrict__ out) {
  __shared__ RowPositions rows;
  const std::uint32_t x = blockIdx.x * sample_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * sample_block_y + threadIdx.y;
  const std::uint32_t first = blockIdx.z * planes;
  const auto source = static_cast<CoordinateSource>(record.source);
  if (source == CoordinateSource::affine) share_row_positions(record, of_z, of_y, first, rows);
  if (x >= record.out_x || y >= record.out_y) return;
  const std::size_t plane_size = std::size_t{record.out_y} * record.out_x;
  const std::size_t pixel = std::size_t{y} * record.out_x + x;
  AxisPosition at[planes][3];
  if (source == CoordinateSource::affine) {
    AxisPosition of_column[3];
#pragma unroll
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      of_column[axis] = table_position(reinterpret_cast<const std::uint32_t*>(of_x), record.out_x, x, axis);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < planes; ++i) {
      const int4 whole = rows.whole[i][threadIdx.y];
      const float4 fraction = rows.fraction[i][threadIdx.y];
      at[i][0] = joined_in_row(whole.x, fraction.x, of_column[0]);
      at[i][1] = joined_in_row(whole.y, fraction.y, of_column[1]);
      at[i][2] = joined_in_row(whole.z, fraction.z, of_column[2]);
    }
  } else {
    float given[planes][3];
#pragma unroll
    for (std::uint32_t i = 0; i < planes; ++i) {
      const std::size_t voxel = min(first + i, record.out_z - 1) * plane_size + pixel;
      given[i][0] = __ldcs(of_z + voxel);
      given[i][1] = __ldcs(of_y + voxel);
      given[i][2] = __ldcs(of_x + voxel);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < planes; ++i) {
#pragma unroll
      for (std::uint32_t axis = 0; axis < 3; ++axis) at[i][axis] = near_position(given[i][axis]);
      if (source == CoordinateSource::displacement) {
        at[i][0].whole += static_cast<std::int32_t>(record.out_first_z + first + i);
        at[i][1].whole += static_cast<std::int32_t>(y);
        at[i][2].whole += static_cast<std::int32_t>(x);
      }
    }
  }
  bool in_cells = first + planes <= record.out_z;
#pragma unroll
  for (std::uint32_t i = 0; i < planes; ++i) {
    in_cells = in_cells && lies_in_cell(record, at[i][0], at[i][1], at[i][2]);
  }
  float* const to = out + first * plane_size + pixel;
  if (in_cells) {
    float sums[planes];
#pragma unroll
    for (std::uint32_t i = 0; i < planes; ++i) sums[i] = cell_sum<Index>(volume, record, at[i][0], at[i][1], at[i][2]);
#pragma unroll
    for (std::uint32_t i = 0; i < planes; ++i) __stcs(to + i * plane_size, sums[i]);
    return;
  }
  record.order = 1;
  const float* const coordinates[3] = {of_z, of_y, of_x};
  for (std::uint32_t i = 0; i < planes && first + i < record.out_z; ++i) {
    to[i * plane_size] = sampled_output(volume, coordinates, record, first + i, y, x);
  }
}

}  // namespace

cudaError_t launch_sample_volume(const CudaCall& call) {
  const auto record = call.pointers.record<SampleVolumeRecord>();
  const bool small = std::uint64_t{record.in_z} * record.in_y * record.in_x <= UINT32_MAX;
  const auto linear_kernel = small ? sample_linear_kernel<std::uint32_t> : sample_linear_kernel<std::size_t>;
  const auto kernel = record.order == 0   ? sample_volume_kernel<0>
                      : record.order == 1 ? linear_kernel
                                          : sample_volume_kernel<3>;
  return launch_on(call, dim3(sample_block_x, sample_block_y), kernel);
}

}  // namespace cingulum::oct
