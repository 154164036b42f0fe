#include "oct/placement/image_filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// Each pixel the sum of those of the lines, from the first line on.
void sum_weighted(std::span<const double* const> lines, std::span<const double> taps, std::size_t columns, double* to) {
  const double* const* const line = lines.data();
  const double* const tap = taps.data();
  const std::size_t count = lines.size();
  numerics::with_packs<double>([=]<class Number>() {
    constexpr std::size_t width = Number::width;
    std::size_t c = 0;
    // Four sums at a time: each waits for its own additions.
    for (; c + 4 * width <= columns; c += 4 * width) {
      Number first(0.0), second(0.0), third(0.0), fourth(0.0);
      for (std::size_t i = 0; i < count; ++i) {
        const Number by(tap[i]);
        const double* const from = line[i] + c;
        first = first + by * Number::load(from);
        second = second + by * Number::load(from + width);
        third = third + by * Number::load(from + 2 * width);
        fourth = fourth + by * Number::load(from + 3 * width);
      }
      first.store(to + c);
      second.store(to + c + width);
      third.store(to + c + 2 * width);
      fourth.store(to + c + 3 * width);
    }
    for (; c < columns; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum = sum + tap[i] * line[i][c];
      to[c] = sum;
    }
  });
}

// Finite values in ascending order, as far as they are asked for. Many are counted by equal bins between the extremes,
// and only the bin that is asked for is looked at: an image is walked over three times and not rearranged.
class OrderStatistics {
 public:
  static constexpr std::size_t bins = 4096;
  static constexpr std::size_t least_counted = 4 * bins;

  // `values` are at least one, and stay the caller's.
  explicit OrderStatistics(std::span<const double> values) : values_(values) {
    if (values.size() < least_counted) {
      few_.assign(values.begin(), values.end());
      std::sort(few_.begin(), few_.end());
      return;
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    low_ = *low;
    const double span = *high - *low;
    per_unit_ = static_cast<double>(bins) / span;
    if (!(span > 0 && per_unit_ <= std::numeric_limits<double>::max())) per_unit_ = 0;
    counts_.assign(bins, 0);
    for (const double value : values) ++counts_[bin_of(value)];
  }

  // The value that has `rank` others before it.
  [[nodiscard]] double at(std::size_t rank) const {
    if (!few_.empty()) return few_[rank];
    std::size_t bin = 0, before = 0;
    while (before + counts_[bin] <= rank) before += counts_[bin++];
    std::vector<double> same;
    same.reserve(counts_[bin]);
    for (const double value : values_) {
      if (bin_of(value) == bin) same.push_back(value);
    }
    const auto place = same.begin() + static_cast<std::ptrdiff_t>(rank - before);
    std::nth_element(same.begin(), place, same.end());
    return *place;
  }

 private:
  // Ascends with the value: a difference and a product are rounded so.
  [[nodiscard]] std::size_t bin_of(double value) const {
    return std::min(bins - 1, static_cast<std::size_t>((value - low_) * per_unit_));
  }

  std::span<const double> values_;
  double low_ = 0;
  double per_unit_ = 0;
  std::vector<std::size_t> counts_;
  std::vector<double> few_;  // sorted, instead of all that
};

}  // namespace

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

HostImage smooth_image(const HostImage& image, double sigma, ThreadPool* pool) {
  const int radius = static_cast<int>(4 * sigma + 0.5);
  if (radius < 1) return image;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(numerics::exponential(-0.5 * (i * i) / (sigma * sigma)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  HostImage result(image.rows, image.columns);
  const auto window = static_cast<std::size_t>(radius);
  constexpr std::size_t rows_of_piece = 16;
  // Across rows, then along the row, which is extended at both ends: taps in ascending order for every pixel.
  for_each_index(pool, (image.rows + rows_of_piece - 1) / rows_of_piece, [&](std::size_t piece) {
    std::vector<double> extended(image.columns + 2 * window);
    std::vector<const double*> lines(taps.size());
    const auto end = std::min(image.rows, (piece + 1) * rows_of_piece);
    for (std::size_t r = piece * rows_of_piece; r < end; ++r) {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto at = static_cast<std::ptrdiff_t>(r + i) - radius;
        lines[i] = image.values.data() + mirrored_index(at, image.rows) * image.columns;
      }
      double* const middle = extended.data() + window;
      sum_weighted(lines, taps, image.columns, middle);
      for (std::ptrdiff_t k = 1; k <= radius; ++k) {
        middle[-k] = middle[mirrored_index(-k, image.columns)];
        const auto behind = static_cast<std::ptrdiff_t>(image.columns) - 1 + k;
        middle[behind] = middle[mirrored_index(behind, image.columns)];
      }
      for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = extended.data() + i;
      sum_weighted(lines, taps, image.columns, result.values.data() + r * image.columns);
    }
  });
  return result;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  const bool odd = values.size() % 2 == 1;
  if (values.size() < OrderStatistics::least_counted) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
    std::nth_element(values.begin(), middle, values.end());
    return odd ? *middle : 0.5 * (*middle + *std::max_element(values.begin(), middle));
  }
  const OrderStatistics order(values);
  return odd ? order.at(half) : 0.5 * (order.at(half) + order.at(half - 1));
}

double percentile(std::vector<double> values, double share) {
  return percentiles(values, std::span(&share, 1)).front();
}

std::vector<double> percentiles(std::span<const double> values, std::span<const double> shares) {
  if (values.empty()) return std::vector<double>(shares.size(), 0.0);
  const OrderStatistics order(values);
  std::vector<double> found;
  for (const double share : shares) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const double value = order.at(low);
    found.push_back(low + 1 >= values.size() ? value
                                             : value + (at - static_cast<double>(low)) * (order.at(low + 1) - value));
  }
  return found;
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
