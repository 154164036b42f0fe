// How long streamlines are: of one, and of many in fixed memory. Called by the run's driver, the comparison of
// tractograms and the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/image_geometry.hpp"

namespace cingulum {

// Sum of the segments in sequence, in float64, of points of world space.
[[nodiscard]] double length_in_mm(std::span<const float> points_world);
// The same of points of voxel space, x y z, which are mapped to world space in float64.
[[nodiscard]] double length_in_mm(std::span<const float> points, const Affine& voxel_to_world);
// `world`, which has as many numbers, receives the points there, computed in float64 and rounded once (contract,
// section 5).
void map_to_world(std::span<const float> points, const Affine& voxel_to_world, std::span<float> world);
void map_to_world(std::span<const float> points, const Affine& voxel_to_world, std::span<double> world);

// Lengths in bins of a tenth of a millimetre, so that a median of any number of streamlines takes fixed memory.
class LengthHistogram {
 public:
  void add(double length_mm);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double mean_mm() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  [[nodiscard]] double smallest_mm() const { return smallest_; }
  [[nodiscard]] double largest_mm() const { return largest_; }
  // The middle of the bin in which the share lies: 0.5 for the median.
  [[nodiscard]] double quantile_mm(double share) const;

 private:
  static constexpr double bin_mm = 0.1;
  static constexpr std::size_t most_bins = 100'000;  // 10 m; what is longer is counted in the last

  std::uint64_t count_ = 0;
  double sum_ = 0;  // in order of the streamlines
  double smallest_ = 0;
  double largest_ = 0;
  std::vector<std::uint64_t> bins_;
};

}  // namespace cingulum
