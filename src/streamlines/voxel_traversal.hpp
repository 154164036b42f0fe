// Which voxels a segment passes through, and in which order: every voxel that holds a point of it. Voxels are half-open
// boxes, [i - 0.5, i + 0.5) along each axis, so that every point belongs to exactly one. Called by regions,
// density maps and the comparison of tractograms; the score has a rule of its own, for the reason in
// interior_traversal.hpp. traverse_voxels knows no ends of the grid: callers look up what they hold; traverse_grid
// leaves out what lies outside.
//
// After Amanatides and Woo, A fast voxel traversal algorithm for ray tracing (Eurographics 1987), with the number of
// crossings of each axis counted beforehand, so that the walk ends in the voxel of the end point whatever the rounding,
// and with the ties that half-open boxes ask for: where the segment meets an edge or a corner, rising coordinates enter
// the next voxel at that point, falling ones leave theirs behind it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

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

[[nodiscard]] inline bool in_grid(const std::array<std::int64_t, 3>& size, const VoxelIndex& voxel) {
  return voxel.i >= 0 && voxel.j >= 0 && voxel.k >= 0 && voxel.i < size[0] && voxel.j < size[1] && voxel.k < size[2];
}

// The voxel of a grid of this size that holds the position, which may be anywhere.
[[nodiscard]] inline std::optional<VoxelIndex> voxel_in_grid(const std::array<std::int64_t, 3>& size,
                                                             numerics::Vec3d position) {
  const auto within = [](double at, std::int64_t count) { return at >= -0.5 && at < static_cast<double>(count) - 0.5; };
  if (!within(position.x, size[0]) || !within(position.y, size[1]) || !within(position.z, size[2])) return std::nullopt;
  const VoxelIndex voxel = voxel_of(position);
  // A position just below the upper face may round onto it.
  return in_grid(size, voxel) ? std::optional(voxel) : std::nullopt;
}

// Cuts a segment to the slab [low, high] along one axis; false where nothing is left. The coordinate that is cut is set
// to the slab's face itself, so that segments of any length stay exact along it.
[[nodiscard]] inline bool cut_to_slab(std::array<double, 3>& from, std::array<double, 3>& to, std::size_t axis,
                                      double low, double high) {
  if ((from[axis] < low && to[axis] < low) || (from[axis] > high && to[axis] > high)) return false;
  const auto cut = [&](std::array<double, 3>& moved, const std::array<double, 3>& other, double face) {
    const double t = (face - moved[axis]) / (other[axis] - moved[axis]);
    for (std::size_t a = 0; a < 3; ++a) moved[a] += (other[a] - moved[a]) * t;
    moved[axis] = face;
  };
  if (from[axis] < low) cut(from, to, low);
  if (from[axis] > high) cut(from, to, high);
  if (to[axis] < low) cut(to, from, low);
  if (to[axis] > high) cut(to, from, high);
  return true;
}

// Calls visit(VoxelIndex) for each voxel of a grid of this size that the segment passes through, in order. Only the
// part inside is walked: what lies outside may be as long as it likes. Coordinates are finite.
template <class Visit>
void traverse_grid(const std::array<std::int64_t, 3>& size, numerics::Vec3d from, numerics::Vec3d to, Visit&& visit) {
  std::array<double, 3> begin = {from.x, from.y, from.z};
  std::array<double, 3> end = {to.x, to.y, to.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!cut_to_slab(begin, end, axis, -0.5, static_cast<double>(size[axis]) - 0.5)) return;
  }
  traverse_voxels({begin[0], begin[1], begin[2]}, {end[0], end[1], end[2]}, [&](const VoxelIndex& voxel) {
    if (in_grid(size, voxel)) visit(voxel);
    return true;
  });
}

}  // namespace cingulum
