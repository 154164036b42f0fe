// Which voxels a segment passes through, and in which order: every voxel that holds a point of it. Voxels are half-open
// boxes, [i - 0.5, i + 0.5) along each axis, so that every point belongs to exactly one. Called by regions, density
// maps and the comparison of tractograms. The grid has no ends here: callers look up what they hold.
//
// After Amanatides and Woo, A fast voxel traversal algorithm for ray tracing (Eurographics 1987), with the number of
// crossings of each axis counted beforehand, so that the walk ends in the voxel of the end point whatever the rounding,
// and with the ties that half-open boxes ask for: where the segment meets an edge or a corner, rising coordinates enter
// the next voxel at that point, falling ones leave theirs behind it.
#pragma once

#include <array>
#include <cstdint>

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct VoxelIndex {
  std::int64_t i = 0;
  std::int64_t j = 0;
  std::int64_t k = 0;
  friend bool operator==(const VoxelIndex&, const VoxelIndex&) = default;
};

// Coordinates are finite and below 2^52 in magnitude.
[[nodiscard]] inline VoxelIndex voxel_of(numerics::Vec3d position) {
  return {static_cast<std::int64_t>(numerics::floor_of(position.x + 0.5)),
          static_cast<std::int64_t>(numerics::floor_of(position.y + 0.5)),
          static_cast<std::int64_t>(numerics::floor_of(position.z + 0.5))};
}

// Calls visit(VoxelIndex) for each voxel from the one of `from` to the one of `to`, in order, each once; visit returns
// whether to go on.
template <class Visit>
void traverse_voxels(numerics::Vec3d from, numerics::Vec3d to, Visit&& visit) {
  const VoxelIndex first = voxel_of(from);
  const VoxelIndex last = voxel_of(to);
  if (!visit(first) || first == last) return;

  std::array<std::int64_t, 3> at = {first.i, first.j, first.k};
  const std::array<std::int64_t, 3> end = {last.i, last.j, last.k};
  const std::array<double, 3> start = {from.x, from.y, from.z};
  const std::array<double, 3> extent = {to.x - from.x, to.y - from.y, to.z - from.z};
  constexpr double never = 4;  // crossings lie in [0, 1]
  const auto next_crossing = [&](std::size_t axis) {
    if (at[axis] == end[axis]) return never;
    // The face ahead: the upper one where the coordinate rises, the lower one where it falls.
    const double face = static_cast<double>(at[axis]) + (end[axis] > at[axis] ? 0.5 : -0.5);
    return (face - start[axis]) / extent[axis];
  };
  std::array<double, 3> crossing = {next_crossing(0), next_crossing(1), next_crossing(2)};
  for (;;) {
    double nearest = crossing[0];
    for (const std::size_t axis : {std::size_t{1}, std::size_t{2}}) {
      if (crossing[axis] < nearest) nearest = crossing[axis];
    }
    if (nearest == never) return;
    for (const bool rising : {true, false}) {
      bool moved = false;
      std::array<bool, 3> crossed = {};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (crossing[axis] != nearest || (end[axis] > at[axis]) != rising) continue;
        at[axis] += rising ? 1 : -1;
        crossed[axis] = true;
        moved = true;
      }
      if (!moved) continue;
      if (!visit(VoxelIndex{at[0], at[1], at[2]})) return;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (crossed[axis]) crossing[axis] = next_crossing(axis);
      }
    }
  }
}

}  // namespace cingulum
