// How many streamlines pass through each voxel of a grid: every streamline counts once in each voxel that a segment of
// it enters (exact traversal, voxel_traversal.hpp), however often it comes back and however far it leads outside.
// Filled batch by batch by the report; the comparison of tractograms counts by collect_passed_voxels, too. Memory is
// the grid and one streamline's voxels per thread. It draws nothing: report/density_picture.hpp does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"
#include "formats/tractogram.hpp"
#include "streamlines/world_box.hpp"

namespace cingulum {

// The voxels that one streamline passes through, each once, ascending; positions are world millimetres. False where a
// part of the streamline lies outside the grid; of a segment that leaves it, the part inside counts. A segment with an
// end that is not finite counts for nothing and lies outside. any thread
[[nodiscard]] bool collect_passed_voxels(const ImageGeometry& grid, const Affine& world_to_voxel,
                                         std::span<const float> positions, std::vector<std::int64_t>& voxels);

class DensityMap {
 public:
  // Fails where the affine cannot be inverted or the grid has more than `max_voxels` voxels.
  [[nodiscard]] static Result<DensityMap> create(const ImageGeometry& geometry);
  static constexpr std::int64_t max_voxels = 100'000'000;

  // Positions are world millimetres in float32. Streamlines with `skipped[i]` set are left out (they are not finite).
  void add(const TractogramBatch& batch, std::span<const std::uint8_t> skipped, ThreadPool& pool);

  [[nodiscard]] const ImageGeometry& geometry() const { return geometry_; }
  [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return counts_; }  // x fastest
  [[nodiscard]] std::uint64_t visited_voxels() const;
  [[nodiscard]] std::uint32_t largest() const;

 private:
  DensityMap(const ImageGeometry& geometry, const Affine& world_to_voxel);

  ImageGeometry geometry_;
  Affine world_to_voxel_;
  std::vector<std::uint32_t> counts_;
};

// A grid along the world's axes around a box, for tractograms that name none: about 90 voxels along its longest side,
// their edge 1, 2 or 5 times a power of ten.
[[nodiscard]] ImageGeometry grid_around(const WorldBox& box);

}  // namespace cingulum
