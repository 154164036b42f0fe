#include "streamlines/lengths.hpp"

#include <algorithm>

namespace cingulum {

using numerics::Vec3d;

double length_in_mm(std::span<const float> points, const Affine& voxel_to_world) {
  double sum = 0;
  Vec3d previous = {};
  for (std::size_t i = 0; i + 2 < points.size(); i += 3) {
    const Vec3d at = voxel_to_world.apply({points[i], points[i + 1], points[i + 2]});
    if (i > 0) sum = sum + length(at - previous);
    previous = at;
  }
  return sum;
}

double length_in_mm(std::span<const float> points_world) {
  double sum = 0;
  for (std::size_t i = 3; i + 2 < points_world.size(); i += 3) {
    const Vec3d a = {points_world[i - 3], points_world[i - 2], points_world[i - 1]};
    const Vec3d b = {points_world[i], points_world[i + 1], points_world[i + 2]};
    sum = sum + length(b - a);
  }
  return sum;
}

void LengthHistogram::add(double length_mm) {
  if (bins_.empty()) bins_.resize(most_bins);
  const double bin = length_mm / bin_mm;
  const auto index = bin < static_cast<double>(most_bins - 1) ? static_cast<std::size_t>(bin) : most_bins - 1;
  ++bins_[index];
  smallest_ = count_ == 0 || length_mm < smallest_ ? length_mm : smallest_;
  largest_ = length_mm > largest_ ? length_mm : largest_;
  sum_ += length_mm;
  ++count_;
}

double LengthHistogram::quantile_mm(double share) const {
  if (count_ == 0) return 0;
  const double wanted = share * static_cast<double>(count_);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    below += bins_[i];
    if (static_cast<double>(below) >= wanted && below > 0) {
      const double middle = (static_cast<double>(i) + 0.5) * bin_mm;
      return std::clamp(middle, smallest_, largest_);
    }
  }
  return largest_;
}

}  // namespace cingulum
