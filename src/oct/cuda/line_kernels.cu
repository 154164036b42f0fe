// A-lines that are ordered, moved, summed and divided: a thread per line, or per piece of one.
#include "numerics/lanes_portable.hpp"
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/layer_line.hpp"
#include "oct/kernel/roll_line.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned roll_block = 64;
constexpr unsigned project_block = 64;
constexpr unsigned layer_block = 64;
constexpr unsigned divide_block_x = 64;
constexpr unsigned divide_block_y = 4;

__global__ void __launch_bounds__(roll_block)
    roll_lines_kernel(RollLinesRecord record, const float* in, const float* by, float* out) {
  const std::uint32_t x = blockIdx.x * roll_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  const auto depth = static_cast<std::int32_t>(record.z);
  const bool circular = record.circular != 0;
  const LineShift shift = line_shift(by[line], depth, circular);
  const float* const from = in + line;
  float* const to = out + line;
  const auto first = static_cast<std::int32_t>(blockIdx.z * roll_depth_per_thread);
  const std::int32_t end = min(first + static_cast<std::int32_t>(roll_depth_per_thread), depth);
  const auto value = [&](std::int32_t at) {
    if (circular) return from[static_cast<std::uint64_t>(at < depth ? at : at - depth) * plane];
    return at >= 0 && at < depth ? from[static_cast<std::uint64_t>(at) * plane] : record.fill;
  };
  std::int32_t at = first + shift.whole;
  if (circular && at >= depth) at -= depth;
  float low = value(at);
#pragma unroll 4
  for (std::int32_t z = first; z < end; ++z) {
    const float high = value(at + 1);
    to[static_cast<std::uint64_t>(z) * plane] = rolled(shift.fraction, low, high);
    low = high;
    ++at;
    if (circular && at >= depth) at -= depth;
  }
}

__global__ void __launch_bounds__(project_block)
    project_depth_kernel(ProjectDepthRecord record, const float* in, float* out) {
  using numerics::lane_count;
  const std::uint32_t x = blockIdx.x * project_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  const float* const from = in + line;
  if (record.is_max != 0) {
    float best = from[0];
#pragma unroll 8
    for (std::uint32_t z = 1; z < record.z; ++z) {
      const float value = from[z * plane];
      best = value > best ? value : best;
    }
    out[line] = best;
    return;
  }
  // The lane sum: every lane in a register of its own.
  float partial[lane_count];
#pragma unroll
  for (std::uint32_t l = 0; l < lane_count; ++l) partial[l] = l < record.z ? from[l * plane] : 0.0f;
  for (std::uint32_t first = lane_count; first < record.z; first += lane_count) {
#pragma unroll
    for (std::uint32_t l = 0; l < lane_count; ++l) {
      partial[l] = partial[l] + (first + l < record.z ? from[(first + l) * plane] : 0.0f);
    }
  }
#pragma unroll
  for (std::uint32_t distance = lane_count / 2; distance != 0; distance /= 2) {
#pragma unroll
    for (std::uint32_t l = 0; l < distance; ++l) partial[l] = partial[l] + partial[l + distance];
  }
  out[line] = partial[0] / static_cast<float>(record.z);
}

__global__ void __launch_bounds__(order_side* order_block_rows)
    order_lines_kernel(OrderLinesRecord record, const float* in, float* out) {
  // One column more: neighbours of a line and of a plane meet different banks.
  __shared__ float square[order_side][order_side + 1];
  const std::uint32_t y = blockIdx.y;
  const std::uint32_t first_x = blockIdx.x * order_side;
  const std::uint32_t first_z = blockIdx.z * order_side;
  for (std::uint32_t i = threadIdx.y; i < order_side; i += order_block_rows) {
    const std::uint32_t x = first_x + i;
    const std::uint32_t z = first_z + threadIdx.x;
    if (x >= record.x || z >= record.z) continue;
    const std::uint32_t taken = record.first_line + x;
    const std::uint32_t line = taken < record.lines ? taken : taken - record.lines;
    square[i][threadIdx.x] = in[(std::uint64_t{y} * record.lines + line) * record.z + z];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.y; i < order_side; i += order_block_rows) {
    const std::uint32_t x = first_x + threadIdx.x;
    const std::uint32_t z = first_z + i;
    if (x >= record.x || z >= record.z) continue;
    out[(std::uint64_t{z} * record.y + y) * record.x + x] = square[threadIdx.x][i];
  }
}

__global__ void __launch_bounds__(layer_block)
    layer_sums_kernel(LayerSumsRecord record, const float* in, const float* surface, float* out) {
  const std::uint32_t x = blockIdx.x * layer_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  const float* const from = in + line;
  float* const to = out + line;
  const auto end = static_cast<std::int32_t>(record.z);
  const LineParts parts = line_parts(surface[line], end);
  float water = 0.0f;
#pragma unroll 8
  for (std::int32_t z = 0; z < parts.water; ++z) water = water + from[static_cast<std::uint64_t>(z) * plane];
  const auto layered = static_cast<std::int32_t>(record.layers * layer_planes);
  const auto depth = static_cast<std::int32_t>(record.depth);
  const std::int32_t last = min(parts.first + max(layered, depth), end);
  float tissue = 0.0f;
  float layer = 0.0f;
  std::uint32_t finished = 0;
#pragma unroll 8
  for (std::int32_t z = parts.first; z < last; ++z) {
    const float value = from[static_cast<std::uint64_t>(z) * plane];
    const std::int32_t below = z - parts.first;
    if (below < depth) tissue = tissue + value;
    if (below < layered) {
      layer = layer + value;
      if ((static_cast<std::uint32_t>(below) + 1) % layer_planes == 0) {
        to[finished * plane] = layer;
        ++finished;
        layer = 0.0f;
      }
    }
  }
  // The layer that the end of the line cuts, and those that lie beyond it.
  for (; finished < record.layers; ++finished) {
    to[finished * plane] = layer;
    layer = 0.0f;
  }
  to[record.layers * plane] = tissue;
  to[(record.layers + 1) * plane] = water;
}

__global__ void __launch_bounds__(divide_block_x* divide_block_y)
    divide_lines_kernel(DivideLinesRecord record, const float* in, const float* map, float* out) {
  const std::uint32_t x = blockIdx.x * divide_block_x + threadIdx.x;
  const std::uint32_t y = blockIdx.y * divide_block_y + threadIdx.y;
  if (x >= record.x || y >= record.y) return;
  const std::uint64_t pixel = std::uint64_t{y} * record.x + x;
  const std::uint64_t i = std::uint64_t{blockIdx.z} * record.y * record.x + pixel;
  out[i] = in[i] / map[pixel];
}

}  // namespace

cudaError_t launch_order_lines(const CudaCall& call) {
  return launch_on(call, dim3(order_side, order_block_rows), order_lines_kernel);
}

cudaError_t launch_layer_sums(const CudaCall& call) {
  return launch_on(call, dim3(layer_block), layer_sums_kernel);
}

cudaError_t launch_divide_lines(const CudaCall& call) {
  return launch_on(call, dim3(divide_block_x, divide_block_y), divide_lines_kernel);
}

cudaError_t launch_roll_lines(const CudaCall& call) {
  return launch_on(call, dim3(roll_block), roll_lines_kernel);
}

cudaError_t launch_project_depth(const CudaCall& call) {
  return launch_on(call, dim3(project_block), project_depth_kernel);
}

}  // namespace cingulum::oct
