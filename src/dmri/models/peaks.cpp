#include "dmri/models/peaks.hpp"

#include <algorithm>

#include "numerics/elementary64.hpp"

namespace cingulum {

Result<PeakFinder> PeakFinder::create(const Sphere& sphere, const PeakOptions& options) {
  const double widest = sphere.is_hemisphere ? 90 : 180;
  if (!(options.relative_threshold >= 0 && options.relative_threshold <= 1)) {
    return fail_argument("relative_peak_threshold",
                         "finding peaks: the relative threshold is {}; it lies between 0 and 1",
                         options.relative_threshold);
  }
  if (!(options.min_separation_deg >= 0 && options.min_separation_deg <= widest)) {
    return fail_argument("min_separation_angle",
                         "finding peaks: the smallest separation is {} degrees; possible are 0 to {}",
                         options.min_separation_deg, widest);
  }
  if (options.max_peaks == 0 || options.max_peaks > sphere.size()) {
    return fail_argument("peaks", "finding peaks: at most {} peaks; possible are 1 to {}", options.max_peaks,
                         sphere.size());
  }
  PeakFinder finder;
  finder.neighbour_offsets_ = sphere.neighbour_offsets;
  finder.neighbours_ = sphere.neighbours;
  for (const numerics::Vec3d& v : sphere.directions) {
    finder.directions_.push_back({static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)});
  }
  finder.is_hemisphere_ = sphere.is_hemisphere;
  constexpr double radians_per_degree = 0x1.1df46a2529d39p-6;
  finder.rule_ = {static_cast<float>(options.relative_threshold),
                  static_cast<float>(numerics::cosine(options.min_separation_deg * radians_per_degree))};
  finder.max_peaks_ = options.max_peaks;
  return finder;
}

PeakGraph PeakFinder::graph() const {
  return {static_cast<std::uint32_t>(directions_.size()), neighbour_offsets_.data(), neighbours_.data(),
          directions_.data(), is_hemisphere_};
}

std::uint32_t PeakFinder::find(std::span<const float> values, std::vector<std::uint32_t>& candidates,
                               std::span<std::uint32_t> peaks) const {
  if (values.size() != directions_.size() || peaks.empty()) return 0;
  candidates.resize(directions_.size());
  const auto capacity = static_cast<std::uint32_t>(std::min<std::size_t>(peaks.size(), max_peaks_));
  return find_peaks(graph(), rule_, values.data(), candidates.data(), peaks.data(), capacity);
}

std::vector<float> PeakFinder::peak_vectors(std::span<const float> values, ThreadPool& pool) const {
  const std::size_t voxels = values.size() / directions_.size();
  const std::size_t width = std::size_t{3} * max_peaks_;
  std::vector<float> result(voxels * width, 0.0f);
  pool.parallel_for(voxels, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> candidates;
    std::vector<std::uint32_t> peaks(max_peaks_);
    for (std::size_t voxel = begin; voxel < end; ++voxel) {
      const auto own = values.subspan(voxel * directions_.size(), directions_.size());
      const std::uint32_t count = find(own, candidates, peaks);
      float* to = result.data() + voxel * width;
      for (std::uint32_t i = 0; i < count; ++i) {
        const numerics::Vec3 vector = directions_[peaks[i]] * own[peaks[i]];
        *to++ = vector.x;
        *to++ = vector.y;
        *to++ = vector.z;
      }
    }
  });
  return result;
}

}  // namespace cingulum
