// Gains of slices from what neighbours share.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "oct/stacking/slice_part.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

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

// A sample of what two slices share: a place for each of its voxels, zero where one of both shows nothing.
class SharedSample {
 public:
  // Planes [first, end) of the volume, of slices `upper` and `upper + 1`.
  SharedSample(const StackPlan& plan, std::size_t upper, std::ptrdiff_t first, std::ptrdiff_t end)
      : plan_(plan),
        upper_(upper),
        first_(first),
        end_(end),
        step_(std::max<std::size_t>(
            1, static_cast<std::size_t>(end - first) * plan.rows * plan.columns / gain_sample_voxels)),
        of_plane_((plan.rows * plan.columns + step_ - 1) / step_) {
    const std::size_t voxels = static_cast<std::size_t>(end - first) * of_plane_;
    voxels_ = {std::vector<float>(voxels, 0.0f), std::vector<float>(voxels, 0.0f)};
  }

  [[nodiscard]] Status read(const SliceSource& source, ThreadPool* pool, std::size_t rows_at_once) {
    constexpr auto at_a_time = static_cast<std::ptrdiff_t>(planes_at_a_time);
    for (std::ptrdiff_t from = first_; from < end_; from += at_a_time) {
      const std::ptrdiff_t to = std::min(end_, from + at_a_time);
      for (std::size_t row = 0; row < plan_.rows; row += rows_at_once) {
        const std::size_t rows = std::min(rows_at_once, plan_.rows - row);
        CGL_TRY_ASSIGN(const SlicePart above, read_part(plan_, source, upper_, from, to, row, rows));
        CGL_TRY_ASSIGN(const SlicePart below, read_part(plan_, source, upper_ + 1, from, to, row, rows));
        if (above.volume.planes == 0 || below.volume.planes == 0) continue;
        for_each_index(pool, static_cast<std::size_t>(to - from), [&](std::size_t number) {
          take_plane(above, below, from + static_cast<std::ptrdiff_t>(number), row, rows);
        });
      }
    }
    std::erase(voxels_.above, 0.0f);
    std::erase(voxels_.below, 0.0f);
    return {};
  }

  [[nodiscard]] SharedVoxels take() { return std::move(voxels_); }

 private:
  // Every step-th pixel of a plane, counted from its first.
  void take_plane(const SlicePart& above, const SlicePart& below, std::ptrdiff_t at, std::size_t row,
                  std::size_t rows) {
    const SliceDecision& slice_above = plan_.slices[upper_];
    const SliceDecision& slice_below = plan_.slices[upper_ + 1];
    const SliceFrame frame_above(slice_above), frame_below(slice_below);
    const std::span<const float> a = above.volume.plane(plane_in_slice(slice_above, at).low - above.base);
    const std::span<const float> b = below.volume.plane(plane_in_slice(slice_below, at).low - below.base);
    const std::size_t place = static_cast<std::size_t>(at - first_) * of_plane_;
    const std::size_t begin = row * plan_.columns, behind = begin + rows * plan_.columns;
    for (std::size_t k = (begin + step_ - 1) / step_ * step_; k < behind; k += step_) {
      const std::size_t r = k / plan_.columns, c = k % plan_.columns;
      PixelPlace in_above, in_below;
      if (!find_place(slice_above, frame_above, above, frame_above.below_centre(r), frame_above.beside_centre(c),
                      in_above) ||
          !find_place(slice_below, frame_below, below, frame_below.below_centre(r), frame_below.beside_centre(c),
                      in_below)) {
        continue;
      }
      const float top = value_at(a.data(), in_above);
      const float bottom = value_at(b.data(), in_below);
      if (!(top > 0 && bottom > 0)) continue;
      voxels_.above[place + k / step_] = top;
      voxels_.below[place + k / step_] = bottom;
    }
  }

  const StackPlan& plan_;
  std::size_t upper_;
  std::ptrdiff_t first_, end_;
  std::size_t step_;      // pixels from one of the sample to the next
  std::size_t of_plane_;  // of the sample
  SharedVoxels voxels_;
};

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
      SharedSample sample(plan, i - 1, first, end);
      CGL_TRY(sample.read(source, pool, rows_at_once));
      ratios.push_back(ratio_of(sample.take(), pool));
    }
    decide_gains(ratios, options, plan);
    return {};
  });
}

}  // namespace cingulum::oct
