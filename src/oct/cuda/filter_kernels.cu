// Filters and spline coefficients along an axis. Threads that are neighbours stand beside each other in x; along z and
// y a thread makes several outputs one after the other, whose samples it finds in the nearest cache.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/filter_item.hpp"
#include "oct/kernel/spline_line.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned filter_block_x = 64;
constexpr unsigned filter_block_y = 4;
constexpr unsigned spline_block = 64;

__global__ void __launch_bounds__(filter_block_x* filter_block_y)
    filter_axis_kernel(FilterAxisRecord record, const float* in, const std::uint32_t* table, float* out) {
  const std::uint32_t x = blockIdx.x * filter_block_x + threadIdx.x;
  const std::uint32_t row = blockIdx.y * filter_block_y + threadIdx.y;
  if (x >= record.out_x) return;
  const std::uint64_t in_plane = std::uint64_t{record.in_y} * record.in_x;
  const std::uint64_t out_plane = std::uint64_t{record.out_y} * record.out_x;
  if (record.axis == 0) {
    if (row >= record.out_y) return;
    const float* const line = in + std::uint64_t{row} * record.in_x + x -
                              static_cast<std::ptrdiff_t>(record.in_first_z) * static_cast<std::ptrdiff_t>(in_plane);
    float* const to = out + std::uint64_t{row} * record.out_x + x;
    const std::uint32_t first = blockIdx.z * filter_outputs_per_thread;
    const std::uint32_t end = min(first + filter_outputs_per_thread, record.out_z);
    for (std::uint32_t o = first; o < end; ++o) {
      to[o * out_plane] =
          filtered_sample(table, record.outputs, record.out_first_z + o, line, static_cast<std::ptrdiff_t>(in_plane));
    }
    return;
  }
  const std::uint32_t z = blockIdx.z;
  const float* const plane = in + (std::uint64_t{record.out_first_z} + z - record.in_first_z) * in_plane;
  float* const to = out + z * out_plane;
  if (record.axis == 1) {
    const std::uint32_t first = row * filter_outputs_per_thread;
    const std::uint32_t end = min(first + filter_outputs_per_thread, record.out_y);
    for (std::uint32_t o = first; o < end; ++o) {
      to[std::uint64_t{o} * record.out_x + x] =
          filtered_sample(table, record.outputs, o, plane + x, static_cast<std::ptrdiff_t>(record.in_x));
    }
    return;
  }
  if (row < record.out_y) {
    to[std::uint64_t{row} * record.out_x + x] =
        filtered_sample(table, record.outputs, x, plane + std::uint64_t{row} * record.in_x, 1);
  }
}

__global__ void __launch_bounds__(spline_block) spline_axis_kernel(SplineAxisRecord record, float* volume) {
  const std::uint32_t i = blockIdx.x * spline_block + threadIdx.x;
  const std::uint32_t j = blockIdx.y;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint32_t lines = record.axis == 2 ? record.y : record.x;
  if (i >= lines) return;
  const std::uint32_t count = record.axis == 0 ? record.z : record.axis == 1 ? record.y : record.x;
  const std::uint64_t stride = record.axis == 0 ? plane : record.axis == 1 ? record.x : 1;
  float* const line = volume + (record.axis == 2 ? std::uint64_t{i} * record.x : i) +
                      (record.axis == 0 ? std::uint64_t{j} * record.x : j * plane);
  spline_coefficients<float>(
      count, record.half_sample != 0, [&](std::uint32_t k) { return line[k * stride]; },
      [&](std::uint32_t k, float value) { line[k * stride] = value; });
}

}  // namespace

cudaError_t launch_filter_axis(const CudaCall& call) {
  return launch_on(call, dim3(filter_block_x, filter_block_y), filter_axis_kernel);
}

cudaError_t launch_spline_axis(const CudaCall& call) {
  return launch_on(call, dim3(spline_block), spline_axis_kernel);
}

}  // namespace cingulum::oct
