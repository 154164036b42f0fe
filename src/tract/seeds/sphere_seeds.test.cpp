#include "tract/seeds/sphere_seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/independent_philox.hpp"

namespace cingulum::sphere_seeds_tests {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

// Oblique, with voxels of 2 x 1.5 x 3 mm.
ImageGeometry geometry() {
  ImageGeometry g;
  g.size = {40, 50, 30};
  const double c = 0.8, s = 0.6;
  g.voxel_to_world.rows = {2 * c, -1.5 * s, 0, 10, 2 * s, 1.5 * c, 0, -20, 0, 0, 3, 5};
  return g;
}

constexpr WorldSphere sphere = {{12, 4, 40}, 7.5};

std::vector<Vec3> all_of(const Seeds& seeds, std::uint64_t first, std::size_t count) {
  std::vector<Vec3> positions(count);
  seeds.fill(first, positions);
  return positions;
}

Vec3d offset_in_world(Vec3 voxel) {
  const Vec3d world = geometry().voxel_to_world.apply({voxel.x, voxel.y, voxel.z});
  return {world.x - sphere.centre_world.x, world.y - sphere.centre_world.y, world.z - sphere.centre_world.z};
}

TEST(sphere_seeds, they_fill_the_ball_evenly_in_millimetres) {
  constexpr std::size_t count = 80000;
  const auto seeds = sphere_seeds(geometry(), sphere, count, numerics::philox_key(3)).value();
  EXPECT_EQ(seeds->count(), count);
  // Ten shells of equal volume, and eight octants of each.
  std::array<double, 80> cells{};
  double farthest = 0;
  for (const Vec3 p : all_of(*seeds, 0, count)) {
    const Vec3d d = offset_in_world(p);
    const double r = std::sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
    farthest = std::max(farthest, r);
    // A voxel coordinate of up to 50 is rounded to 2^-19, of a voxel of 3 mm.
    ASSERT_LE(r, sphere.radius_mm + 1e-5);
    const double volume = std::min(0.999999, std::pow(r / sphere.radius_mm, 3));
    const std::size_t octant = (d.x < 0 ? 1u : 0u) + (d.y < 0 ? 2u : 0u) + (d.z < 0 ? 4u : 0u);
    cells[8 * static_cast<std::size_t>(10 * volume) + octant] += 1;
  }
  double chi_square = 0;
  for (const double n : cells) chi_square += (n - 1000) * (n - 1000) / 1000;
  EXPECT_LT(chi_square, 124.8);  // 79 degrees of freedom, p = 0.0008
  EXPECT_GT(farthest, 0.999 * sphere.radius_mm);
}

TEST(sphere_seeds, a_seed_is_a_function_of_its_index_alone) {
  const auto few = sphere_seeds(geometry(), sphere, 10, numerics::philox_key(5)).value();
  const auto endless = sphere_seeds(geometry(), sphere, 0, numerics::philox_key(5)).value();
  EXPECT_EQ(endless->count(), std::uint64_t{1} << 32U);
  const auto first = all_of(*few, 0, 10);
  const auto again = all_of(*endless, 0, 1000);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(first[i], again[i]);
  // Any range, one by one and from behind.
  for (std::size_t i = 999; i > 990; --i) EXPECT_EQ(all_of(*endless, i, 1)[0], again[i]);
  const auto part = all_of(*endless, 700, 100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(part[i], again[700 + i]);
  const auto other = all_of(*sphere_seeds(geometry(), sphere, 10, numerics::philox_key(6)).value(), 0, 10);
  EXPECT_FALSE(other[0] == first[0]);
}

TEST(sphere_seeds, positions_follow_the_contract) {
  // The first attempt inside the ball, by another implementation of the generator.
  const auto seeds = sphere_seeds(geometry(), sphere, 200, numerics::philox_key(0x100000002u)).value();
  const Affine to_voxel = geometry().voxel_to_world.inverse().value();
  int later_attempts = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    double v[3] = {};
    for (std::uint32_t attempt = 0;; ++attempt) {
      const auto words = test::independent_philox({i, 0, 0, attempt << 16U}, 0x100000002u);
      for (std::size_t axis = 0; axis < 3; ++axis) v[axis] = 2 * ((words[axis] >> 8U) / 16777216.0) - 1;
      if (v[0] * v[0] + v[1] * v[1] + v[2] * v[2] <= 1) break;
      ++later_attempts;
    }
    const Vec3d voxel = to_voxel.apply({12 + 7.5 * v[0], 4 + 7.5 * v[1], 40 + 7.5 * v[2]});
    const Vec3 p = all_of(*seeds, i, 1)[0];
    EXPECT_EQ(p, (Vec3{static_cast<float>(voxel.x), static_cast<float>(voxel.y), static_cast<float>(voxel.z)}));
  }
  EXPECT_GT(later_attempts, 100);  // 0.91 a seed
}

TEST(sphere_seeds, one_that_is_partly_outside_is_taken_and_one_that_is_apart_refused) {
  ImageGeometry g;
  g.size = {10, 10, 10};
  const auto partly = sphere_seeds(g, {{-3, 4, 4}, 4}, 1000, {}).value();
  const auto places = all_of(*partly, 0, 1000);
  const auto outside = std::count_if(places.begin(), places.end(), [](Vec3 p) { return p.x < -0.5f; });
  EXPECT_GT(outside, 700);  // a cap of 0.5 mm about the image's face is left of it: 84 % are outside
  EXPECT_LT(outside, 950);
  for (const WorldSphere apart :
       {WorldSphere{{-5, 4, 4}, 4}, WorldSphere{{4, 14, 4}, 4}, WorldSphere{{4, 4, 100}, 4}}) {
    const auto refused = sphere_seeds(g, apart, 10, {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("outside of the image"), std::string::npos);
  }
}

TEST(sphere_seeds, what_is_no_sphere_is_refused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  for (const WorldSphere wrong :
       {WorldSphere{{0, 0, 0}, 0}, WorldSphere{{0, 0, 0}, -1}, WorldSphere{{0, 0, 0}, nan}, WorldSphere{{0, nan, 0}, 1},
        WorldSphere{{0, 0, infinite}, 1}, WorldSphere{{0, 0, 0}, infinite}, WorldSphere{{2e6, 0, 0}, 1}}) {
    EXPECT_FALSE(sphere_seeds(geometry(), wrong, 10, {}));
  }
  EXPECT_FALSE(sphere_seeds(geometry(), sphere, (std::uint64_t{1} << 32U) + 1, {}));
  for (const char* const text : {"1,2,3", "1,2,3,4,5", "a,2,3,4", "", "1 2 3 4", "1,2,,4"}) {
    EXPECT_FALSE(parse_sphere(text)) << text;
  }
  const auto read = parse_sphere(" -1.5, 2,3e1 ,4");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->centre_world, (Vec3d{-1.5, 2, 30}));
  EXPECT_EQ(read->radius_mm, 4);
}

}  // namespace
}  // namespace cingulum::sphere_seeds_tests
