#include "streamlines/lengths.hpp"

#include <algorithm>

#include "numerics/pack.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

constexpr std::size_t points_at_once = 64;

// Each axis by itself, so that a processor takes several points at once. The operations on each number, and their
// order, are those of Affine::apply.
CGL_INLINE void map_block(const float* from, std::size_t count, const Affine& m, double* x, double* y, double* z) {
  for (std::size_t i = 0; i < count; ++i) {
    const Vec3d at = m.apply({from[3 * i], from[3 * i + 1], from[3 * i + 2]});
    x[i] = at.x;
    y[i] = at.y;
    z[i] = at.z;
  }
}

template <class Number>
CGL_INLINE void map_in_blocks(std::span<const float> points, const Affine& voxel_to_world, Number* world) {
  const Affine m = voxel_to_world;
  const std::size_t count = points.size() / 3;
  double x[points_at_once], y[points_at_once], z[points_at_once];
  for (std::size_t first = 0; first < count; first += points_at_once) {
    const std::size_t n = std::min(points_at_once, count - first);
    map_block(points.data() + 3 * first, n, m, x, y, z);
    Number* const to = world + 3 * first;
    for (std::size_t i = 0; i < n; ++i) {
      to[3 * i] = static_cast<Number>(x[i]);
      to[3 * i + 1] = static_cast<Number>(y[i]);
      to[3 * i + 2] = static_cast<Number>(z[i]);
    }
  }
}

}  // namespace

// Block by block; only the sum goes one by one.
CGL_SIMD_CLONES double length_in_mm(std::span<const float> points, const Affine& voxel_to_world) {
  const Affine m = voxel_to_world;
  const std::size_t count = points.size() / 3;
  // The first of each axis is the last point of the block before.
  double x[points_at_once + 1], y[points_at_once + 1], z[points_at_once + 1], lengths[points_at_once];
  double sum = 0;
  for (std::size_t first = 0; first < count; first += points_at_once) {
    const std::size_t n = std::min(points_at_once, count - first);
    map_block(points.data() + 3 * first, n, m, x + 1, y + 1, z + 1);
    if (first == 0) {
      x[0] = x[1];
      y[0] = y[1];
      z[0] = z[1];
    }
    for (std::size_t i = 0; i < n; ++i) {
      lengths[i] = length(Vec3d{x[i + 1] - x[i], y[i + 1] - y[i], z[i + 1] - z[i]});
    }
    for (std::size_t i = first == 0 ? 1 : 0; i < n; ++i) sum = sum + lengths[i];
    x[0] = x[n];
    y[0] = y[n];
    z[0] = z[n];
  }
  return sum;
}

CGL_SIMD_CLONES void map_to_world(std::span<const float> points, const Affine& voxel_to_world, std::span<float> world) {
  map_in_blocks(points, voxel_to_world, world.data());
}

CGL_SIMD_CLONES void map_to_world(std::span<const float> points, const Affine& voxel_to_world,
                                  std::span<double> world) {
  map_in_blocks(points, voxel_to_world, world.data());
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

namespace {

constexpr unsigned rest_bits = 40;
constexpr std::uint64_t rest_units = std::uint64_t{1} << rest_bits;

}  // namespace

void LengthHistogram::add(double length_mm) {
  if (bins_.empty()) bins_.resize(most_bins);
  const double bin = length_mm / bin_mm;
  const auto index = bin < static_cast<double>(most_bins - 1) ? static_cast<std::size_t>(bin) : most_bins - 1;
  ++bins_[index];
  smallest_ = count_ == 0 || length_mm < smallest_ ? length_mm : smallest_;
  largest_ = length_mm > largest_ ? length_mm : largest_;
  const auto whole = static_cast<std::uint64_t>(length_mm);
  whole_mm_ += whole;
  rest_ += static_cast<std::uint64_t>((length_mm - static_cast<double>(whole)) * static_cast<double>(rest_units));
  whole_mm_ += rest_ >> rest_bits;
  rest_ &= rest_units - 1;
  ++count_;
}

void LengthHistogram::add(const LengthHistogram& other) {
  if (other.count_ == 0) return;
  if (bins_.empty()) bins_.resize(most_bins);
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
  smallest_ = count_ == 0 || other.smallest_ < smallest_ ? other.smallest_ : smallest_;
  largest_ = other.largest_ > largest_ ? other.largest_ : largest_;
  rest_ += other.rest_;
  whole_mm_ += other.whole_mm_ + (rest_ >> rest_bits);
  rest_ &= rest_units - 1;
  count_ += other.count_;
}

double LengthHistogram::mean_mm() const {
  if (count_ == 0) return 0;
  const double sum = static_cast<double>(whole_mm_) + static_cast<double>(rest_) / static_cast<double>(rest_units);
  return sum / static_cast<double>(count_);
}

LengthHistogram::Sums LengthHistogram::sums() const {
  Sums sums = {.whole_mm = whole_mm_, .rest = rest_, .smallest_mm = smallest_, .largest_mm = largest_, .bins = {}};
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i] > 0) sums.bins.emplace_back(static_cast<std::uint32_t>(i), bins_[i]);
  }
  return sums;
}

std::optional<LengthHistogram> LengthHistogram::of_sums(const Sums& sums) {
  LengthHistogram lengths;
  if (sums.rest >= rest_units || !(sums.smallest_mm >= 0) || !(sums.largest_mm >= sums.smallest_mm))
    return std::nullopt;
  lengths.whole_mm_ = sums.whole_mm;
  lengths.rest_ = sums.rest;
  lengths.smallest_ = sums.smallest_mm;
  lengths.largest_ = sums.largest_mm;
  if (!sums.bins.empty()) lengths.bins_.resize(most_bins);
  std::optional<std::uint32_t> before;
  for (const auto& [bin, count] : sums.bins) {
    if (bin >= most_bins || count == 0 || (before && bin <= *before)) return std::nullopt;
    before = bin;
    lengths.bins_[bin] = count;
    lengths.count_ += count;
  }
  return lengths;
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
