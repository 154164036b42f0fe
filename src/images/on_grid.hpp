// Masks and maps on the grid of a run. An image on another grid is resampled, masks and maps of two values by the
// nearest voxel, other maps linearly, and the log says so; it is refused where half of it lies outside, which is
// another subject or space, or where a header does not say how its image lies. Called by whatever reads a mask or a
// stopping map beside a series or a field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

struct NamedGrid {
  ImageGeometry geometry;
  std::string name;      // in messages: "the series dwi.nii.gz"
  bool oriented = true;  // the header has an sform or a qform
};

// One byte per voxel of the grid, 1 where the mask is above zero. `what` is "the mask", "the seed mask".
[[nodiscard]] Result<std::vector<std::uint8_t>> read_mask_on(const std::filesystem::path& path, std::string_view what,
                                                             const NamedGrid& grid);

// One number per voxel of the grid, of an image with one volume. On the same grid they are the file's; resampled, what
// is not finite counts as 0.
[[nodiscard]] Result<std::vector<float>> read_map_on(const std::filesystem::path& path, std::string_view what,
                                                     const NamedGrid& grid);

}  // namespace cingulum
