#include "oct/stacking/stack_slices.hpp"

#include <algorithm>
#include <cmath>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {
namespace {

constexpr double half_turn = 0x1.921fb54442d18p+1;

// Whole planes of the volume at which a slice begins and ends, without the planes left out of its top.
struct PlaneRange {
  std::ptrdiff_t start = 0;  // of its plane 0
  std::ptrdiff_t first = 0, end = 0;
};

PlaneRange range_of(const SliceDecision& decision, std::size_t planes, std::size_t first_plane, bool first_slice) {
  PlaneRange range;
  range.start = std::lround(decision.start_plane);
  range.first = range.start + (first_slice ? 0 : static_cast<std::ptrdiff_t>(std::min(first_plane, planes)));
  range.end = range.start + static_cast<std::ptrdiff_t>(planes);
  return range;
}

}  // namespace

HostVolume place_slice(const HostVolume& slice, const SliceDecision& decision, std::size_t rows, std::size_t columns,
                       ThreadPool* pool) {
  HostVolume placed(slice.planes, rows, columns);
  const numerics::SineCosine<double> turn = numerics::sine_cosine(-decision.rotation_deg * radians_per_degree);
  const double row_centre = static_cast<double>(slice.rows - 1) / 2;
  const double column_centre = static_cast<double>(slice.columns - 1) / 2;
  const auto place_row = [&](std::size_t r) {
    const double y = static_cast<double>(r) - decision.motor_px[0] - decision.shift_px[0] - row_centre;
    for (std::size_t c = 0; c < columns; ++c) {
      const double x = static_cast<double>(c) - decision.motor_px[1] - decision.shift_px[1] - column_centre;
      const double row = turn.cosine * y - turn.sine * x + row_centre;
      const double column = turn.sine * y + turn.cosine * x + column_centre;
      constexpr double slack = 1e-6;  // of a place that rounding put beside the last pixel
      if (!(row >= -slack && column >= -slack && row <= static_cast<double>(slice.rows - 1) + slack &&
            column <= static_cast<double>(slice.columns - 1) + slack)) {
        continue;
      }
      const double inside_row = std::clamp(row, 0.0, static_cast<double>(slice.rows - 1));
      const double inside_column = std::clamp(column, 0.0, static_cast<double>(slice.columns - 1));
      const auto top = static_cast<std::size_t>(inside_row);
      const auto left = static_cast<std::size_t>(inside_column);
      const std::size_t bottom = std::min(top + 1, slice.rows - 1);
      const std::size_t right = std::min(left + 1, slice.columns - 1);
      const double fy = inside_row - static_cast<double>(top);
      const double fx = inside_column - static_cast<double>(left);
      for (std::size_t z = 0; z < slice.planes; ++z) {
        const double a = static_cast<double>(slice.at(z, top, left)), b = static_cast<double>(slice.at(z, top, right));
        const double d = static_cast<double>(slice.at(z, bottom, left)),
                     e = static_cast<double>(slice.at(z, bottom, right));
        // Beside a voxel where nothing is, nothing is known.
        if ((a == 0 && (1 - fy) * (1 - fx) > 0) || (b == 0 && (1 - fy) * fx > 0) || (d == 0 && fy * (1 - fx) > 0) ||
            (e == 0 && fy * fx > 0)) {
          continue;
        }
        const double above = a + fx * (b - a);
        const double below = d + fx * (e - d);
        placed.at(z, r, c) = static_cast<float>(above + fy * (below - above));
      }
    }
  };
  for_each_index(pool, rows, place_row);
  return placed;
}

double overlap_ratio(const HostVolume& upper, const SliceDecision& upper_decision, const HostVolume& lower,
                     const SliceDecision& lower_decision, std::size_t first_plane) {
  const std::ptrdiff_t offset = std::lround(lower_decision.start_plane) - std::lround(upper_decision.start_plane);
  std::vector<double> above, below;
  constexpr std::size_t least_voxels = 1000;
  for (std::size_t z = first_plane; z < lower.planes; ++z) {
    const std::ptrdiff_t at = offset + static_cast<std::ptrdiff_t>(z);
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(upper.planes)) continue;
    const std::span<const float> a = upper.plane(static_cast<std::size_t>(at));
    const std::span<const float> b = lower.plane(z);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i] > 0 && b[i] > 0)) continue;
      above.push_back(static_cast<double>(a[i]));
      below.push_back(static_cast<double>(b[i]));
    }
  }
  if (above.size() < least_voxels) return 1;
  const double bottom = median(std::move(below));
  return bottom > 0 ? median(std::move(above)) / bottom : 1;
}

Result<HostVolume> stack_slices(StackPlan& plan, const SliceSource& source, const StackOptions& options,
                                ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    const std::uint64_t volume_bytes = std::uint64_t{4} * plan.planes * plan.rows * plan.columns;
    CGL_TRY(check_host_memory("stacking", 3 * volume_bytes));
    std::vector<double> ratios;
    std::vector<std::size_t> planes;
    HostVolume before;
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      CGL_TRY_ASSIGN(const HostVolume slice, source(i));
      planes.push_back(slice.planes);
      HostVolume placed = place_slice(slice, plan.slices[i], plan.rows, plan.columns, pool);
      if (i > 0) {
        ratios.push_back(overlap_ratio(before, plan.slices[i - 1], placed, plan.slices[i], plan.first_plane));
      }
      before = std::move(placed);
    }
    decide_gains(ratios, options, plan);
    HostVolume volume(plan.planes, plan.rows, plan.columns);
    std::vector<float> weights(volume.values.size(), 0.0f);
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      CGL_TRY_ASSIGN(const HostVolume slice, source(i));
      const HostVolume placed = place_slice(slice, plan.slices[i], plan.rows, plan.columns, pool);
      const PlaneRange range = range_of(plan.slices[i], planes[i], plan.first_plane, i == 0);
      // Planes shared with the slice before and with the next one.
      const std::ptrdiff_t shared_above =
          i > 0 ? std::max<std::ptrdiff_t>(
                      0, range_of(plan.slices[i - 1], planes[i - 1], plan.first_plane, i == 1).end - range.first)
                : 0;
      const std::ptrdiff_t shared_below =
          i + 1 < plan.slices.size()
              ? std::max<std::ptrdiff_t>(
                    0, range.end - range_of(plan.slices[i + 1], planes[i + 1], plan.first_plane, false).first)
              : 0;
      const double gain = plan.slices[i].gain;
      const auto mix = [&](std::size_t step) {
        const std::ptrdiff_t at = range.first + static_cast<std::ptrdiff_t>(step);
        if (at < 0 || at >= static_cast<std::ptrdiff_t>(volume.planes)) return;
        const auto ramp = [](std::ptrdiff_t distance, std::ptrdiff_t width) {
          if (distance >= width) return 1.0;
          const double t = (static_cast<double>(distance) + 0.5) / static_cast<double>(width);
          return 0.5 * (1 - numerics::cosine(half_turn * t));
        };
        const double weight = ramp(at - range.first, shared_above) * ramp(range.end - 1 - at, shared_below);
        const std::span<const float> from = placed.plane(static_cast<std::size_t>(at - range.start));
        const std::span<float> to = volume.plane(static_cast<std::size_t>(at));
        float* const sum = weights.data() + static_cast<std::size_t>(at) * volume.plane_size();
        for (std::size_t k = 0; k < from.size(); ++k) {
          if (from[k] == 0.0f) continue;
          const double value = gain * static_cast<double>(from[k]);
          // A running weighted mean: equal values stay what they are.
          const double total = static_cast<double>(sum[k]) + weight;
          to[k] =
              static_cast<float>(static_cast<double>(to[k]) + weight / total * (value - static_cast<double>(to[k])));
          sum[k] = static_cast<float>(total);
        }
      };
      for_each_index(pool, static_cast<std::size_t>(range.end - range.first), mix);
    }
    return volume;
  });
}

}  // namespace cingulum::oct
