// A-lines that are ordered, moved, summed and divided on the CPU.
#include <algorithm>
#include <vector>

#include "numerics/lanes_portable.hpp"
#include "numerics/pack.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/layer_line.hpp"
#include "oct/kernel/roll_line.hpp"

namespace cingulum::oct {
namespace {

using numerics::lane_count;

// A page of values: each plane is read once, a page at a time.
constexpr std::uint32_t lines_per_chunk = 1024;

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

// Squares that stay in the cache while the order of samples and lines is exchanged.
void order_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<OrderLinesRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const float* const from = call.at[0] + std::uint64_t{piece} * record.lines * record.z;
  float* const to = call.at[1] + std::uint64_t{piece} * record.x;
  for (std::uint32_t first_z = 0; first_z < record.z; first_z += order_side) {
    const std::uint32_t end_z = std::min(record.z, first_z + order_side);
    for (std::uint32_t first_x = 0; first_x < record.x; first_x += order_side) {
      const std::uint32_t end_x = std::min(record.x, first_x + order_side);
      for (std::uint32_t z = first_z; z < end_z; ++z) {
        for (std::uint32_t x = first_x; x < end_x; ++x) {
          const std::uint32_t line = record.first_line + x;
          to[z * plane + x] = from[std::uint64_t{line < record.lines ? line : line - record.lines} * record.z + z];
        }
      }
    }
  }
}

void layer_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<LayerSumsRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t row = std::uint64_t{piece} * record.x;
  const auto end = static_cast<std::int32_t>(record.z);
  const auto depth = static_cast<std::int32_t>(record.depth);
  const auto layered = static_cast<std::int32_t>(record.layers * layer_planes);
  float* const sums = call.at[2] + row;
  float* const tissue = sums + record.layers * plane;
  float* const water = tissue + plane;
  std::vector<LineParts> parts(record.x);
  for (std::uint32_t x = 0; x < record.x; ++x) parts[x] = line_parts(call.at[1][row + x], end);
  for (std::uint32_t k = 0; k < record.layers + 2; ++k) std::fill_n(sums + k * plane, record.x, 0.0f);
  for (std::int32_t z = 0; z < end; ++z) {
    const float* const values = call.at[0] + static_cast<std::uint64_t>(z) * plane + row;
    for (std::uint32_t x = 0; x < record.x; ++x) {
      const std::int32_t below = z - parts[x].first;
      if (below >= 0 && below < layered) {
        float& layer = sums[static_cast<std::uint32_t>(below) / layer_planes * plane + x];
        layer = layer + values[x];
      }
      if (below >= 0 && below < depth) tissue[x] = tissue[x] + values[x];
      if (z < parts[x].water) water[x] = water[x] + values[x];
    }
  }
}

void divide_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<DivideLinesRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const float* const from = call.at[0] + piece * plane;
  float* const to = call.at[2] + piece * plane;
  for (std::uint64_t i = 0; i < plane; ++i) to[i] = from[i] / call.at[1][i];
}

}  // namespace

constinit const HostKernel host_order_lines = {row_pieces<OrderLinesRecord>, order_piece};
constinit const HostKernel host_layer_sums = {row_pieces<LayerSumsRecord>, layer_piece};
constinit const HostKernel host_divide_lines = {plane_pieces<DivideLinesRecord>, divide_piece};
constinit const HostKernel host_roll_lines = {row_pieces<RollLinesRecord>, roll_piece};
constinit const HostKernel host_project_depth = {project_pieces, project_piece};

}  // namespace cingulum::oct
