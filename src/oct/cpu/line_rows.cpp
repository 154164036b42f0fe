// A-lines that are moved and projected on the CPU.
#include <algorithm>
#include <vector>

#include "numerics/lanes_portable.hpp"
#include "numerics/pack.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/roll_line.hpp"

namespace cingulum::oct {
namespace {

using numerics::lane_count;

// A page of values: each plane is read once, a page at a time.
constexpr std::uint32_t lines_per_chunk = 1024;

std::uint32_t roll_pieces(const KernelPointers& call) {
  return call.record<RollLinesRecord>().y;
}

// Row after row of the output: whole rows are written at once, and those that are read lie close by.
void roll_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<RollLinesRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t first = std::uint64_t{piece} * record.x;
  const float* const from = call.at[0] + first;
  const float* const by = call.at[1] + first;
  float* const to = call.at[2] + first;
  const auto depth = static_cast<std::int32_t>(record.z);
  const bool circular = record.circular != 0;
  std::vector<LineShift> shifts(record.x);
  for (std::uint32_t x = 0; x < record.x; ++x) shifts[x] = line_shift(by[x], depth, circular);
  for (std::int32_t z = 0; z < depth; ++z) {
    float* const row = to + static_cast<std::uint64_t>(z) * plane;
    if (circular) {
      for (std::uint32_t x = 0; x < record.x; ++x) {
        const std::int32_t sum = z + shifts[x].whole;
        const std::int32_t low = sum < depth ? sum : sum - depth;
        const std::int32_t high = low + 1 < depth ? low + 1 : 0;
        row[x] = rolled(shifts[x].fraction, from[static_cast<std::uint64_t>(low) * plane + x],
                        from[static_cast<std::uint64_t>(high) * plane + x]);
      }
    } else {
      for (std::uint32_t x = 0; x < record.x; ++x) {
        const std::int32_t low = z + shifts[x].whole;
        const auto value = [&](std::int32_t at) {
          return at >= 0 && at < depth ? from[static_cast<std::uint64_t>(at) * plane + x] : record.fill;
        };
        row[x] = rolled(shifts[x].fraction, value(low), value(low + 1));
      }
    }
  }
}

std::uint32_t project_pieces(const KernelPointers& call) {
  const auto record = call.record<ProjectDepthRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  return static_cast<std::uint32_t>((plane + lines_per_chunk - 1) / lines_per_chunk);
}

void project_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<ProjectDepthRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t first = std::uint64_t{piece} * lines_per_chunk;
  const std::uint64_t lines = std::min<std::uint64_t>(lines_per_chunk, plane - first);
  const float* const from = call.at[0] + first;
  float* const to = call.at[1] + first;
  if (record.is_max != 0) {
    std::copy(from, from + lines, to);
    for (std::uint32_t z = 1; z < record.z; ++z) {
      const float* const row = from + z * plane;
      for (std::uint64_t i = 0; i < lines; ++i) to[i] = row[i] > to[i] ? row[i] : to[i];
    }
    return;
  }
  // The lane sum of each line: sample z belongs to lane z mod 32, and slots past the end are added as zeros.
  std::vector<float> lanes(std::uint64_t{lane_count} * lines_per_chunk, 0.0f);
  for (std::uint32_t l = 0; l < lane_count && l < record.z; ++l) {
    float* const lane = lanes.data() + std::uint64_t{l} * lines_per_chunk;
    std::copy(from + l * plane, from + l * plane + lines, lane);
    for (std::uint32_t z = l + lane_count; z < record.z; z += lane_count) {
      const float* const row = from + z * plane;
      for (std::uint64_t i = 0; i < lines; ++i) lane[i] = lane[i] + row[i];
    }
    const bool ends_early = record.z > lane_count && record.z % lane_count != 0 && l >= record.z % lane_count;
    for (std::uint64_t i = 0; i < lines && ends_early; ++i) lane[i] = lane[i] + 0.0f;
  }
  for (std::uint32_t distance = lane_count / 2; distance != 0; distance /= 2) {
    for (std::uint32_t l = 0; l < distance; ++l) {
      float* const lane = lanes.data() + std::uint64_t{l} * lines_per_chunk;
      const float* const other = lane + std::uint64_t{distance} * lines_per_chunk;
      for (std::uint64_t i = 0; i < lines; ++i) lane[i] = lane[i] + other[i];
    }
  }
  for (std::uint64_t i = 0; i < lines; ++i) to[i] = lanes[i] / static_cast<float>(record.z);
}

}  // namespace

HostKernel host_roll_lines() {
  return {roll_pieces, roll_piece};
}

HostKernel host_project_depth() {
  return {project_pieces, project_piece};
}

}  // namespace cingulum::oct
