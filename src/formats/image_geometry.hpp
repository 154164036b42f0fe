// Where the voxels of an image lie: the size of its grid and the affine map from voxel indices (the centre of voxel
// (0, 0, 0) is the origin of voxel space) to world coordinates, RAS+ in millimetres. Used by every format that has a
// space, by the models and the trackers. It holds no data.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// The upper three rows of a homogeneous 4 x 4 matrix, row by row.
struct Affine {
  std::array<double, 12> rows = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};

  [[nodiscard]] double at(int row, int column) const { return rows[static_cast<std::size_t>(row * 4 + column)]; }
  double& at(int row, int column) { return rows[static_cast<std::size_t>(row * 4 + column)]; }

  // ((m0 x + m1 y) + m2 z) + m3 in this order: contract, section 5.
  [[nodiscard]] numerics::Vec3d apply(numerics::Vec3d point) const {
    const auto row = [&](int r) { return ((at(r, 0) * point.x + at(r, 1) * point.y) + at(r, 2) * point.z) + at(r, 3); };
    return {row(0), row(1), row(2)};
  }
  // Applies the 3 x 3 part alone, without the translation.
  [[nodiscard]] numerics::Vec3d rotate(numerics::Vec3d vector) const;
  [[nodiscard]] double determinant() const;  // of the 3 x 3 part
  // Fails where the determinant is zero or not finite.
  [[nodiscard]] Result<Affine> inverse() const;
  [[nodiscard]] bool is_finite() const;

  friend bool operator==(const Affine&, const Affine&) = default;
};

// first `b`, then `a`.
[[nodiscard]] Affine compose(const Affine& a, const Affine& b);

struct ImageGeometry {
  std::array<std::int64_t, 3> size = {1, 1, 1};
  Affine voxel_to_world = {};

  [[nodiscard]] std::int64_t voxel_count() const { return size[0] * size[1] * size[2]; }
  // Edge lengths: the norms of the affine's columns.
  [[nodiscard]] std::array<double, 3> voxel_mm() const;
  [[nodiscard]] double smallest_edge_mm() const;
  // "RAS", "LPS", ...: the world direction that each voxel axis is nearest to, each letter once.
  [[nodiscard]] std::string axis_codes() const;

  friend bool operator==(const ImageGeometry&, const ImageGeometry&) = default;
};

// x fastest.
[[nodiscard]] constexpr std::int64_t voxel_index(const ImageGeometry& geometry, std::int64_t i, std::int64_t j,
                                                 std::int64_t k) {
  return i + geometry.size[0] * (j + geometry.size[1] * k);
}

// Same grid: equal sizes and affines that move no corner of the grid by more than `tolerance_mm`. The failure names
// both values, and what `what_a` and `what_b` are ("the mask m.nii.gz", "the series d.nii.gz").
[[nodiscard]] Status check_same_grid(const ImageGeometry& a, std::string_view what_a, const ImageGeometry& b,
                                     std::string_view what_b, double tolerance_mm = 0.01);

}  // namespace cingulum
