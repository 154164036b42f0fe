#include "streamlines/voxel_traversal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace cingulum {
namespace {

using numerics::Vec3d;
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::vector<VoxelIndex> walk(Vec3d from, Vec3d to) {
  std::vector<VoxelIndex> voxels;
  traverse_voxels(from, to, [&](const VoxelIndex& voxel) {
    voxels.push_back(voxel);
    return true;
  });
  return voxels;
}

// A number as an exact fraction; coordinates of the test are multiples of 1/8, so everything is a small integer.
struct Fraction {
  std::int64_t over = 0;
  std::int64_t under = 1;  // positive
};
bool less(Fraction a, Fraction b) {
  return a.over * b.under < b.over * a.under;
}
bool equal(Fraction a, Fraction b) {
  return a.over * b.under == b.over * a.under;
}

// Whether the segment from a to b (in eighths) has a point in the half-open box of voxel v: the parameters t in [0, 1]
// with v - 0.5 <= x(t) < v + 0.5 on all axes are not empty. Exact.
bool brute_force(const std::array<std::int64_t, 3>& a, const std::array<std::int64_t, 3>& b, const Key& key) {
  const std::array<std::int64_t, 3> v = {std::get<0>(key), std::get<1>(key), std::get<2>(key)};
  Fraction low{0, 1};
  Fraction high{1, 1};
  bool low_open = false;
  bool high_open = false;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t lower = 8 * v[axis] - 4;
    const std::int64_t upper = 8 * v[axis] + 4;
    const std::int64_t extent = b[axis] - a[axis];
    if (extent == 0) {
      if (a[axis] < lower || a[axis] >= upper) return false;
      continue;
    }
    Fraction enter = extent > 0 ? Fraction{lower - a[axis], extent} : Fraction{a[axis] - upper, -extent};
    Fraction leave = extent > 0 ? Fraction{upper - a[axis], extent} : Fraction{a[axis] - lower, -extent};
    const bool enter_open = extent < 0;  // the upper face does not belong to the voxel
    const bool leave_open = extent > 0;
    if (less(low, enter) || (equal(low, enter) && enter_open)) {
      low_open = less(low, enter) ? enter_open : (low_open || enter_open);
      low = enter;
    }
    if (less(leave, high) || (equal(leave, high) && leave_open)) {
      high_open = less(leave, high) ? leave_open : (high_open || leave_open);
      high = leave;
    }
  }
  if (less(low, high)) return true;
  return equal(low, high) && !low_open && !high_open;
}

TEST(voxel_traversal, visits_exactly_the_voxels_that_hold_a_point_of_the_segment) {
  std::mt19937 random(20260105);
  std::uniform_int_distribution<std::int64_t> coordinate(-24, 24);
  std::size_t ties = 0;
  for (int round = 0; round < 20000; ++round) {
    std::array<std::int64_t, 3> a{}, b{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      a[axis] = coordinate(random);
      b[axis] = coordinate(random);
      if (round % 3 == 0) {  // through edges and corners
        a[axis] = a[axis] / 4 * 4;
        b[axis] = b[axis] / 4 * 4;
      }
    }
    const auto point = [](const std::array<std::int64_t, 3>& e) {
      return Vec3d{static_cast<double>(e[0]) / 8, static_cast<double>(e[1]) / 8, static_cast<double>(e[2]) / 8};
    };
    const std::vector<VoxelIndex> visited = walk(point(a), point(b));
    std::set<Key> found;
    for (const VoxelIndex& voxel : visited) found.insert({voxel.i, voxel.j, voxel.k});
    ASSERT_EQ(found.size(), visited.size()) << "a voxel was visited twice";
    ASSERT_EQ(visited.front(), voxel_of(point(a)));
    ASSERT_EQ(visited.back(), voxel_of(point(b)));
    for (std::int64_t i = -4; i <= 4; ++i) {
      for (std::int64_t j = -4; j <= 4; ++j) {
        for (std::int64_t k = -4; k <= 4; ++k) {
          const Key key{i, j, k};
          ASSERT_EQ(found.contains(key), brute_force(a, b, key))
              << "voxel " << i << " " << j << " " << k << ", segment in eighths " << a[0] << " " << a[1] << " " << a[2]
              << " to " << b[0] << " " << b[1] << " " << b[2];
        }
      }
    }
    for (std::size_t n = 1; n < visited.size(); ++n) {
      const auto moved = std::abs(visited[n].i - visited[n - 1].i) + std::abs(visited[n].j - visited[n - 1].j) +
                         std::abs(visited[n].k - visited[n - 1].k);
      ties += moved > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(ties, 1000u);  // the case that needs care did occur
}

TEST(voxel_traversal, stops_when_told) {
  int visits = 0;
  traverse_voxels({0, 0, 0}, {10, 0, 0}, [&](const VoxelIndex&) { return ++visits < 3; });
  EXPECT_EQ(visits, 3);
}

TEST(voxel_traversal, a_point_belongs_to_the_voxel_above_a_face) {
  EXPECT_EQ(voxel_of({0.5, -0.5, 0.49999997}), (VoxelIndex{1, 0, 0}));
  EXPECT_EQ(walk({0.5, 0, 0}, {0.5, 0, 0}).size(), 1u);
}

std::vector<VoxelIndex> walk_grid(std::array<std::int64_t, 3> size, Vec3d from, Vec3d to) {
  std::vector<VoxelIndex> voxels;
  traverse_grid(size, from, to, [&](const VoxelIndex& voxel) { voxels.push_back(voxel); });
  return voxels;
}

TEST(GridTraversal, it_names_the_voxels_of_the_grid_that_dense_points_meet) {
  const std::array<std::int64_t, 3> size = {9, 7, 8};
  std::mt19937 random(17);
  std::uniform_real_distribution<double> place(-3, 11);
  for (int trial = 0; trial < 500; ++trial) {
    const Vec3d a{place(random), place(random), place(random)}, b{place(random), place(random), place(random)};
    const std::vector<VoxelIndex> voxels = walk_grid(size, a, b);
    std::set<Key> exact;
    for (const VoxelIndex& voxel : voxels) exact.emplace(voxel.i, voxel.j, voxel.k);
    EXPECT_EQ(exact.size(), voxels.size()) << "a straight segment enters a voxel once";
    std::set<Key> dense;
    constexpr int count = 20000;
    for (int i = 0; i < count; ++i) {
      if (const auto voxel = voxel_in_grid(size, a + (b - a) * ((i + 0.5) / count))) {
        dense.emplace(voxel->i, voxel->j, voxel->k);
      }
    }
    for (const Key& voxel : dense) EXPECT_TRUE(exact.count(voxel)) << "trial " << trial;
    // What dense points miss is passed through for less than their spacing.
    EXPECT_LE(exact.size(), dense.size() + 1) << "trial " << trial;
  }
}

TEST(GridTraversal, corners_segments_of_no_length_and_far_ends) {
  const std::array<std::int64_t, 3> size = {4, 4, 4};
  EXPECT_EQ(walk_grid(size, {0, 0, 0}, {3, 3, 3}),
            (std::vector<VoxelIndex>{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}}));  // exactly through corners
  EXPECT_EQ(walk_grid(size, {1, 2, 3}, {1, 2, 3}), (std::vector<VoxelIndex>{{1, 2, 3}}));
  EXPECT_EQ(walk_grid(size, {-1e30, 0, 0}, {1e30, 0, 0}).size(), 4u);
  EXPECT_TRUE(walk_grid(size, {10, 10, 10}, {1e30, 10, 10}).empty());
  EXPECT_FALSE(voxel_in_grid(size, {1e30, 0, 0}));
  EXPECT_FALSE(voxel_in_grid(size, {-0.6, 0, 0}));
  EXPECT_EQ(voxel_in_grid(size, {3.4, -0.5, 0}), (VoxelIndex{3, 0, 0}));
}

}  // namespace
}  // namespace cingulum
