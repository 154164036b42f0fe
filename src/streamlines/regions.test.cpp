#include "streamlines/regions.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

using numerics::Vec3d;

ImageGeometry grid(std::int64_t x, std::int64_t y, std::int64_t z, double edge = 2) {
  ImageGeometry g;
  g.size = {x, y, z};
  g.voxel_to_world.rows = {edge, 0, 0, 0, 0, edge, 0, 0, 0, 0, edge, 0};
  return g;
}

Region box(const ImageGeometry& g, VoxelIndex low, VoxelIndex high, const ImageGeometry& tracking) {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(g.voxel_count()), 0);
  for (auto k = low.k; k <= high.k; ++k) {
    for (auto j = low.j; j <= high.j; ++j) {
      for (auto i = low.i; i <= high.i; ++i) mask[static_cast<std::size_t>(voxel_index(g, i, j, k))] = 1;
    }
  }
  return Region::of_mask("box", g, std::move(mask), tracking).value();
}

// Along x at y = z = 0, points at 0, 1, 2, ...
std::vector<float> line_along_x(int count) {
  std::vector<float> points;
  for (int i = 0; i < count; ++i) points.insert(points.end(), {static_cast<float>(i), 0, 0});
  return points;
}

TEST(regions, a_mask_is_met_between_points_not_only_at_points) {
  const auto g = grid(20, 20, 20);
  const Region region = box(g, {4, 0, 0}, {4, 0, 0}, g);
  EXPECT_TRUE(region.meets({3, 0, 0}, {6, 0, 0}));
  EXPECT_FALSE(region.contains({3, 0, 0}));
  EXPECT_FALSE(region.contains({6, 0, 0}));
  EXPECT_FALSE(region.meets({3, 1, 0}, {6, 1, 0}));
  EXPECT_TRUE(region.contains({3.5, -0.5, 0.25}));
  EXPECT_FALSE(region.contains({4.5, 0, 0}));
  EXPECT_FALSE(region.meets({-30, -30, -30}, {-20, -20, -20}));
}

// Memory goes on behind the last voxel of a row with the first of the next: what lies one voxel beyond a face must not
// be taken for it. Every voxel of the grid is the region in turn, and every voxel in and around it is asked for.
TEST(regions, nothing_beyond_a_face_of_the_grid_belongs_to_a_mask) {
  const auto g = grid(3, 4, 2);
  ImageGeometry shifted = g;  // another grid: the same voxels, one further along each axis
  for (int axis = 0; axis < 3; ++axis) shifted.voxel_to_world.at(axis, 3) = 2;
  for (std::int64_t k = 0; k < 2; ++k) {
    for (std::int64_t j = 0; j < 4; ++j) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const Region own = box(g, {i, j, k}, {i, j, k}, g);
        const Region other = box(g, {i, j, k}, {i, j, k}, shifted);
        for (std::int64_t z = -2; z <= 3; ++z) {
          for (std::int64_t y = -2; y <= 5; ++y) {
            for (std::int64_t x = -2; x <= 4; ++x) {
              const bool is_it = x == i && y == j && z == k;
              const Vec3d p{static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)};
              const Vec3d before = p - Vec3d{1, 1, 1};  // where the same place is in the shifted grid
              ASSERT_EQ(own.contains(p), is_it) << x << " " << y << " " << z;
              ASSERT_EQ(own.meets(p, p + Vec3d{0.25, 0.25, 0.25}), is_it) << x << " " << y << " " << z;
              ASSERT_EQ(other.contains(before), is_it) << x << " " << y << " " << z;
              bool inside = false;
              ASSERT_EQ(own.enters(p, p, inside), is_it) << x << " " << y << " " << z;
              ASSERT_EQ(inside, is_it);
            }
          }
        }
      }
    }
  }
}

TEST(regions, a_mask_on_another_grid_is_met_in_world_space) {
  const auto tracking = grid(20, 20, 20, 2);
  auto fine = grid(80, 80, 80, 0.5);
  fine.voxel_to_world.at(0, 3) = 1;                                   // fine voxel i lies at 0.5 i + 1 mm
  const Region region = box(fine, {14, 0, 0}, {14, 0, 0}, tracking);  // world x in [7.75, 8.25), y and z in [-.25, .25)
  EXPECT_TRUE(region.contains({4, 0, 0}));
  EXPECT_FALSE(region.contains({4.125, 0, 0}));
  EXPECT_TRUE(region.meets({3, 0, 0}, {5, 0, 0}));
  EXPECT_FALSE(region.meets({3, 0.2, 0}, {5, 0.2, 0}));
}

TEST(regions, a_sphere_is_met_within_its_radius_in_mm) {
  const auto g = grid(20, 20, 20, 2);
  const Region sphere = read_region("10, 2, 0, 1.5", g).value();
  EXPECT_TRUE(sphere.meets({0, 1, 0}, {9, 1, 0}));
  EXPECT_TRUE(sphere.meets({0, 0.25, 0}, {9, 0.25, 0}));  // touches at 1.5 mm
  EXPECT_FALSE(sphere.meets({0, 0.24, 0}, {9, 0.24, 0}));
  EXPECT_FALSE(sphere.meets({0, 1, 0}, {4, 1, 0}));
  EXPECT_FALSE(read_region("10,2,0,0", g));
  EXPECT_FALSE(read_region("10,2,0,-1", g));
  EXPECT_FALSE(read_region("10,2,0", g));
  EXPECT_TRUE(is_sphere_text("1,2,3,4"));
  EXPECT_FALSE(is_sphere_text("a,b.nii"));
}

TEST(regions, include_exclude_and_order_are_judged_on_the_whole_streamline) {
  const auto g = grid(20, 20, 20);
  const Region a = box(g, {2, 0, 0}, {2, 0, 0}, g);
  const Region b = box(g, {8, 0, 0}, {8, 0, 0}, g);
  const Region elsewhere = box(g, {8, 9, 0}, {8, 9, 0}, g);
  const auto points = line_along_x(12);
  EXPECT_TRUE(passes_rules({.include = {b, a}}, points));
  EXPECT_FALSE(passes_rules({.include = {a, elsewhere}}, points));
  EXPECT_FALSE(passes_rules({.exclude = {b}}, points));
  EXPECT_TRUE(passes_rules({.exclude = {elsewhere}}, points));
  EXPECT_TRUE(passes_rules({.include_ordered = {a, b}}, points));
  EXPECT_TRUE(passes_rules({.include_ordered = {b, a}}, points));  // from the other end
  const Region middle = box(g, {5, 0, 0}, {5, 0, 0}, g);
  EXPECT_TRUE(passes_rules({.include_ordered = {a, middle, b}}, points));
  EXPECT_TRUE(passes_rules({.include_ordered = {b, middle, a}}, points));
  EXPECT_FALSE(passes_rules({.include_ordered = {middle, a, b}}, points));
  EXPECT_FALSE(passes_rules({.include_ordered = {a, b, middle}}, points));
  // Those that are met in the first and in the last segment alone.
  const Region at_start = box(g, {0, 0, 0}, {0, 0, 0}, g), at_end = box(g, {11, 0, 0}, {11, 0, 0}, g);
  EXPECT_TRUE(passes_rules({.include = {at_end, at_start}}, points));
  EXPECT_TRUE(passes_rules({.include_ordered = {at_start, middle, at_end}}, points));
  EXPECT_TRUE(passes_rules({.include_ordered = {at_end, middle, at_start}}, points));
  EXPECT_FALSE(passes_rules({.include_ordered = {at_start, at_end, middle}}, points));
  EXPECT_FALSE(passes_rules({.exclude = {at_end}}, points));
  const std::vector<float> one_point = {2, 0, 0};
  EXPECT_TRUE(passes_rules({.include = {a}}, one_point));
  EXPECT_FALSE(passes_rules({.include = {b}}, one_point));
}

TEST(regions, the_earliest_of_several_stop_regions_acts) {
  const auto g = grid(20, 20, 20);
  const auto points = line_along_x(15);
  const Region near = box(g, {7, 0, 0}, {7, 0, 0}, g);
  const Region far = box(g, {9, 0, 0}, {9, 0, 0}, g);
  EXPECT_EQ(stop_point({far, near}, points, 5, +1), 7u);
  EXPECT_EQ(stop_point({near, far}, points, 5, +1), 7u);
  EXPECT_EQ(stop_point({near, far}, points, 12, -1), 9u);
}

TEST(regions, a_seed_inside_a_stop_region_may_leave_it_and_stops_when_it_comes_back) {
  const auto g = grid(20, 20, 20);
  std::vector<float> there_and_back = line_along_x(10);
  for (int i = 8; i >= 0; --i) there_and_back.insert(there_and_back.end(), {static_cast<float>(i), 0, 0});
  const Region around_seed = box(g, {0, 0, 0}, {3, 0, 0}, g);
  EXPECT_EQ(stop_point({around_seed}, there_and_back, 1, +1), 15u);  // 9 + 6: x = 3 on the way back
  const Region sphere = read_region("2,0,0,3", g).value();           // world: x up to 5 mm, voxel 2.5
  EXPECT_EQ(stop_point({sphere}, there_and_back, 1, +1), 16u);
}

}  // namespace
}  // namespace cingulum
