// Where a voxel of the volume lies in a slice, and the part of a slice that some planes and rows of the volume need.
// Called by stack_slices.cpp and stack_gains.cpp for every pixel, so that all is inline; what is made of voxels is
// theirs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/result.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

inline constexpr double depth_slack = 1e-6;  // planes: of a place that rounding put beside a plane

// Planes of the volume that a slice reaches, without those left out of its top.
struct PlaneRange {
  std::ptrdiff_t first = 0, end = 0;
};

[[nodiscard]] inline PlaneRange range_of(const StackPlan& plan, std::size_t number) {
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

[[nodiscard]] inline SlicePlane plane_in_slice(const SliceDecision& slice, std::ptrdiff_t at) {
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
[[nodiscard]] inline PlaneBox rows_needed(const SliceDecision& slice, const SliceFrame& frame, std::size_t first_row,
                                          std::size_t rows, std::size_t columns) {
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

// A part of a slice, as it was read: planes from `base` on, rows from `first_row` on. Without planes: no row of the
// slice is met.
struct SlicePart {
  HostVolume volume;
  std::size_t base = 0;
  std::size_t first_row = 0;
};

// Where a pixel of the volume lies between four of a slice, in a plane of the part that was read. A neighbour that
// weighs nothing is the nearest one instead, so that what it holds does not matter.
struct PixelPlace {
  std::size_t a = 0, b = 0, d = 0, e = 0;  // upper left, upper right, lower left, lower right
  double fy = 0, fx = 0;
};

// False outside the slice. `y` and `x` are from its middle.
[[nodiscard]] inline bool find_place(const SliceDecision& slice, const SliceFrame& frame, const SlicePart& part,
                                     double y, double x, PixelPlace& place) {
  const double row = frame.row_of(y, x);
  const double column = frame.column_of(y, x);
  constexpr double slack = 1e-6;  // of a place that rounding put beside the last pixel
  if (!(row >= -slack && column >= -slack && row <= static_cast<double>(slice.rows - 1) + slack &&
        column <= static_cast<double>(slice.columns - 1) + slack)) {
    return false;
  }
  const double inside_row = std::clamp(row, 0.0, static_cast<double>(slice.rows - 1));
  const double inside_column = std::clamp(column, 0.0, static_cast<double>(slice.columns - 1));
  const auto top = static_cast<std::size_t>(inside_row);
  const auto left = static_cast<std::size_t>(inside_column);
  place.fy = inside_row - static_cast<double>(top);
  place.fx = inside_column - static_cast<double>(left);
  const std::size_t bottom = place.fy > 0 ? std::min(top + 1, slice.rows - 1) : top;
  const std::size_t right = place.fx > 0 ? std::min(left + 1, slice.columns - 1) : left;
  const std::size_t columns = part.volume.columns;
  place.a = (top - part.first_row) * columns + left;
  place.b = (top - part.first_row) * columns + right;
  place.d = (bottom - part.first_row) * columns + left;
  place.e = (bottom - part.first_row) * columns + right;
  return true;
}

// Interpolates between four voxels; zero where any of them is, since nothing is known there.
CGL_INLINE float between(float a, float b, float d, float e, double fx, double fy) {
  const bool known = (a != 0.0f) & (b != 0.0f) & (d != 0.0f) & (e != 0.0f);
  const double above = static_cast<double>(a) + fx * (static_cast<double>(b) - static_cast<double>(a));
  const double below = static_cast<double>(d) + fx * (static_cast<double>(e) - static_cast<double>(d));
  const auto value = static_cast<float>(above + fy * (below - above));
  return known ? value : 0.0f;
}

[[nodiscard]] inline float value_at(const float* plane, const PixelPlace& place) {
  return between(plane[place.a], plane[place.b], plane[place.d], plane[place.e], place.fx, place.fy);
}

// What planes [first, end) and some rows of the volume need of a slice.
[[nodiscard]] inline Result<SlicePart> read_part(const StackPlan& plan, const SliceSource& source, std::size_t number,
                                                 std::ptrdiff_t first, std::ptrdiff_t end, std::size_t first_row,
                                                 std::size_t rows) {
  const SliceDecision& slice = plan.slices[number];
  const SlicePlane top = plane_in_slice(slice, first);
  const SlicePlane bottom = plane_in_slice(slice, end - 1);
  SlicePart part;
  part.base = top.low;
  const std::size_t last = std::min(bottom.low + (bottom.part > 0 ? 1 : 0), slice.planes - 1);
  PlaneBox box = rows_needed(slice, SliceFrame(slice), first_row, rows, plan.columns);
  box.first_plane = part.base;
  box.planes = last - part.base + 1;
  if (box.rows == 0) return part;
  part.first_row = box.first_row;
  CGL_TRY_ASSIGN(part.volume, source(number, box));
  return part;
}

}  // namespace cingulum::oct
