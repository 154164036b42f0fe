// The triangles of the convex hull of points on the unit sphere: the neighbour graph of a set of directions. Called by
// sphere.cpp. Set-up only: O(n^2) at worst, a second for 20 000 points.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// 2 n - 4 triangles, counter-clockwise seen from outside. Coordinates are rounded to 2^-38 and all tests are exact in
// integers, so that degenerate cases (points on one circle) give one valid triangulation among those possible. Fails
// for fewer than four points, for points on one plane, and where a point is too near to others to be a corner.
[[nodiscard]] Result<std::vector<std::array<std::uint32_t, 3>>> convex_hull_on_sphere(
    std::span<const numerics::Vec3d> points);

}  // namespace cingulum
