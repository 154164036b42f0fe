#include "tract/field/given_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "numerics/vec3.hpp"

namespace cingulum {

void keep_peaks(std::span<float> values, std::size_t peaks, const PeakSelection& selection) {
  using numerics::Vec3d;
  const double cos_separation = std::cos(selection.min_separation_deg * std::numbers::pi / 180);
  std::vector<Vec3d> vectors(peaks);
  std::vector<double> lengths(peaks);
  std::vector<std::size_t> order(peaks), kept;
  for (std::size_t first = 0; first + 3 * peaks <= values.size(); first += 3 * peaks) {
    for (std::size_t i = 0; i < peaks; ++i) {
      const float* v = values.data() + first + 3 * i;
      vectors[i] = {static_cast<double>(v[0]), static_cast<double>(v[1]), static_cast<double>(v[2])};
      lengths[i] = length(vectors[i]);
      if (!std::isfinite(lengths[i])) lengths[i] = 0;
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
    const double least = std::max(selection.absolute_threshold, selection.relative_threshold * lengths[order.front()]);
    kept.clear();
    for (const std::size_t i : order) {
      const bool long_enough = lengths[i] > 0 && lengths[i] >= least;
      const bool apart = std::none_of(kept.begin(), kept.end(), [&](std::size_t other) {
        return selection.min_separation_deg > 0 &&
               std::abs(dot(vectors[i], vectors[other])) > cos_separation * lengths[i] * lengths[other];
      });
      if (long_enough && apart) {
        kept.push_back(i);
      } else {
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first + 3 * i), 3, 0.0f);
      }
    }
  }
}

}  // namespace cingulum
