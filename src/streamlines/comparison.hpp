// Tractograms set side by side: counts and lengths of each, the voxels that they share, and the first place where two
// that should be equal are not. Called by `cingulum compare` and the tests. Files are read in batches; memory is that
// of one map of the grid per tractogram.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

struct TractogramSummary {
  std::filesystem::path path;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
  double mean_length_mm = 0;
  double median_length_mm = 0;
  double smallest_length_mm = 0;
  double largest_length_mm = 0;
  std::uint64_t commissural = 0;       // whose ends lie on opposite sides of the plane world x = midline
  std::uint64_t crossing_midline = 0;  // that cross it anywhere
  std::uint64_t outside_grid = 0;      // streamlines of which a part lies outside the grid
  // Streamlines that pass through each voxel of the grid, x fastest; each streamline counts once per voxel.
  std::vector<std::uint32_t> density;
  std::map<std::string, std::vector<std::uint32_t>> group_density;  // the same for each group of a TRX file
};

// The middle of the grid along world x, for `midline`.
[[nodiscard]] double middle_world_x(const ImageGeometry& grid);

[[nodiscard]] Result<TractogramSummary> summarise_tractogram(const std::filesystem::path& path,
                                                             const ImageGeometry& grid, double midline,
                                                             const CancelToken& cancel = {});

struct VoxelOverlap {
  std::uint64_t voxels_a = 0;
  std::uint64_t voxels_b = 0;
  std::uint64_t shared = 0;
  double dice = 0;           // 2 |A and B| / (|A| + |B|); 1 when both are empty
  double weighted_dice = 0;  // share of all streamline visits that fall into voxels of both (Cousineau et al.,
                             // NeuroImage: Clinical 16, 2017); each tractogram counts as a whole
};
[[nodiscard]] VoxelOverlap voxel_overlap(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b);

// In words, where two files first differ: counts, offsets, positions (as float32), data of points and streamlines,
// groups; nothing where they hold the same. The formats may differ.
[[nodiscard]] Result<std::optional<std::string>> first_difference(const std::filesystem::path& a,
                                                                  const std::filesystem::path& b,
                                                                  const CancelToken& cancel = {});

}  // namespace cingulum
