// Linear filters along one axis as tables: for each output the samples that it weighs, with what lies beyond the ends
// folded back, so that kernels know no boundary. Weights are made in float64 without libm and rounded once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oct/oct_kernels.hpp"

namespace cingulum::oct {

struct AxisTaps {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> count;
  std::vector<std::uint32_t> offset;  // of the first weight
  std::vector<float> bias;
  std::vector<float> weights;

  [[nodiscard]] std::uint32_t outputs() const { return static_cast<std::uint32_t>(first.size()); }
  // The table as kernels read it: first, count, offset, bias, weights.
  [[nodiscard]] std::vector<std::uint32_t> words() const;
};

// A filter along one axis, and whether its results become coefficients of splines along it.
struct AxisStep {
  std::uint32_t axis = 0;
  std::string key;  // the same for the same taps alone
  AxisTaps taps;
  bool makes_coefficients = false;
};

// The weights of a window, w[i] at sample i - radius: a Gaussian that sums to 1, or its derivative, positive where
// values rise. Radius int(truncate sigma + 1/2).
[[nodiscard]] std::vector<double> gaussian_window(double sigma, std::uint32_t order, double truncate);

[[nodiscard]] AxisTaps gaussian_taps(std::uint32_t samples, double sigma, std::uint32_t order, double truncate,
                                     const FilterBoundary& boundary);
// A window of an even size reaches one further down.
[[nodiscard]] AxisTaps box_taps(std::uint32_t samples, std::uint32_t size, const FilterBoundary& boundary);
// The taps of the anti-aliasing Gaussian and of the interpolation in one table. For order 3 the Gaussian is left out:
// the spline's prefilter comes between the two.
[[nodiscard]] AxisTaps resize_taps(std::uint32_t samples, std::uint32_t outputs, const ResizeOptions& options);
// A window whose samples all lie inside: output o weighs the samples from o on. The sum is that of its products alone.
[[nodiscard]] AxisTaps inside_taps(std::uint32_t outputs, const std::vector<float>& window);
[[nodiscard]] double anti_aliasing_sigma(std::uint32_t samples, std::uint32_t outputs);

// Where sample `index` of the extended line stands, or -1 where it is the constant.
[[nodiscard]] std::int64_t sample_within(std::int64_t index, std::int64_t samples, Boundary boundary);

}  // namespace cingulum::oct
