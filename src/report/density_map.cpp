#include "report/density_map.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "tract/voxel_traversal.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// Shortens the segment to the part inside [low, high] along one axis; false where none is left. `enter` and `leave`
// are shares of the whole segment.
bool clip(double from, double to, double low, double high, double& enter, double& leave) {
  const double extent = to - from;
  if (extent == 0) return from >= low && from <= high;
  const double at_low = (low - from) / extent;
  const double at_high = (high - from) / extent;
  enter = std::max(enter, std::min(at_low, at_high));
  leave = std::min(leave, std::max(at_low, at_high));
  return enter <= leave;
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
      double enter = 0, leave = 1;
      if (clip(from.x, to.x, -0.5, high.x, enter, leave) && clip(from.y, to.y, -0.5, high.y, enter, leave) &&
          clip(from.z, to.z, -0.5, high.z, enter, leave)) {
        const Vec3d extent = to - from;
        traverse_voxels(enter > 0 ? from + extent * enter : from, leave < 1 ? from + extent * leave : to, visit);
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
