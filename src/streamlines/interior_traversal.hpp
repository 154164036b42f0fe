// Every voxel that a straight segment passes through, exactly: the segment is cut where it crosses the planes between
// voxels, and each piece names its voxel. Called by the score; positions in voxel coordinates, voxel i covers
// [i - 1/2, i + 1/2). A voxel that the segment meets in a point only (an edge, a corner, an end on a face) is not
// passed through: a true fibre ends exactly on the last face of its bundle and must not count as overreach.
// voxel_traversal.hpp has the other rule, which regions need: every voxel that holds a point of the segment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

class InteriorTraversal {
 public:
  explicit InteriorTraversal(std::array<std::int64_t, 3> size) : size_(size) {}

  // Appends the indices (x fastest) of the voxels between a and b in order of travel, those outside the grid left out.
  // A segment of no length names the voxel that it is in.
  void append(numerics::Vec3d a, numerics::Vec3d b, std::vector<std::uint32_t>& voxels) {
    const std::array<double, 3> from = {a.x, a.y, a.z};
    const std::array<double, 3> to = {b.x, b.y, b.z};
    // Far outside nothing is met, and the number of planes stays bounded.
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double end = static_cast<double>(size_[axis]);
      if ((from[axis] < -0.5 && to[axis] < -0.5) || (from[axis] > end && to[axis] > end)) return;
    }
    cuts_.clear();
    cuts_.push_back(0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double low = std::min(from[axis], to[axis]);
      const double high = std::max(from[axis], to[axis]);
      // Planes at k - 1/2 strictly between the ends.
      const double first = std::max(numerics::floor_of(low + 0.5) + 1, 0.0);
      const double last = std::min(high + 0.5, static_cast<double>(size_[axis]));
      for (double k = first; k <= last; k += 1) {
        const double t = ((k - 0.5) - from[axis]) / (to[axis] - from[axis]);
        if (t > 0 && t < 1) cuts_.push_back(t);
      }
    }
    cuts_.push_back(1);
    if (cuts_.size() > 3) std::sort(cuts_.begin(), cuts_.end());
    std::uint32_t before = no_voxel;
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i) {
      if (!(cuts_[i + 1] > cuts_[i])) continue;
      const double middle = 0.5 * (cuts_[i] + cuts_[i + 1]);
      const std::uint32_t voxel = voxel_at({from[0] + middle * (to[0] - from[0]), from[1] + middle * (to[1] - from[1]),
                                            from[2] + middle * (to[2] - from[2])});
      if (voxel != no_voxel && voxel != before) voxels.push_back(voxel);
      before = voxel;
    }
  }

  static constexpr std::uint32_t no_voxel = 0xffffffffu;
  [[nodiscard]] std::uint32_t voxel_at(numerics::Vec3d point) const {
    const std::array<double, 3> at = {point.x, point.y, point.z};
    std::array<std::int64_t, 3> index{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double cell = numerics::floor_of(at[axis] + 0.5);
      if (!(cell >= 0 && cell < static_cast<double>(size_[axis]))) return no_voxel;
      index[axis] = static_cast<std::int64_t>(cell);
    }
    return static_cast<std::uint32_t>(index[0] + size_[0] * (index[1] + size_[1] * index[2]));
  }

 private:
  std::array<std::int64_t, 3> size_;
  std::vector<double> cuts_;
};

}  // namespace cingulum
