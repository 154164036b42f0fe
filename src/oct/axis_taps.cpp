#include "oct/axis_taps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/elementary64.hpp"

namespace cingulum::oct {
namespace {

using numerics::floor_of;

// One output's weights, gathered over the samples that they fall on.
class TapRow {
 public:
  TapRow(std::int64_t samples, const FilterBoundary& boundary) : samples_(samples), boundary_(boundary) {}

  void add(std::int64_t index, double weight) {
    const std::int64_t within = sample_within(index, samples_, boundary_.mode);
    if (within < 0) {
      bias_ += weight * static_cast<double>(boundary_.value);
      return;
    }
    entries_.push_back({within, weight});
  }
  void append_to(AxisTaps& taps) const {
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = -1;
    for (const Entry& entry : entries_) {
      low = std::min(low, entry.index);
      high = std::max(high, entry.index);
    }
    const std::int64_t count = high < 0 ? 0 : high - low + 1;
    std::vector<double> dense(static_cast<std::size_t>(count), 0.0);
    for (const Entry& entry : entries_) dense[static_cast<std::size_t>(entry.index - low)] += entry.weight;
    taps.first.push_back(high < 0 ? 0u : static_cast<std::uint32_t>(low));
    taps.count.push_back(static_cast<std::uint32_t>(count));
    taps.offset.push_back(static_cast<std::uint32_t>(taps.weights.size()));
    taps.bias.push_back(static_cast<float>(bias_));
    for (const double weight : dense) taps.weights.push_back(static_cast<float>(weight));
  }

 private:
  struct Entry {
    std::int64_t index;
    double weight;
  };
  std::int64_t samples_;
  FilterBoundary boundary_;
  double bias_ = 0.0;
  std::vector<Entry> entries_;
};

// The weights of interpolation at a coordinate: of samples `first`, `first` + 1, ...
struct Interpolation {
  std::int64_t first = 0;
  std::vector<double> weights;
};

Interpolation interpolation_at(double coordinate, int order) {
  if (order == 0) return {static_cast<std::int64_t>(floor_of(coordinate + 0.5)), {1.0}};
  const double below = floor_of(coordinate);
  const double f = coordinate - below;
  const auto index = static_cast<std::int64_t>(below);
  if (order == 1) return {index, {1.0 - f, f}};
  const double g = 1.0 - f;
  return {index - 1,
          {g * g * g / 6.0, (3.0 * f * f * f - 6.0 * f * f + 4.0) / 6.0, (3.0 * g * g * g - 6.0 * g * g + 4.0) / 6.0,
           f * f * f / 6.0}};
}

}  // namespace

std::int64_t sample_within(std::int64_t index, std::int64_t samples, Boundary boundary) {
  if (index >= 0 && index < samples) return index;
  const auto modulo = [](std::int64_t a, std::int64_t n) { return (a % n + n) % n; };
  switch (boundary) {
    case Boundary::reflect: {
      const std::int64_t within = modulo(index, 2 * samples);
      return within < samples ? within : 2 * samples - 1 - within;
    }
    case Boundary::mirror: {
      if (samples == 1) return 0;
      const std::int64_t within = modulo(index, 2 * samples - 2);
      return within < samples ? within : 2 * samples - 2 - within;
    }
    case Boundary::nearest: return index < 0 ? 0 : samples - 1;
    case Boundary::wrap: return modulo(index, samples);
    case Boundary::constant: return -1;
  }
  return -1;
}

std::vector<std::uint32_t> AxisTaps::words() const {
  std::vector<std::uint32_t> all;
  all.reserve(4 * first.size() + weights.size());
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), count.begin(), count.end());
  all.insert(all.end(), offset.begin(), offset.end());
  for (const float value : bias) all.push_back(numerics::float_bits(value));
  for (const float value : weights) all.push_back(numerics::float_bits(value));
  return all;
}

std::vector<double> gaussian_window(double sigma, std::uint32_t order, double truncate) {
  const auto radius = static_cast<std::int64_t>(truncate * sigma + 0.5);
  std::vector<double> window;
  double sum = 0.0;
  for (std::int64_t i = -radius; i <= radius; ++i) {
    const double x = static_cast<double>(i) / sigma;
    window.push_back(numerics::exponential(-0.5 * x * x));
    sum += window.back();
  }
  for (std::size_t i = 0; i < window.size(); ++i) {
    const double x = (static_cast<double>(i) - static_cast<double>(radius)) / sigma;
    // The derivative is the Gaussian times a Hermite polynomial; its sign is that of a correlation's weights.
    const double polynomial = order == 0 ? 1.0 : order == 1 ? x : order == 2 ? x * x - 1.0 : x * x * x - 3.0 * x;
    double scale = 1.0;
    for (std::uint32_t d = 0; d < order; ++d) scale /= sigma;
    window[i] = window[i] / sum * polynomial * scale;
  }
  return window;
}

AxisTaps gaussian_taps(std::uint32_t samples, double sigma, std::uint32_t order, double truncate,
                       const FilterBoundary& boundary) {
  const std::vector<double> window = gaussian_window(sigma, order, truncate);
  const auto radius = static_cast<std::int64_t>(window.size() / 2);
  AxisTaps taps;
  for (std::int64_t o = 0; o < samples; ++o) {
    TapRow row(samples, boundary);
    for (std::size_t i = 0; i < window.size(); ++i) row.add(o - radius + static_cast<std::int64_t>(i), window[i]);
    row.append_to(taps);
  }
  return taps;
}

AxisTaps box_taps(std::uint32_t samples, std::uint32_t size, const FilterBoundary& boundary) {
  AxisTaps taps;
  const auto below = static_cast<std::int64_t>(size / 2);
  for (std::int64_t o = 0; o < samples; ++o) {
    TapRow row(samples, boundary);
    for (std::int64_t i = 0; i < size; ++i) row.add(o - below + i, 1.0 / size);
    row.append_to(taps);
  }
  return taps;
}

AxisTaps inside_taps(std::uint32_t outputs, const std::vector<float>& window) {
  AxisTaps taps;
  taps.weights = window;
  taps.count.assign(outputs, static_cast<std::uint32_t>(window.size()));
  taps.offset.assign(outputs, 0);
  // Adding -0 changes no product, not even a zero's sign.
  taps.bias.assign(outputs, -0.0f);
  for (std::uint32_t o = 0; o < outputs; ++o) taps.first.push_back(o);
  return taps;
}

double anti_aliasing_sigma(std::uint32_t samples, std::uint32_t outputs) {
  const double factor = static_cast<double>(samples) / outputs;
  return factor > 1.0 ? (factor - 1.0) / 2.0 : 0.0;
}

AxisTaps resize_taps(std::uint32_t samples, std::uint32_t outputs, const ResizeOptions& options) {
  const bool corner = options.alignment == Alignment::corner;
  const FilterBoundary boundary{corner ? Boundary::reflect : Boundary::mirror, 0.0f};
  const double sigma = options.anti_aliasing && options.order < 2 ? anti_aliasing_sigma(samples, outputs) : 0.0;
  const std::vector<double> window = sigma > 1e-15 ? gaussian_window(sigma, 0, 4.0) : std::vector<double>{1.0};
  const auto radius = static_cast<std::int64_t>(window.size() / 2);
  const double last = static_cast<double>(samples) - 1.0;
  AxisTaps taps;
  for (std::uint32_t o = 0; o < outputs; ++o) {
    double at = 0.0;
    if (corner) {
      at = outputs == 1 ? 0.0 : last / (static_cast<double>(outputs) - 1.0) * o;
    } else {
      at = (o + 0.5) * (static_cast<double>(samples) / outputs) - 0.5;
    }
    // Interpolated samples mirror about the last centre in both conventions; the Gaussian's have their own rule.
    TapRow row(samples, boundary);
    const bool past = corner && at > last;
    if (!(past && options.compat_edge_zero)) {
      const Interpolation linear = interpolation_at(past ? last : at, options.order);
      for (std::size_t i = 0; i < linear.weights.size(); ++i) {
        const double weight = linear.weights[i];
        if (weight == 0.0) continue;
        const std::int64_t sample =
            sample_within(linear.first + static_cast<std::int64_t>(i), samples, Boundary::mirror);
        for (std::size_t k = 0; k < window.size(); ++k) {
          row.add(sample - radius + static_cast<std::int64_t>(k), weight * window[k]);
        }
      }
    }
    row.append_to(taps);
  }
  return taps;
}

}  // namespace cingulum::oct
