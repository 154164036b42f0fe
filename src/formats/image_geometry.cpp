#include "formats/image_geometry.hpp"

#include <algorithm>
#include <cmath>

namespace cingulum {

using numerics::Vec3d;

Vec3d Affine::rotate(Vec3d vector) const {
  const auto row = [&](int r) { return (at(r, 0) * vector.x + at(r, 1) * vector.y) + at(r, 2) * vector.z; };
  return {row(0), row(1), row(2)};
}

double Affine::determinant() const {
  const Vec3d x{at(0, 0), at(1, 0), at(2, 0)};
  const Vec3d y{at(0, 1), at(1, 1), at(2, 1)};
  const Vec3d z{at(0, 2), at(1, 2), at(2, 2)};
  return dot(cross(x, y), z);
}

bool Affine::is_finite() const {
  return std::all_of(rows.begin(), rows.end(), [](double value) { return std::isfinite(value); });
}

Result<Affine> Affine::inverse() const {
  const double d = determinant();
  if (!is_finite() || !std::isfinite(d) || d == 0.0) {
    return fail(ErrorKind::invalid_argument, "the affine map cannot be inverted (determinant {})", d);
  }
  Affine result;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) {
      const int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
      result.at(c, r) = (at(r1, c1) * at(r2, c2) - at(r1, c2) * at(r2, c1)) / d;
    }
  }
  const Vec3d origin = result.rotate({at(0, 3), at(1, 3), at(2, 3)});
  result.at(0, 3) = -origin.x;
  result.at(1, 3) = -origin.y;
  result.at(2, 3) = -origin.z;
  return result;
}

Affine compose(const Affine& a, const Affine& b) {
  Affine result;
  for (int c = 0; c < 3; ++c) {
    const Vec3d column = a.rotate({b.at(0, c), b.at(1, c), b.at(2, c)});
    result.at(0, c) = column.x;
    result.at(1, c) = column.y;
    result.at(2, c) = column.z;
  }
  const Vec3d origin = a.apply({b.at(0, 3), b.at(1, 3), b.at(2, 3)});
  result.at(0, 3) = origin.x;
  result.at(1, 3) = origin.y;
  result.at(2, 3) = origin.z;
  return result;
}

std::array<double, 3> ImageGeometry::voxel_mm() const {
  std::array<double, 3> edges{};
  for (int c = 0; c < 3; ++c) {
    edges[static_cast<std::size_t>(c)] =
        length(Vec3d{voxel_to_world.at(0, c), voxel_to_world.at(1, c), voxel_to_world.at(2, c)});
  }
  return edges;
}

double ImageGeometry::smallest_edge_mm() const {
  const auto edges = voxel_mm();
  return *std::min_element(edges.begin(), edges.end());
}

std::string ImageGeometry::axis_codes() const {
  constexpr const char* positive = "RAS";
  constexpr const char* negative = "LPI";
  const auto edges = voxel_mm();
  std::string codes = "???";
  std::array<bool, 3> axis_taken{}, world_taken{};
  // The pair of voxel axis and world axis that agree best is settled first, then the next.
  for (int round = 0; round < 3; ++round) {
    double best = -1;
    std::size_t best_axis = 0, best_world = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      for (std::size_t world = 0; world < 3; ++world) {
        if (axis_taken[axis] || world_taken[world]) continue;
        const double cosine =
            edges[axis] > 0 ? std::abs(voxel_to_world.at(static_cast<int>(world), static_cast<int>(axis))) / edges[axis]
                            : 0;
        if (cosine > best) {
          best = cosine;
          best_axis = axis;
          best_world = world;
        }
      }
    }
    axis_taken[best_axis] = world_taken[best_world] = true;
    const double component = voxel_to_world.at(static_cast<int>(best_world), static_cast<int>(best_axis));
    codes[best_axis] = component < 0 ? negative[best_world] : positive[best_world];
  }
  return codes;
}

Status check_same_grid(const ImageGeometry& a, std::string_view what_a, const ImageGeometry& b, std::string_view what_b,
                       double tolerance_mm) {
  if (a.size != b.size) {
    return fail(ErrorKind::invalid_argument, "{} has {} x {} x {} voxels, {} has {} x {} x {}", what_a, a.size[0],
                a.size[1], a.size[2], what_b, b.size[0], b.size[1], b.size[2]);
  }
  double largest = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const auto end = [&](int axis) {
      return ((corner >> axis) & 1) != 0 ? static_cast<double>(a.size[static_cast<std::size_t>(axis)] - 1) : 0.0;
    };
    const Vec3d voxel{end(0), end(1), end(2)};
    const double distance = length(a.voxel_to_world.apply(voxel) - b.voxel_to_world.apply(voxel));
    if (!(distance <= largest)) largest = distance;
  }
  if (!(largest <= tolerance_mm)) {
    return fail(
        ErrorKind::invalid_argument,
        "{} and {} are not on the same grid: their affines put a corner {:.3g} mm apart (at most {:.3g} accepted)",
        what_a, what_b, largest, tolerance_mm);
  }
  return {};
}

}  // namespace cingulum
