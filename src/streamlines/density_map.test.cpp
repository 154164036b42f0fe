#include "streamlines/density_map.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "numerics/philox.hpp"
#include "support/density_of.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

TEST(DensityMap, a_straight_line_visits_each_voxel_of_its_row_once) {
  const DensityMap map = density_of(grid_of(5, 3, 3), batch_of({{{-3, 1, 1}, {1.2, 1, 1}, {8, 1, 1}}}));
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(map.counts()[static_cast<std::size_t>(voxel_index(map.geometry(), i, 1, 1))], 1U);
  }
  EXPECT_EQ(map.visited_voxels(), 5U);
  EXPECT_EQ(map.largest(), 1U);
}

TEST(DensityMap, a_streamline_that_comes_back_counts_once) {
  const DensityMap map = density_of(grid_of(4, 1, 1), batch_of({{{0, 0, 0}, {3, 0, 0}, {0, 0, 0}}, {{2, 0, 0}}}));
  EXPECT_EQ(map.counts(), (std::vector<std::uint32_t>{1, 1, 2, 1}));
}

// By the slab test on every voxel: does the segment have a piece of some length inside the closed box?
bool segment_crosses(Vec3d a, Vec3d b, Vec3d centre) {
  double enter = 0, leave = 1;
  const std::array<double, 3> from = {a.x, a.y, a.z}, to = {b.x, b.y, b.z}, middle = {centre.x, centre.y, centre.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double extent = to[axis] - from[axis];
    const double t0 = (middle[axis] - 0.5 - from[axis]) / extent;
    const double t1 = (middle[axis] + 0.5 - from[axis]) / extent;
    enter = std::max(enter, std::min(t0, t1));
    leave = std::min(leave, std::max(t0, t1));
  }
  return enter < leave;
}

TEST(DensityMap, random_streamlines_equal_brute_force_on_an_oblique_grid) {
  ImageGeometry grid = grid_of(9, 7, 8);
  grid.voxel_to_world.rows = {-1.8, 0.3, 0.1, 6, 0.2, 1.5, -0.4, -5, 0.05, 0.5, 2.9, -9};
  const Affine to_voxel = *grid.voxel_to_world.inverse();
  std::vector<std::vector<Vec3d>> lines;
  for (std::uint32_t line = 0; line < 60; ++line) {
    std::vector<Vec3d> points;
    for (std::uint32_t point = 0; point < 6; ++point) {
      const auto random = numerics::philox4x32_10({{line, point, 7, 0}}, {3, 4});
      const auto unit = [](std::uint32_t word) { return static_cast<double>(word >> 8U) * 0x1p-24; };
      // From two voxels outside to two voxels outside.
      points.push_back(grid.voxel_to_world.apply(
          {unit(random.word[0]) * 12 - 2, unit(random.word[1]) * 10 - 2, unit(random.word[2]) * 11 - 2}));
    }
    lines.push_back(points);
  }
  const TractogramBatch batch = batch_of(lines);
  const DensityMap map = density_of(grid, batch);
  std::size_t visits = 0;
  for (std::int64_t k = 0; k < 8; ++k) {
    for (std::int64_t j = 0; j < 7; ++j) {
      for (std::int64_t i = 0; i < 9; ++i) {
        std::uint32_t expected = 0;
        for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
          const auto positions = batch.streamline(line);
          bool visited = false;
          for (std::size_t p = 3; p < positions.size(); p += 3) {
            const Vec3d a = to_voxel.apply({positions[p - 3], positions[p - 2], positions[p - 1]});
            const Vec3d b = to_voxel.apply({positions[p], positions[p + 1], positions[p + 2]});
            visited = visited ||
                      segment_crosses(a, b, {static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)});
          }
          expected += visited ? 1 : 0;
        }
        visits += expected;
        EXPECT_EQ(map.counts()[static_cast<std::size_t>(voxel_index(grid, i, j, k))], expected) << i << j << k;
      }
    }
  }
  EXPECT_GT(visits, 1000U);
  EXPECT_EQ(map.counts(), density_of(grid, batch, 8).counts());
}

TEST(DensityMap, segments_far_outside_take_no_time) {
  const DensityMap map =
      density_of(grid_of(3, 3, 3), batch_of({{{-3e38, 1, 1}, {3e38, 1, 1}}, {{1e30, 1e30, 0}, {2e30, 1e30, 0}}}));
  EXPECT_EQ(map.visited_voxels(), 3U);
}

TEST(DensityMap, streamlines_to_be_skipped_are_left_out) {
  auto map = DensityMap::create(grid_of(2, 1, 1));
  const std::vector<std::uint8_t> skipped = {1, 0};
  map->add(batch_of({{{0, 0, 0}}, {{1, 0, 0}}}), skipped, **ThreadPool::create(1));
  EXPECT_EQ(map->counts(), (std::vector<std::uint32_t>{0, 1}));
}

TEST(DensityMap, grids_that_cannot_be_are_refused) {
  EXPECT_FALSE(DensityMap::create(grid_of(0, 3, 3)).has_value());
  EXPECT_FALSE(DensityMap::create(grid_of(std::int64_t{1} << 40U, std::int64_t{1} << 40U, 3)).has_value());
  ImageGeometry flat = grid_of(2, 2, 2);
  flat.voxel_to_world.at(0, 0) = 0;
  EXPECT_FALSE(DensityMap::create(flat).has_value());
}

TEST(DensityMap, a_grid_around_a_box_holds_it) {
  for (const WorldBox& box : {WorldBox{{-70, -90, -50}, {70, 90, 80}}, WorldBox{{1, 1, 1}, {1, 1, 1}},
                              WorldBox{{-3e38, 0, 0}, {3e38, 1, 1}}}) {
    const ImageGeometry grid = grid_around(box);
    const Affine to_voxel = *grid.voxel_to_world.inverse();
    const auto inside = [&](Vec3d voxel) {
      return voxel.x >= -0.501 && voxel.x <= static_cast<double>(grid.size[0]) - 0.499 && voxel.y >= -0.501 &&
             voxel.y <= static_cast<double>(grid.size[1]) - 0.499 && voxel.z >= -0.501 &&
             voxel.z <= static_cast<double>(grid.size[2]) - 0.499;
    };
    EXPECT_TRUE(inside(to_voxel.apply(box.low)));
    EXPECT_TRUE(inside(to_voxel.apply(box.high)));
    EXPECT_LE(grid.voxel_count(), 1'000'000);
  }
  EXPECT_EQ(grid_around({{-70, -90, -50}, {70, 90, 80}}).smallest_edge_mm(), 2);
}

}  // namespace
}  // namespace cingulum
