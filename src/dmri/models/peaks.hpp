// Peaks of functions on a sphere, on the host: prepares the graph once and applies the rule of peak_kernel.hpp to one
// voxel or, on all cores, to many. Called by the models (peak images) and the CPU tracker. No refinement between
// vertices: a peak is a direction of the sphere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/models/peak_kernel.hpp"
#include "dmri/sphere/sphere.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct PeakOptions {
  double relative_threshold = 0.25;  // of the greatest, 0 to 1
  double min_separation_deg = 45;    // 0 to 90 on the hemisphere, to 180 on a full one
  std::uint32_t max_peaks = 5;       // the strongest
};

class PeakFinder {
 public:
  [[nodiscard]] static Result<PeakFinder> create(const Sphere& sphere, const PeakOptions& options);

  // A value per direction, finite. Writes vertices, strongest first, to `peaks` (max_peaks places) and returns how many
  // there are. `candidates` is scratch that the function grows as needed.
  [[nodiscard]] std::uint32_t find(std::span<const float> values, std::vector<std::uint32_t>& candidates,
                                   std::span<std::uint32_t> peaks) const;

  [[nodiscard]] std::size_t sphere_size() const { return directions_.size(); }
  [[nodiscard]] std::uint32_t max_peaks() const { return max_peaks_; }
  [[nodiscard]] numerics::Vec3 direction(std::uint32_t vertex) const { return directions_[vertex]; }
  // Valid while the finder lives where it is.
  [[nodiscard]] PeakGraph graph() const;
  [[nodiscard]] PeakRule rule() const { return rule_; }

  // `values` has sphere_size() numbers per voxel. The result has 3 max_peaks() numbers per voxel: directions whose
  // length is the value there, zero where there are fewer peaks; this is what a peak image holds.
  [[nodiscard]] std::vector<float> peak_vectors(std::span<const float> values, ThreadPool& pool) const;

 private:
  PeakFinder() = default;

  std::vector<std::uint32_t> neighbour_offsets_;
  std::vector<std::uint32_t> neighbours_;
  std::vector<numerics::Vec3> directions_;
  bool is_hemisphere_ = true;
  PeakRule rule_ = {};
  std::uint32_t max_peaks_ = 0;
};

}  // namespace cingulum
