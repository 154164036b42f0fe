// The grid of a phantom's images: voxel edges, rotation against the world and the order in which the axes are stored.
// The phantom is computed on a canonical grid whose axes run towards right, front and top; storing in another
// orientation permutes and flips that grid, so that every orientation holds exactly the same numbers, noise included.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct PhantomGrid {
  ImageGeometry canonical;
  ImageGeometry stored;
  std::array<int, 3> canonical_axis = {0, 1, 2};  // of each stored axis
  std::array<bool, 3> flipped = {false, false, false};

  // Where a canonical voxel is stored.
  [[nodiscard]] std::size_t stored_index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    const std::array<std::int64_t, 3> at = {x, y, z};
    std::int64_t index = 0;
    for (std::size_t axis = 3; axis-- > 0;) {
      const std::int64_t c = at[static_cast<std::size_t>(canonical_axis[axis])];
      index = index * stored.size[axis] + (flipped[axis] ? stored.size[axis] - 1 - c : c);
    }
    return static_cast<std::size_t>(index);
  }
};

struct GridOptions {
  std::array<double, 3> voxel_mm = {2, 2, 2};    // along right, front and top
  std::array<double, 3> rotate_deg = {0, 0, 0};  // about x, then y, then z
  std::string orientation = "RAS";               // where the stored axes run to, each of R/L, A/P, S/I once
};

// Covers a box of this extent around the world's origin. A rotated grid is larger, so that the box stays covered.
[[nodiscard]] Result<PhantomGrid> phantom_grid(numerics::Vec3d extent_mm, const GridOptions& options);

}  // namespace cingulum
