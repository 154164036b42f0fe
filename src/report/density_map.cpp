#include "report/density_map.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "tract/voxel_traversal.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// Cuts a segment to the slab [low, high] along one axis; false where nothing is left. The coordinate that is cut is set
// to the slab's face itself, so that segments of any length stay exact along it.
bool cut_to_slab(std::array<double, 3>& from, std::array<double, 3>& to, std::size_t axis, double low, double high) {
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

}  // namespace

DensityMap::DensityMap(const ImageGeometry& geometry, const Affine& world_to_voxel)
    : geometry_(geometry), world_to_voxel_(world_to_voxel), counts_(static_cast<std::size_t>(geometry.voxel_count())) {}

Result<DensityMap> DensityMap::create(const ImageGeometry& geometry) {
  double voxels = 1;
  for (const std::int64_t size : geometry.size) voxels *= static_cast<double>(size);
  if (!(voxels >= 1) || voxels > static_cast<double>(max_voxels)) {
    return fail(ErrorKind::invalid_argument,
                "density map: a grid of {} x {} x {} voxels; accepted are 1 to {} voxels, so give a coarser --anatomy",
                geometry.size[0], geometry.size[1], geometry.size[2], max_voxels);
  }
  CGL_TRY_ASSIGN(const Affine world_to_voxel, add_context(geometry.voxel_to_world.inverse(), "density map"));
  return catch_out_of_memory([&]() -> Result<DensityMap> { return DensityMap(geometry, world_to_voxel); });
}

void DensityMap::collect_voxels(std::span<const float> positions, std::vector<std::int64_t>& voxels) const {
  voxels.clear();
  const std::size_t points = positions.size() / 3;
  const auto voxel_position = [&](std::size_t point) {
    return world_to_voxel_.apply({positions[3 * point], positions[3 * point + 1], positions[3 * point + 2]});
  };
  const Vec3d high = {static_cast<double>(geometry_.size[0]) - 0.5, static_cast<double>(geometry_.size[1]) - 0.5,
                      static_cast<double>(geometry_.size[2]) - 0.5};
  const auto inside = [&](Vec3d p) {
    return p.x >= -0.5 && p.y >= -0.5 && p.z >= -0.5 && p.x < high.x && p.y < high.y && p.z < high.z;
  };
  const auto visit = [&](const VoxelIndex& voxel) {
    if (voxel.i >= 0 && voxel.j >= 0 && voxel.k >= 0 && voxel.i < geometry_.size[0] && voxel.j < geometry_.size[1] &&
        voxel.k < geometry_.size[2]) {
      const std::int64_t index = voxel_index(geometry_, voxel.i, voxel.j, voxel.k);
      if (voxels.empty() || voxels.back() != index) voxels.push_back(index);
    }
    return true;
  };
  if (points == 0) return;
  Vec3d from = voxel_position(0);
  if (points == 1 && inside(from)) visit(voxel_of(from));
  for (std::size_t point = 1; point < points; ++point) {
    const Vec3d to = voxel_position(point);
    if (inside(from) && inside(to)) {
      traverse_voxels(from, to, visit);
    } else {
      // Only the part inside is walked: what lies outside may be as long as it likes.
      std::array<double, 3> begin = {from.x, from.y, from.z};
      std::array<double, 3> end = {to.x, to.y, to.z};
      if (cut_to_slab(begin, end, 0, -0.5, high.x) && cut_to_slab(begin, end, 1, -0.5, high.y) &&
          cut_to_slab(begin, end, 2, -0.5, high.z)) {
        traverse_voxels({begin[0], begin[1], begin[2]}, {end[0], end[1], end[2]}, visit);
      }
    }
    from = to;
  }
  std::sort(voxels.begin(), voxels.end());
  voxels.erase(std::unique(voxels.begin(), voxels.end()), voxels.end());
}

void DensityMap::add(const TractogramBatch& batch, std::span<const std::uint8_t> skipped, ThreadPool& pool) {
  pool.parallel_for(batch.streamline_count(), 64, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> voxels;
    for (std::size_t line = begin; line < end; ++line) {
      if (skipped[line] != 0) continue;
      collect_voxels(batch.streamline(line), voxels);
      for (const std::int64_t voxel : voxels) {
        // Sums of integers: the order in which threads come does not show.
        std::atomic_ref(counts_[static_cast<std::size_t>(voxel)]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

std::uint64_t DensityMap::visited_voxels() const {
  return static_cast<std::uint64_t>(
      std::count_if(counts_.begin(), counts_.end(), [](std::uint32_t count) { return count > 0; }));
}

std::uint32_t DensityMap::largest() const {
  return *std::max_element(counts_.begin(), counts_.end());
}

ImageGeometry grid_around(const WorldBox& box) {
  const Vec3d extent = box.high - box.low;
  const double wanted = std::max({extent.x, extent.y, extent.z, 1e-3}) / 90;
  double edge = 1e-6;
  for (int step = 0; edge < wanted; ++step) edge *= step % 3 == 1 ? 2.5 : 2.0;
  ImageGeometry geometry;
  const std::array<double, 3> low = {box.low.x, box.low.y, box.low.z};
  const std::array<double, 3> high = {box.high.x, box.high.y, box.high.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double first = std::floor(low[axis] / edge);
    const double last = std::floor(high[axis] / edge);
    geometry.size[axis] = static_cast<std::int64_t>(std::clamp(last - first + 1, 1.0, 200.0));
    geometry.voxel_to_world.at(static_cast<int>(axis), static_cast<int>(axis)) = edge;
    geometry.voxel_to_world.at(static_cast<int>(axis), 3) = (first + 0.5) * edge;
  }
  return geometry;
}

}  // namespace cingulum
