#include "oct/placement/image_filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "numerics/elementary64.hpp"
#include "numerics/portable.hpp"

namespace cingulum::oct {

std::size_t mirrored_index(std::ptrdiff_t at, std::size_t size) {
  const auto n = static_cast<std::ptrdiff_t>(size);
  const std::ptrdiff_t period = 2 * n;
  std::ptrdiff_t folded = at % period;
  if (folded < 0) folded += period;
  return static_cast<std::size_t>(folded < n ? folded : period - 1 - folded);
}

bool sample_image(const HostImage& image, double row, double column, double& value) {
  if (!(row >= 0 && column >= 0 && row <= static_cast<double>(image.rows - 1) &&
        column <= static_cast<double>(image.columns - 1))) {
    return false;
  }
  const auto r = static_cast<std::size_t>(row);
  const auto c = static_cast<std::size_t>(column);
  const std::size_t below = std::min(r + 1, image.rows - 1);
  const std::size_t beside = std::min(c + 1, image.columns - 1);
  const double y = row - static_cast<double>(r);
  const double x = column - static_cast<double>(c);
  const double top = image.at(r, c) + x * (image.at(r, beside) - image.at(r, c));
  const double bottom = image.at(below, c) + x * (image.at(below, beside) - image.at(below, c));
  value = top + y * (bottom - top);
  return true;
}

HostImage smooth_image(const HostImage& image, double sigma) {
  const int radius = static_cast<int>(4 * sigma + 0.5);
  if (radius < 1) return image;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(numerics::exponential(-0.5 * (i * i) / (sigma * sigma)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  HostImage by_row(image.rows, image.columns);
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (int i = -radius; i <= radius; ++i) {
      const std::size_t from = mirrored_index(static_cast<std::ptrdiff_t>(r) + i, image.rows);
      const double tap = taps[static_cast<std::size_t>(i + radius)];
      for (std::size_t c = 0; c < image.columns; ++c) by_row.at(r, c) += tap * image.at(from, c);
    }
  }
  // Along a row, which is extended at both ends first: taps in ascending order for every pixel, rows as they lie.
  HostImage result(image.rows, image.columns);
  std::vector<double> extended(image.columns + 2 * static_cast<std::size_t>(radius));
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (std::size_t k = 0; k < extended.size(); ++k) {
      extended[k] = by_row.at(r, mirrored_index(static_cast<std::ptrdiff_t>(k) - radius, image.columns));
    }
    double* const to = result.values.data() + r * image.columns;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const double tap = taps[i];
      const double* const from = extended.data() + i;
      for (std::size_t c = 0; c < image.columns; ++c) to[c] += tap * from[c];
    }
  }
  return result;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), place, values.end());
  const double value = *place;
  if (low + 1 >= values.size()) return value;
  const double above = *std::min_element(place + 1, values.end());
  return value + (at - static_cast<double>(low)) * (above - value);
}

double otsu_threshold(const std::vector<double>& values) {
  constexpr std::size_t bins = 256;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (values.empty() || !(*high > *low)) return values.empty() ? 0 : *low;
  std::array<double, bins> counts{};
  const double width = (*high - *low) / bins;
  for (const double value : values) {
    counts[std::min(bins - 1, static_cast<std::size_t>((value - *low) / width))] += 1;
  }
  double total_sum = 0;
  for (std::size_t b = 0; b < bins; ++b) total_sum += counts[b] * static_cast<double>(b);
  const double total = static_cast<double>(values.size());
  double below = 0, below_sum = 0, best = -1;
  std::size_t chosen = 0;
  for (std::size_t b = 0; b + 1 < bins; ++b) {
    below += counts[b];
    below_sum += counts[b] * static_cast<double>(b);
    if (below == 0 || below == total) continue;
    const double difference = below_sum / below - (total_sum - below_sum) / (total - below);
    const double between = below * (total - below) * difference * difference;
    if (between > best) {
      best = between;
      chosen = b;
    }
  }
  return *low + width * static_cast<double>(chosen + 1);
}

HostImage mean_projection(const HostVolume& volume) {
  HostImage mean(volume.rows, volume.columns);
  for (std::size_t z = 0; z < volume.planes; ++z) {
    const std::span<const float> plane = volume.plane(z);
    for (std::size_t i = 0; i < plane.size(); ++i) mean.values[i] += static_cast<double>(plane[i]);
  }
  for (double& value : mean.values) value /= static_cast<double>(volume.planes);
  return mean;
}

}  // namespace cingulum::oct
