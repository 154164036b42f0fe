// How long streamlines are: of one, and of many in fixed memory. Called by the run's driver, the comparison of
// tractograms and the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
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

// Lengths in bins of a tenth of a millimetre, so that a median of any number of streamlines takes fixed memory. Its
// numbers are the same in whatever order lengths come and however they are cut into parts.
class LengthHistogram {
 public:
  void add(double length_mm);
  void add(const LengthHistogram& other);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double mean_mm() const;
  [[nodiscard]] double smallest_mm() const { return smallest_; }
  [[nodiscard]] double largest_mm() const { return largest_; }
  // The middle of the bin in which the share lies: 0.5 for the median.
  [[nodiscard]] double quantile_mm(double share) const;

  // All there is to it, to be kept and read again.
  struct Sums {
    std::uint64_t whole_mm = 0;  // the sum of the lengths, each rounded down to 2^-40 mm
    std::uint64_t rest = 0;      // in units of 2^-40 mm, below 2^40
    double smallest_mm = 0;
    double largest_mm = 0;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> bins;  // those that are not empty: number and count, ascending
  };
  [[nodiscard]] Sums sums() const;
  // None where they cannot be those of any lengths.
  [[nodiscard]] static std::optional<LengthHistogram> of_sums(const Sums& sums);

 private:
  static constexpr double bin_mm = 0.1;
  static constexpr std::size_t most_bins = 100'000;  // 10 m; what is longer is counted in the last

  std::uint64_t count_ = 0;
  // A sum of doubles would depend on their order. Whole millimetres and units of 2^-40, carried over.
  std::uint64_t whole_mm_ = 0;
  std::uint64_t rest_ = 0;
  double smallest_ = 0;
  double largest_ = 0;
  std::vector<std::uint64_t> bins_;
};

}  // namespace cingulum
