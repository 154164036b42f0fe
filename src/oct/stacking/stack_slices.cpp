#include "oct/stacking/stack_slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "numerics/elementary64.hpp"
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

// How a pixel of the volume lies in a slice, and back: what placing a row and choosing the rows to be read share.
struct SliceFrame {
  explicit SliceFrame(const SliceDecision& slice)
      : turn(numerics::sine_cosine(-slice.rotation_deg * radians_per_degree)),
        row_centre(static_cast<double>(slice.rows - 1) / 2),
        column_centre(static_cast<double>(slice.columns - 1) / 2),
        row_shift{slice.motor_px[0], slice.shift_px[0]},
        column_shift{slice.motor_px[1], slice.shift_px[1]} {}

  [[nodiscard]] double below_centre(std::size_t row) const {
    return static_cast<double>(row) - row_shift[0] - row_shift[1] - row_centre;
  }
  [[nodiscard]] double beside_centre(std::size_t column) const {
    return static_cast<double>(column) - column_shift[0] - column_shift[1] - column_centre;
  }
  [[nodiscard]] double row_of(double y, double x) const { return turn.cosine * y - turn.sine * x + row_centre; }
  [[nodiscard]] double column_of(double y, double x) const { return turn.sine * y + turn.cosine * x + column_centre; }

  numerics::SineCosine<double> turn;
  double row_centre, column_centre;
  std::array<double, 2> row_shift, column_shift;
};

// Rows of the slice that rows of the volume are made of, with one to either side; none where they do not meet.
PlaneBox rows_needed(const SliceDecision& slice, const SliceFrame& frame, std::size_t first_row, std::size_t rows,
                     std::size_t columns) {
  double low = 0, high = 0;
  bool any = false;
  for (const std::size_t row : {first_row, first_row + rows - 1}) {
    for (const std::size_t column : {std::size_t{0}, columns - 1}) {
      const double at = frame.row_of(frame.below_centre(row), frame.beside_centre(column));
      low = any ? std::min(low, at) : at;
      high = any ? std::max(high, at) : at;
      any = true;
    }
  }
  PlaneBox box;
  const double last = static_cast<double>(slice.rows - 1);
  if (high < -1 || low > last + 1) return box;
  box.first_row = static_cast<std::size_t>(std::max(0.0, std::floor(low) - 1));
  box.rows = static_cast<std::size_t>(std::min(last, std::floor(high) + 2)) + 1 - box.first_row;
  return box;
}

// Where a pixel of the volume lies between four of a slice. A neighbour that weighs nothing is the nearest one instead,
// so that what it holds does not matter.
struct PixelPlace {
  std::size_t a = 0, b = 0, d = 0, e = 0;  // upper left, upper right, lower left, lower right
  double fy = 0, fx = 0;
  std::size_t column = 0;  // of the volume
};

// Rows [to_row, to_row + rows) of the volume, of the planes that `part` has of the slice: rows from `part_row` on.
HostVolume place_rows(const HostVolume& part, std::size_t part_row, const SliceDecision& slice, const SliceFrame& frame,
                      std::size_t to_row, std::size_t rows, std::size_t columns, ThreadPool* pool) {
  HostVolume placed(part.planes, rows, columns);
  const auto place_row = [&](std::size_t r) {
    const double y = frame.below_centre(to_row + r);
    std::vector<PixelPlace> places;
    places.reserve(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const double x = frame.beside_centre(c);
      const double row = frame.row_of(y, x);
      const double column = frame.column_of(y, x);
      constexpr double slack = 1e-6;  // of a place that rounding put beside the last pixel
      if (!(row >= -slack && column >= -slack && row <= static_cast<double>(slice.rows - 1) + slack &&
            column <= static_cast<double>(slice.columns - 1) + slack)) {
        continue;
      }
      const double inside_row = std::clamp(row, 0.0, static_cast<double>(slice.rows - 1));
      const double inside_column = std::clamp(column, 0.0, static_cast<double>(slice.columns - 1));
      const auto top = static_cast<std::size_t>(inside_row);
      const auto left = static_cast<std::size_t>(inside_column);
      PixelPlace place;
      place.fy = inside_row - static_cast<double>(top);
      place.fx = inside_column - static_cast<double>(left);
      const std::size_t bottom = place.fy > 0 ? std::min(top + 1, slice.rows - 1) : top;
      const std::size_t right = place.fx > 0 ? std::min(left + 1, slice.columns - 1) : left;
      place.a = (top - part_row) * part.columns + left;
      place.b = (top - part_row) * part.columns + right;
      place.d = (bottom - part_row) * part.columns + left;
      place.e = (bottom - part_row) * part.columns + right;
      place.column = c;
      places.push_back(place);
    }
    for (std::size_t z = 0; z < part.planes; ++z) {
      const float* const from = part.values.data() + z * part.plane_size();
      float* const to = placed.values.data() + placed.index(z, r, 0);
      for (const PixelPlace& place : places) {
        const float a = from[place.a], b = from[place.b], d = from[place.d], e = from[place.e];
        // Beside a voxel where nothing is, nothing is known.
        if (a == 0.0f || b == 0.0f || d == 0.0f || e == 0.0f) continue;
        const double above = static_cast<double>(a) + place.fx * (static_cast<double>(b) - static_cast<double>(a));
        const double below = static_cast<double>(d) + place.fx * (static_cast<double>(e) - static_cast<double>(d));
        to[place.column] = static_cast<float>(above + place.fy * (below - above));
      }
    }
  };
  for_each_index(pool, rows, place_row);
  return placed;
}

// The planes of a slice that planes [first, end) of the volume need, placed, some rows of them; `base` is the first.
struct PlacedPlanes {
  HostVolume volume;
  std::size_t base = 0;
};

Result<PlacedPlanes> read_placed(const StackPlan& plan, const SliceSource& source, std::size_t number,
                                 std::ptrdiff_t first, std::ptrdiff_t end, std::size_t first_row, std::size_t rows,
                                 ThreadPool* pool) {
  const SliceDecision& slice = plan.slices[number];
  const SlicePlane top = plane_in_slice(slice, first);
  const SlicePlane bottom = plane_in_slice(slice, end - 1);
  PlacedPlanes placed;
  placed.base = top.low;
  const std::size_t last = std::min(bottom.low + (bottom.part > 0 ? 1 : 0), slice.planes - 1);
  const SliceFrame frame(slice);
  PlaneBox box = rows_needed(slice, frame, first_row, rows, plan.columns);
  box.first_plane = placed.base;
  box.planes = last - placed.base + 1;
  if (box.rows == 0) {
    placed.volume = HostVolume(box.planes, rows, plan.columns);
    return placed;
  }
  CGL_TRY_ASSIGN(const HostVolume part, source(number, box));
  placed.volume = place_rows(part, box.first_row, slice, frame, first_row, rows, plan.columns, pool);
  return placed;
}

// What two neighbours have where both have something: a sample, which has the same medians.
struct SharedVoxels {
  std::vector<float> above, below;
};

// The mean of both middle values where their number is even.
double median_of(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return static_cast<double>(*middle);
  return 0.5 * (static_cast<double>(*middle) + static_cast<double>(*std::max_element(values.begin(), middle)));
}

// Median of what the upper slice has over that of the lower.
double ratio_of(SharedVoxels voxels) {
  constexpr std::size_t least_voxels = 1000;
  if (voxels.above.size() < least_voxels) return 1;
  const double bottom = median_of(voxels.below);
  return bottom > 0 ? median_of(voxels.above) / bottom : 1;
}

}  // namespace

Status find_gains(StackPlan& plan, const SliceSource& source, const StackOptions& options, ThreadPool* pool,
                  std::size_t rows_at_once) {
  return catch_out_of_memory([&]() -> Status {
    std::vector<double> ratios;
    for (std::size_t i = 1; i < plan.slices.size(); ++i) {
      const std::ptrdiff_t first = range_of(plan, i).first;
      const std::ptrdiff_t end = std::min(range_of(plan, i - 1).end, range_of(plan, i).end);
      if (first >= end) {
        ratios.push_back(1);
        continue;
      }
      const std::size_t plane = plan.rows * plan.columns;
      const auto planes = static_cast<std::size_t>(end - first);
      const std::size_t step = std::max<std::size_t>(1, planes * plane / gain_sample_voxels);
      SharedVoxels voxels;
      voxels.above.reserve(planes * (plane / step + 1));
      voxels.below.reserve(planes * (plane / step + 1));
      constexpr auto at_a_time = static_cast<std::ptrdiff_t>(planes_at_a_time);
      for (std::ptrdiff_t from = first; from < end; from += at_a_time) {
        const std::ptrdiff_t to = std::min(end, from + at_a_time);
        for (std::size_t row = 0; row < plan.rows; row += rows_at_once) {
          const std::size_t rows = std::min(rows_at_once, plan.rows - row);
          CGL_TRY_ASSIGN(const PlacedPlanes upper, read_placed(plan, source, i - 1, from, to, row, rows, pool));
          CGL_TRY_ASSIGN(const PlacedPlanes lower, read_placed(plan, source, i, from, to, row, rows, pool));
          const std::size_t begin = row * plan.columns;
          for (std::ptrdiff_t at = from; at < to; ++at) {
            const std::span<const float> a =
                upper.volume.plane(plane_in_slice(plan.slices[i - 1], at).low - upper.base);
            const std::span<const float> b = lower.volume.plane(plane_in_slice(plan.slices[i], at).low - lower.base);
            // Every step-th pixel of a plane, counted from its first.
            for (std::size_t k = (begin + step - 1) / step * step - begin; k < a.size(); k += step) {
              if (!(a[k] > 0 && b[k] > 0)) continue;
              voxels.above.push_back(a[k]);
              voxels.below.push_back(b[k]);
            }
          }
        }
      }
      ratios.push_back(ratio_of(std::move(voxels)));
    }
    decide_gains(ratios, options, plan);
    return {};
  });
}

Result<HostVolume> stack_box(const StackPlan& plan, const SliceSource& source, const PlaneBox& box, ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    HostVolume slab(box.planes, box.rows, plan.columns);
    std::vector<float> weights(slab.values.size(), 0.0f);
    const auto slab_first = static_cast<std::ptrdiff_t>(box.first_plane);
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      const SliceDecision& slice = plan.slices[i];
      const PlaneRange range = range_of(plan, i);
      const std::ptrdiff_t low = std::max(range.first, slab_first);
      const std::ptrdiff_t high = std::min(range.end, slab_first + static_cast<std::ptrdiff_t>(box.planes));
      if (low >= high) continue;
      CGL_TRY_ASSIGN(const PlacedPlanes placed, read_placed(plan, source, i, low, high, box.first_row, box.rows, pool));
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
