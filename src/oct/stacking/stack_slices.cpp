#include "oct/stacking/stack_slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/bulk_memory.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
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
bool find_place(const SliceDecision& slice, const SliceFrame& frame, const SlicePart& part, double y, double x,
                PixelPlace& place) {
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

CGL_SIMD_CLONES void place_run(const float* a, const float* b, const float* d, const float* e, const double* fx,
                               const double* fy, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = between(a[i], b[i], d[i], e[i], fx[i], fy[i]);
}

// What a row of a slice adds to one of the volume: `upper` and `lower` are of the planes around it, `part` of the way
// to the lower one.
struct MixedPlane {
  double part = 0, gain = 1, weight = 0;
};
CGL_SIMD_CLONES void mix_row(const float* upper, const float* lower, const MixedPlane& plane, std::size_t columns,
                             float* value, float* sum) {
  const MixedPlane by = plane;
  for (std::size_t k = 0; k < columns; ++k) {
    const bool known = (upper[k] != 0.0f) & (lower[k] != 0.0f);
    const double in_depth =
        static_cast<double>(upper[k]) + by.part * (static_cast<double>(lower[k]) - static_cast<double>(upper[k]));
    const double found = by.gain * in_depth;
    // A running weighted mean: equal values stay what they are.
    const double total = static_cast<double>(sum[k]) + by.weight;
    const double mean = static_cast<double>(value[k]) + by.weight / total * (found - static_cast<double>(value[k]));
    value[k] = known ? static_cast<float>(mean) : value[k];
    sum[k] = known ? static_cast<float>(total) : sum[k];
  }
}

float value_at(const float* plane, const PixelPlace& place) {
  return between(plane[place.a], plane[place.b], plane[place.d], plane[place.e], place.fx, place.fy);
}

// A row of the volume in a slice: pixels that lie side by side in both are one run, the same for all planes.
class RowPlaces {
 public:
  void find(const SliceDecision& slice, const SliceFrame& frame, const SlicePart& part, std::size_t row,
            std::size_t columns) {
    runs_.clear();
    fx_.resize(columns);
    fy_.resize(columns);
    const double y = frame.below_centre(row);
    for (std::size_t c = 0; c < columns; ++c) {
      PixelPlace place;
      if (!find_place(slice, frame, part, y, frame.beside_centre(c), place)) continue;
      fx_[c] = place.fx;
      fy_[c] = place.fy;
      if (!runs_.empty() && runs_.back().end == c && runs_.back().goes_on(place)) {
        runs_.back().end = c + 1;
      } else {
        runs_.push_back({c, c + 1, place});
      }
    }
  }

  // Interpolates the row from a plane of the slice; zero where that shows nothing.
  void fill(const float* plane, std::span<float> to) const {
    std::size_t done = 0;
    for (const Run& run : runs_) {
      std::fill(to.begin() + static_cast<std::ptrdiff_t>(done), to.begin() + static_cast<std::ptrdiff_t>(run.begin),
                0.0f);
      const float* const a = plane + run.first.a;
      const float* const b = plane + run.first.b;
      const float* const d = plane + run.first.d;
      const float* const e = plane + run.first.e;
      const double* const fx = fx_.data() + run.begin;
      const double* const fy = fy_.data() + run.begin;
      place_run(a, b, d, e, fx, fy, run.end - run.begin, to.data() + run.begin);
      done = run.end;
    }
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(done), to.end(), 0.0f);
  }

  [[nodiscard]] bool empty() const { return runs_.empty(); }

 private:
  struct Run {
    std::size_t begin = 0, end = 0;  // columns of the volume
    PixelPlace first;
    [[nodiscard]] bool goes_on(const PixelPlace& next) const {
      const std::size_t step = end - begin;
      return next.a == first.a + step && next.b == first.b + step && next.d == first.d + step &&
             next.e == first.e + step;
    }
  };
  std::vector<Run> runs_;
  std::vector<double> fx_, fy_;  // by column
};

// What planes [first, end) and some rows of the volume need of a slice.
Result<SlicePart> read_part(const StackPlan& plan, const SliceSource& source, std::size_t number, std::ptrdiff_t first,
                            std::ptrdiff_t end, std::size_t first_row, std::size_t rows) {
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
double ratio_of(SharedVoxels voxels, ThreadPool* pool) {
  constexpr std::size_t least_voxels = 1000;
  if (voxels.above.size() < least_voxels) return 1;
  double top = 0, bottom = 0;
  for_each_index(pool, 2, [&](std::size_t which) {
    (which == 0 ? top : bottom) = median_of(which == 0 ? voxels.above : voxels.below);
  });
  return bottom > 0 ? top / bottom : 1;
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
      // A place for each voxel of the sample; zero where the slices do not share it.
      const std::size_t of_plane = (plane + step - 1) / step;
      SharedVoxels voxels{std::vector<float>(planes * of_plane, 0.0f), std::vector<float>(planes * of_plane, 0.0f)};
      const SliceDecision& above = plan.slices[i - 1];
      const SliceDecision& below = plan.slices[i];
      const SliceFrame frame_above(above), frame_below(below);
      constexpr auto at_a_time = static_cast<std::ptrdiff_t>(planes_at_a_time);
      for (std::ptrdiff_t from = first; from < end; from += at_a_time) {
        const std::ptrdiff_t to = std::min(end, from + at_a_time);
        for (std::size_t row = 0; row < plan.rows; row += rows_at_once) {
          const std::size_t rows = std::min(rows_at_once, plan.rows - row);
          CGL_TRY_ASSIGN(const SlicePart upper, read_part(plan, source, i - 1, from, to, row, rows));
          CGL_TRY_ASSIGN(const SlicePart lower, read_part(plan, source, i, from, to, row, rows));
          if (upper.volume.planes == 0 || lower.volume.planes == 0) continue;
          const std::size_t begin = row * plan.columns, behind = begin + rows * plan.columns;
          const auto take_sample = [&](std::size_t number) {
            const std::ptrdiff_t at = from + static_cast<std::ptrdiff_t>(number);
            const std::span<const float> a = upper.volume.plane(plane_in_slice(above, at).low - upper.base);
            const std::span<const float> b = lower.volume.plane(plane_in_slice(below, at).low - lower.base);
            const std::size_t place = static_cast<std::size_t>(at - first) * of_plane;
            // Every step-th pixel of a plane, counted from its first.
            for (std::size_t k = (begin + step - 1) / step * step; k < behind; k += step) {
              const std::size_t r = k / plan.columns, c = k % plan.columns;
              PixelPlace in_upper, in_lower;
              if (!find_place(above, frame_above, upper, frame_above.below_centre(r), frame_above.beside_centre(c),
                              in_upper) ||
                  !find_place(below, frame_below, lower, frame_below.below_centre(r), frame_below.beside_centre(c),
                              in_lower)) {
                continue;
              }
              const float top = value_at(a.data(), in_upper);
              const float bottom = value_at(b.data(), in_lower);
              if (!(top > 0 && bottom > 0)) continue;
              voxels.above[place + k / step] = top;
              voxels.below[place + k / step] = bottom;
            }
          };
          for_each_index(pool, static_cast<std::size_t>(to - from), take_sample);
        }
      }
      std::erase(voxels.above, 0.0f);
      std::erase(voxels.below, 0.0f);
      ratios.push_back(ratio_of(std::move(voxels), pool));
    }
    decide_gains(ratios, options, plan);
    return {};
  });
}

Status stack_box(const StackPlan& plan, const SliceSource& source, const PlaneBox& box, std::span<float> to,
                 ThreadPool* pool, std::size_t rows_at_once) {
  return catch_out_of_memory([&]() -> Status {
    const auto box_first = static_cast<std::ptrdiff_t>(box.first_plane);
    const std::size_t columns = plan.columns;
    BulkVector<float> weights;
    for (std::size_t row = 0; row < box.rows; row += rows_at_once) {
      const std::size_t rows = std::min(rows_at_once, box.rows - row);
      weights.resize(box.planes * rows * columns);
      // Rows of the box and of the weights, in a plane.
      const auto row_of_box = [&](std::size_t z, std::size_t r) {
        return to.subspan((z * box.rows + row + r) * columns, columns);
      };
      const auto row_of_weights = [&](std::size_t z, std::size_t r) {
        return std::span(weights).subspan((z * rows + r) * columns, columns);
      };
      for_each_index(pool, rows, [&](std::size_t r) {
        for (std::size_t z = 0; z < box.planes; ++z) {
          std::ranges::fill(row_of_box(z, r), 0.0f);
          std::ranges::fill(row_of_weights(z, r), 0.0f);
        }
      });
      for (std::size_t i = 0; i < plan.slices.size(); ++i) {
        const SliceDecision& slice = plan.slices[i];
        const PlaneRange range = range_of(plan, i);
        const std::ptrdiff_t low = std::max(range.first, box_first);
        const std::ptrdiff_t high = std::min(range.end, box_first + static_cast<std::ptrdiff_t>(box.planes));
        if (low >= high) continue;
        CGL_TRY_ASSIGN(const SlicePart part, read_part(plan, source, i, low, high, box.first_row + row, rows));
        if (part.volume.planes == 0) continue;
        // Planes shared with the slice before and with the next one.
        const std::ptrdiff_t shared_above =
            i > 0 ? std::max<std::ptrdiff_t>(0, range_of(plan, i - 1).end - range.first) : 0;
        const std::ptrdiff_t shared_below =
            i + 1 < plan.slices.size() ? std::max<std::ptrdiff_t>(0, range.end - range_of(plan, i + 1).first) : 0;
        const auto ramp = [](std::ptrdiff_t distance, std::ptrdiff_t width) {
          if (distance >= width) return 1.0;
          const double t = (static_cast<double>(distance) + 0.5) / static_cast<double>(width);
          return 0.5 * (1 - numerics::cosine(half_turn * t));
        };
        const SliceFrame frame(slice);
        const auto add_to_row = [&](std::size_t r) {
          RowPlaces places;
          places.find(slice, frame, part, box.first_row + row + r, columns);
          if (places.empty()) return;
          // A plane of the slice in place, and the one below it; the next plane of the volume needs one of them again.
          std::vector<float> upper_row(columns), lower_row(columns);
          std::ptrdiff_t upper_plane = -1, lower_plane = -1;
          for (std::ptrdiff_t at = low; at < high; ++at) {
            const double weight = ramp(at - range.first, shared_above) * ramp(range.end - 1 - at, shared_below);
            const SlicePlane plane = plane_in_slice(slice, at);
            const auto wanted = static_cast<std::ptrdiff_t>(plane.low - part.base);
            if (upper_plane != wanted) {
              std::swap(upper_row, lower_row);
              std::swap(upper_plane, lower_plane);
            }
            if (upper_plane != wanted) {
              places.fill(part.volume.plane(static_cast<std::size_t>(wanted)).data(), upper_row);
              upper_plane = wanted;
            }
            const float* const upper = upper_row.data();
            const float* lower = upper;
            if (plane.part > 0) {
              if (lower_plane != wanted + 1) {
                places.fill(part.volume.plane(static_cast<std::size_t>(wanted + 1)).data(), lower_row);
                lower_plane = wanted + 1;
              }
              lower = lower_row.data();
            }
            const auto z = static_cast<std::size_t>(at - box_first);
            mix_row(upper, lower, {plane.part, slice.gain, weight}, columns, row_of_box(z, r).data(),
                    row_of_weights(z, r).data());
          }
        };
        for_each_index(pool, rows, add_to_row);
      }
    }
    return {};
  });
}

}  // namespace cingulum::oct
