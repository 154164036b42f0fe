#include "streamlines/density_map.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <tuple>

#include "numerics/elementary64.hpp"
#include "streamlines/voxel_traversal.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

bool is_finite(Vec3d position) {
  return numerics::is_finite(position.x) && numerics::is_finite(position.y) && numerics::is_finite(position.z);
}

}  // namespace

DensityMap::DensityMap(const ImageGeometry& geometry, const Affine& world_to_voxel)
    : geometry_(geometry), world_to_voxel_(world_to_voxel), counts_(static_cast<std::size_t>(geometry.voxel_count())) {}

Result<DensityMap> DensityMap::create(const ImageGeometry& geometry) {
  double voxels = 1;
  for (const std::int64_t size : geometry.size) voxels *= static_cast<double>(size);
  if (!(voxels >= 1) || voxels > static_cast<double>(max_voxels)) {
    return fail(ErrorKind::invalid_argument,
                "density map: a grid of {} x {} x {} voxels; accepted are 1 to {} voxels, so give a coarser {}",
                geometry.size[0], geometry.size[1], geometry.size[2], max_voxels, argument_name("anatomy"));
  }
  CGL_TRY_ASSIGN(const Affine world_to_voxel, add_context(geometry.voxel_to_world.inverse(), "density map"));
  return catch_out_of_memory([&]() -> Result<DensityMap> { return DensityMap(geometry, world_to_voxel); });
}

bool collect_passed_voxels(const ImageGeometry& grid, const Affine& world_to_voxel, std::span<const float> positions,
                           std::vector<std::int64_t>& voxels) {
  voxels.clear();
  const std::size_t points = positions.size() / 3;
  const auto voxel_position = [&](std::size_t point) {
    return world_to_voxel.apply({positions[3 * point], positions[3 * point + 1], positions[3 * point + 2]});
  };
  const auto visit = [&](const VoxelIndex& voxel) {
    const std::int64_t index = voxel_index(grid, voxel.i, voxel.j, voxel.k);
    if (voxels.empty() || voxels.back() != index) voxels.push_back(index);
  };
  if (points == 0) return true;
  bool inside = true;
  Vec3d from = voxel_position(0);
  // A streamline of one point is a segment without length.
  for (std::size_t point = points == 1 ? 0 : 1; point < points; ++point) {
    const Vec3d to = voxel_position(point);
    // A grid is convex: a segment lies in it where its ends do.
    inside = inside && voxel_in_grid(grid.size, from).has_value() && voxel_in_grid(grid.size, to).has_value();
    if (is_finite(from) && is_finite(to)) traverse_grid(grid.size, from, to, visit);
    from = to;
  }
  std::sort(voxels.begin(), voxels.end());
  voxels.erase(std::unique(voxels.begin(), voxels.end()), voxels.end());
  return inside;
}

void DensityMap::add(const TractogramBatch& batch, std::span<const std::uint8_t> skipped, ThreadPool& pool) {
  pool.parallel_for(batch.streamline_count(), 64, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> voxels;
    for (std::size_t line = begin; line < end; ++line) {
      if (skipped[line] != 0) continue;
      std::ignore = collect_passed_voxels(geometry_, world_to_voxel_, batch.streamline(line), voxels);
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
