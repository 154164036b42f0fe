// A-lines that are moved and projected: a thread per line, or per piece of one.
#include "numerics/lanes_portable.hpp"
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/roll_line.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned roll_block = 64;
constexpr unsigned project_block = 64;

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

}  // namespace

cudaError_t launch_roll_lines(const CudaCall& call) {
  const dim3 block(roll_block, 1, 1);
  roll_lines_kernel<<<blocks_for(call.threads, block), block, 0, call.stream>>>(
      call.pointers.record<RollLinesRecord>(), call.pointers.at[0], call.pointers.at[1], call.pointers.at[2]);
  return cudaGetLastError();
}

cudaError_t launch_project_depth(const CudaCall& call) {
  const dim3 block(project_block, 1, 1);
  project_depth_kernel<<<blocks_for(call.threads, block), block, 0, call.stream>>>(
      call.pointers.record<ProjectDepthRecord>(), call.pointers.at[0], call.pointers.at[1]);
  return cudaGetLastError();
}

}  // namespace cingulum::oct
