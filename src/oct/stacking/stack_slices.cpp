#include "oct/stacking/stack_slices.hpp"

#include <algorithm>
#include <cmath>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

constexpr double half_turn = 0x1.921fb54442d18p+1;

constexpr double depth_slack = 1e-6;  // planes: of a place that rounding put beside a plane

// Planes of the volume that a slice reaches, without those left out of its top.
struct PlaneRange {
  std::ptrdiff_t first = 0, end = 0;
};

PlaneRange range_of(const StackPlan& plan, std::size_t number) {
  const SliceDecision& slice = plan.slices[number];
  const double kept = number == 0 ? 0.0 : static_cast<double>(std::min(plan.first_plane, slice.planes - 1));
  PlaneRange range;
  range.first = static_cast<std::ptrdiff_t>(std::ceil(slice.start_plane + kept - depth_slack));
  range.end =
      static_cast<std::ptrdiff_t>(std::floor(slice.start_plane + static_cast<double>(slice.planes - 1) + depth_slack)) +
      1;
  return range;
}

// A plane of the volume in the slice: the plane at or above it, and how far the next one is.
struct SlicePlane {
  std::size_t low = 0;
  double part = 0;
};

SlicePlane plane_in_slice(const SliceDecision& slice, std::ptrdiff_t at) {
  const double place =
      std::clamp(static_cast<double>(at) - slice.start_plane, 0.0, static_cast<double>(slice.planes - 1));
  SlicePlane plane;
  plane.low = static_cast<std::size_t>(place + depth_slack);
  plane.part = place - static_cast<double>(plane.low);
  if (plane.part < depth_slack) plane.part = 0;
  return plane;
}

// The planes of a slice that planes [first, end) of the volume need, placed; `base` is the first of them.
struct PlacedPlanes {
  HostVolume volume;
  std::size_t base = 0;
};

Result<PlacedPlanes> read_placed(const StackPlan& plan, const SliceSource& source, std::size_t number,
                                 std::ptrdiff_t first, std::ptrdiff_t end, ThreadPool* pool) {
  const SliceDecision& slice = plan.slices[number];
  const SlicePlane top = plane_in_slice(slice, first);
  const SlicePlane bottom = plane_in_slice(slice, end - 1);
  PlacedPlanes placed;
  placed.base = top.low;
  const std::size_t last = std::min(bottom.low + (bottom.part > 0 ? 1 : 0), slice.planes - 1);
  CGL_TRY_ASSIGN(const HostVolume planes, source(number, placed.base, last - placed.base + 1));
  placed.volume = place_slice(planes, slice, plan.rows, plan.columns, pool);
  return placed;
}

// Median of what the upper slice has over that of the lower, where both have something.
double ratio_of(const PlacedPlanes& upper, const SliceDecision& upper_slice, const PlacedPlanes& lower,
                const SliceDecision& lower_slice, std::ptrdiff_t first, std::ptrdiff_t end) {
  constexpr std::size_t least_voxels = 1000;
  constexpr std::size_t most_voxels = std::size_t{1} << 22U;  // a sample of so many has the same median
  std::vector<double> above, below;
  const std::size_t plane = upper.volume.plane_size();
  const std::size_t step = std::max<std::size_t>(1, static_cast<std::size_t>(end - first) * plane / most_voxels);
  for (std::ptrdiff_t at = first; at < end; ++at) {
    const std::span<const float> a = upper.volume.plane(plane_in_slice(upper_slice, at).low - upper.base);
    const std::span<const float> b = lower.volume.plane(plane_in_slice(lower_slice, at).low - lower.base);
    for (std::size_t i = 0; i < plane; i += step) {
      if (!(a[i] > 0 && b[i] > 0)) continue;
      above.push_back(static_cast<double>(a[i]));
      below.push_back(static_cast<double>(b[i]));
    }
  }
  if (above.size() < least_voxels) return 1;
  const double bottom = median(std::move(below));
  return bottom > 0 ? median(std::move(above)) / bottom : 1;
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

Status find_gains(StackPlan& plan, const SliceSource& source, const StackOptions& options, ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Status {
    std::vector<double> ratios;
    for (std::size_t i = 1; i < plan.slices.size(); ++i) {
      const std::ptrdiff_t first = range_of(plan, i).first;
      const std::ptrdiff_t end = std::min(range_of(plan, i - 1).end, range_of(plan, i).end);
      if (first >= end) {
        ratios.push_back(1);
        continue;
      }
      CGL_TRY_ASSIGN(const PlacedPlanes upper, read_placed(plan, source, i - 1, first, end, pool));
      CGL_TRY_ASSIGN(const PlacedPlanes lower, read_placed(plan, source, i, first, end, pool));
      ratios.push_back(ratio_of(upper, plan.slices[i - 1], lower, plan.slices[i], first, end));
    }
    decide_gains(ratios, options, plan);
    return {};
  });
}

Result<HostVolume> stack_planes(const StackPlan& plan, const SliceSource& source, std::size_t first, std::size_t count,
                                ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    HostVolume slab(count, plan.rows, plan.columns);
    std::vector<float> weights(slab.values.size(), 0.0f);
    const auto slab_first = static_cast<std::ptrdiff_t>(first);
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      const SliceDecision& slice = plan.slices[i];
      const PlaneRange range = range_of(plan, i);
      const std::ptrdiff_t low = std::max(range.first, slab_first);
      const std::ptrdiff_t high = std::min(range.end, slab_first + static_cast<std::ptrdiff_t>(count));
      if (low >= high) continue;
      CGL_TRY_ASSIGN(const PlacedPlanes placed, read_placed(plan, source, i, low, high, pool));
      // Planes shared with the slice before and with the next one.
      const std::ptrdiff_t shared_above =
          i > 0 ? std::max<std::ptrdiff_t>(0, range_of(plan, i - 1).end - range.first) : 0;
      const std::ptrdiff_t shared_below =
          i + 1 < plan.slices.size() ? std::max<std::ptrdiff_t>(0, range.end - range_of(plan, i + 1).first) : 0;
      const auto mix = [&](std::size_t step) {
        const std::ptrdiff_t at = low + static_cast<std::ptrdiff_t>(step);
        const auto ramp = [](std::ptrdiff_t distance, std::ptrdiff_t width) {
          if (distance >= width) return 1.0;
          const double t = (static_cast<double>(distance) + 0.5) / static_cast<double>(width);
          return 0.5 * (1 - numerics::cosine(half_turn * t));
        };
        const double weight = ramp(at - range.first, shared_above) * ramp(range.end - 1 - at, shared_below);
        const SlicePlane plane = plane_in_slice(slice, at);
        const std::span<const float> upper = placed.volume.plane(plane.low - placed.base);
        const std::span<const float> lower = plane.part > 0 ? placed.volume.plane(plane.low - placed.base + 1) : upper;
        const auto to_plane = static_cast<std::size_t>(at - slab_first);
        const std::span<float> to = slab.plane(to_plane);
        float* const sum = weights.data() + to_plane * slab.plane_size();
        for (std::size_t k = 0; k < to.size(); ++k) {
          if (upper[k] == 0.0f || lower[k] == 0.0f) continue;
          const double between = static_cast<double>(upper[k]) +
                                 plane.part * (static_cast<double>(lower[k]) - static_cast<double>(upper[k]));
          const double value = slice.gain * between;
          // A running weighted mean: equal values stay what they are.
          const double total = static_cast<double>(sum[k]) + weight;
          to[k] =
              static_cast<float>(static_cast<double>(to[k]) + weight / total * (value - static_cast<double>(to[k])));
          sum[k] = static_cast<float>(total);
        }
      };
      for_each_index(pool, static_cast<std::size_t>(high - low), mix);
    }
    return slab;
  });
}

}  // namespace cingulum::oct
