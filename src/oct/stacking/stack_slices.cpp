#include "oct/stacking/stack_slices.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/bulk_memory.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "oct/stacking/slice_part.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

constexpr double half_turn = 0x1.921fb54442d18p+1;

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

// Rises from 0 to 1 over the planes that two slices share.
double ramp(std::ptrdiff_t distance, std::ptrdiff_t width) {
  if (distance >= width) return 1.0;
  const double t = (static_cast<double>(distance) + 0.5) / static_cast<double>(width);
  return 0.5 * (1 - numerics::cosine(half_turn * t));
}

// Rows of a box of the volume while slices are mixed into them, with the weights that they have so far.
struct BoxRows {
  const PlaneBox& box;
  std::size_t row, rows, columns;  // from `row` of the box on
  std::span<float> values;         // of the box
  std::span<float> weights;        // of the rows

  [[nodiscard]] std::span<float> value_row(std::size_t z, std::size_t r) const {
    return values.subspan((z * box.rows + row + r) * columns, columns);
  }
  [[nodiscard]] std::span<float> weight_row(std::size_t z, std::size_t r) const {
    return weights.subspan((z * rows + r) * columns, columns);
  }
};

// Mixes what slice `number` shows in planes [low, high) of the volume into the rows.
void add_part(const StackPlan& plan, std::size_t number, const SlicePart& part, std::ptrdiff_t low, std::ptrdiff_t high,
              const BoxRows& to, ThreadPool* pool) {
  const SliceDecision& slice = plan.slices[number];
  const PlaneRange range = range_of(plan, number);
  // Planes shared with the slice before and with the next one.
  const std::ptrdiff_t shared_above =
      number > 0 ? std::max<std::ptrdiff_t>(0, range_of(plan, number - 1).end - range.first) : 0;
  const std::ptrdiff_t shared_below =
      number + 1 < plan.slices.size() ? std::max<std::ptrdiff_t>(0, range.end - range_of(plan, number + 1).first) : 0;
  const SliceFrame frame(slice);
  for_each_index(pool, to.rows, [&](std::size_t r) {
    RowPlaces places;
    places.find(slice, frame, part, to.box.first_row + to.row + r, to.columns);
    if (places.empty()) return;
    // A plane of the slice in place, and the one below it; the next plane of the volume needs one of them again.
    std::vector<float> upper_row(to.columns), lower_row(to.columns);
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
      const auto z = static_cast<std::size_t>(at) - to.box.first_plane;
      mix_row(upper, lower, {plane.part, slice.gain, weight}, to.columns, to.value_row(z, r).data(),
              to.weight_row(z, r).data());
    }
  });
}

}  // namespace

Status stack_box(const StackPlan& plan, const SliceSource& source, const PlaneBox& box, std::span<float> to,
                 ThreadPool* pool, std::size_t rows_at_once) {
  return catch_out_of_memory([&]() -> Status {
    const auto box_first = static_cast<std::ptrdiff_t>(box.first_plane);
    BulkVector<float> weights;
    for (std::size_t row = 0; row < box.rows; row += rows_at_once) {
      const std::size_t rows = std::min(rows_at_once, box.rows - row);
      weights.resize(box.planes * rows * plan.columns);
      const BoxRows made{box, row, rows, plan.columns, to, weights};
      for_each_index(pool, rows, [&](std::size_t r) {
        for (std::size_t z = 0; z < box.planes; ++z) {
          std::ranges::fill(made.value_row(z, r), 0.0f);
          std::ranges::fill(made.weight_row(z, r), 0.0f);
        }
      });
      for (std::size_t i = 0; i < plan.slices.size(); ++i) {
        const PlaneRange range = range_of(plan, i);
        const std::ptrdiff_t low = std::max(range.first, box_first);
        const std::ptrdiff_t high = std::min(range.end, box_first + static_cast<std::ptrdiff_t>(box.planes));
        if (low >= high) continue;
        CGL_TRY_ASSIGN(const SlicePart part, read_part(plan, source, i, low, high, box.first_row + row, rows));
        if (part.volume.planes > 0) add_part(plan, i, part, low, high, made, pool);
      }
    }
    return {};
  });
}

}  // namespace cingulum::oct
