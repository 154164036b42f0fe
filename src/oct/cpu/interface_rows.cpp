// The tissue interface on the CPU: logarithm and box plane by plane, the peak along z for lines that are neighbours in
// x.
#include <algorithm>
#include <vector>

#include "numerics/pack_elementary.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/interface_line.hpp"

namespace cingulum::oct {
namespace {

template <class Number>
CGL_INLINE void log_of_plane(const float* from, std::uint64_t count, float* to) {
  std::uint64_t i = 0;
  for (; i + static_cast<std::uint64_t>(Number::width) <= count; i += static_cast<std::uint64_t>(Number::width)) {
    const Number value = Number::load(from + i);
    numerics::select(value > Number(0.0f), numerics::logarithm(value), value).store(to + i);
  }
  for (; i < count; ++i) to[i] = tissue_log(from[i]);
}

// to[i] = sum over k of from[i + rows[k]], ascending.
template <class Number>
CGL_INLINE void sum_at(const std::vector<const float*>& rows, std::uint64_t count, float scale, bool scaled,
                       float* to) {
  constexpr auto lanes = static_cast<std::uint64_t>(Number::width);
  std::uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    Number a = Number(0.0f), b = a, c = a, d = a;
    for (const float* const row : rows) {
      a = a + Number::load(row + i);
      b = b + Number::load(row + i + lanes);
      c = c + Number::load(row + i + 2 * lanes);
      d = d + Number::load(row + i + 3 * lanes);
    }
    if (scaled) {
      const Number by = Number(scale);
      a = a * by;
      b = b * by;
      c = c * by;
      d = d * by;
    }
    a.store(to + i);
    b.store(to + i + lanes);
    c.store(to + i + 2 * lanes);
    d.store(to + i + 3 * lanes);
  }
  for (; i < count; ++i) {
    float sum = 0.0f;
    for (const float* const row : rows) sum = sum + row[i];
    to[i] = scaled ? sum * scale : sum;
  }
}

void log_box_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<LogBoxRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const float* const from = call.at[0] + piece * plane;
  float* const to = call.at[1] + piece * plane;
  const auto below = static_cast<std::int32_t>(record.window / 2);
  const auto height = static_cast<std::int32_t>(record.y);
  const auto width = static_cast<std::int32_t>(record.x);
  std::vector<float> logs(record.use_log != 0 ? plane : 0);
  std::vector<float> line(std::uint64_t{record.x} + record.window);
  std::vector<const float*> rows(record.window);
  numerics::with_packs<float>([&]<class Number>() {
    const float* values = from;
    if (record.use_log != 0) {
      log_of_plane<Number>(from, plane, logs.data());
      values = logs.data();
    }
    for (std::int32_t y = 0; y < height; ++y) {
      for (std::uint32_t k = 0; k < record.window; ++k) {
        rows[k] =
            values + static_cast<std::uint64_t>(reflected(y - below + static_cast<std::int32_t>(k), height)) * record.x;
      }
      float* const middle = line.data() + below;
      sum_at<Number>(rows, record.x, 1.0f, false, middle);
      // Sums of columns beyond the ends are those of the columns that they reflect.
      for (std::int32_t i = 1; i <= below; ++i) middle[-i] = middle[reflected(-i, width)];
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(record.window) - 1 - below; ++i) {
        middle[width + i] = middle[reflected(width + i, width)];
      }
      for (std::uint32_t k = 0; k < record.window; ++k) rows[k] = line.data() + k;
      sum_at<Number>(rows, record.x, record.scale, true, to + static_cast<std::uint64_t>(y) * record.x);
    }
  });
}

void compress_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<CompressLinesRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  float* const volume = call.at[0];
  const float* const mask = call.at[1];
  auto* const places = reinterpret_cast<std::uint32_t*>(call.at[2]);
  for (std::uint64_t line = std::uint64_t{piece} * record.x; line < std::uint64_t{piece + 1} * record.x; ++line) {
    std::uint32_t kept = 0;
    for (std::uint32_t z = 0; z < record.z; ++z) {
      if (mask[z * plane + line] == 0.0f) continue;
      volume[kept * plane + line] = volume[z * plane + line];
      places[kept * plane + line] = z;
      ++kept;
    }
    places[record.z * plane + line] = kept;
  }
}

// One line, masked or not.
float line_depth(const KernelPointers& call, const DerivativePeakRecord& record, std::uint64_t line) {
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const float* const samples = call.at[0] + line;
  const float* const weights = call.at[1];
  const std::uint32_t* const places = call.words_at(2) + line;
  const bool masked = record.masked != 0;
  const std::uint32_t count = masked ? places[record.z * plane] : record.z;
  const auto load = [&](std::uint32_t z) { return samples[z * plane]; };
  const auto place = [&](std::uint32_t j) { return places[j * plane]; };
  LinePeak peak{};
  peak = find_peak<float, bool>(count, record.radius, weights, false, load);
  if (masked) {
    peak.at = masked_peak(peak, count, record.z, place);
    peak.before = peak.best;
    peak.after = peak.best;
  }
  float depth = interface_depth(peak, record.z, record.sub_voxel != 0, record.lift);
  if (record.smooth_weights != 0) {
    const std::uint32_t padded = 2 * record.radius + 1 + 2 * (peak_batch - 1);
    LinePeak smooth = find_peak<float, bool>(count, record.radius, weights + padded, true, load);
    if (masked) smooth.at = masked_peak(smooth, count, record.z, place);
    if (smooth.at < depth) depth = smooth.at;
  }
  return depth;
}

void peak_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<DerivativePeakRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t first = std::uint64_t{piece} * record.x;
  float* const depths = call.at[3];
  std::uint64_t i = first;
  const std::uint64_t end = first + record.x;
  if (record.masked == 0) {
    numerics::with_packs<float>([&]<class Number>() {
      const std::uint32_t padded = 2 * record.radius + 1 + 2 * (peak_batch - 1);
      for (; i + static_cast<std::uint64_t>(Number::width) <= end; i += static_cast<std::uint64_t>(Number::width)) {
        const float* const samples = call.at[0] + i;
        const auto load = [&](std::uint32_t z) { return Number::load(samples + z * plane); };
        using Mask = typename Number::Mask;
        const auto peaks = find_peak<Number, Mask>(record.z, record.radius, call.at[1], false, load);
        for (int lane = 0; lane < Number::width; ++lane) {
          LinePeak peak{};
          peak.best = peaks.best.lanes[lane];
          peak.at = peaks.at.lanes[lane];
          peak.before = peaks.before.lanes[lane];
          peak.after = peaks.after.lanes[lane];
          depths[i + static_cast<std::uint64_t>(lane)] =
              interface_depth(peak, record.z, record.sub_voxel != 0, record.lift);
        }
        if (record.smooth_weights == 0) continue;
        const auto smooth = find_peak<Number, Mask>(record.z, record.radius, call.at[1] + padded, true, load);
        for (int lane = 0; lane < Number::width; ++lane) {
          float& depth = depths[i + static_cast<std::uint64_t>(lane)];
          if (smooth.at.lanes[lane] < depth) depth = smooth.at.lanes[lane];
        }
      }
    });
  }
  for (; i < end; ++i) depths[i] = line_depth(call, record, i);
}

}  // namespace

constinit const HostKernel host_log_box = {plane_pieces<LogBoxRecord>, log_box_piece};
constinit const HostKernel host_compress_lines = {row_pieces<CompressLinesRecord>, compress_piece};
constinit const HostKernel host_derivative_peak = {row_pieces<DerivativePeakRecord>, peak_piece};

}  // namespace cingulum::oct
