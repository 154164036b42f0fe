#include "tract/seeds/seed_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

namespace cingulum {
namespace {

std::vector<numerics::Vec3> positions_below(float end, std::size_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> coordinate(-2.0f, end);
  std::vector<numerics::Vec3> positions(count);
  for (numerics::Vec3& p : positions) p = {coordinate(generator), coordinate(generator), coordinate(generator)};
  return positions;
}

// The place along Morton's curve by its definition: the highest bit in which two voxels differ decides, z before y
// before x where it is the same bit.
bool is_before(numerics::Vec3 a, numerics::Vec3 b) {
  const auto voxel = [](float c) { return c + 0.5f < 1.0f ? 0u : static_cast<std::uint32_t>(c + 0.5f); };
  for (std::uint32_t bit = 1u << 20; bit != 0; bit >>= 1) {
    for (const auto axis : {&numerics::Vec3::z, &numerics::Vec3::y, &numerics::Vec3::x}) {
      const std::uint32_t of_a = voxel(a.*axis) & bit, of_b = voxel(b.*axis) & bit;
      if (of_a != of_b) return of_a < of_b;
    }
  }
  return false;
}

TEST(SeedOrder, follows_the_curve_and_keeps_seeds_of_one_voxel_in_their_order) {
  for (const float end : {0.4f, 3.0f, 90.0f, 3000.0f, 2e6f}) {
    const std::vector<numerics::Vec3> positions = positions_below(end, 5000);
    std::vector<std::uint32_t> expected(positions.size());
    std::iota(expected.begin(), expected.end(), 0u);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return is_before(positions[a], positions[b]); });
    EXPECT_EQ(order_in_space(positions), expected) << end;
  }
}

TEST(SeedOrder, takes_none_and_what_is_not_finite) {
  EXPECT_TRUE(order_in_space({}).empty());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::uint32_t> order = order_in_space({{nan, 1, 1}, {infinity, infinity, -infinity}, {1, 1, 1}});
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(SeedOrder, is_the_given_one_for_comparisons) {
  const std::vector<numerics::Vec3> positions = positions_below(50, 100);
  ::setenv("CINGULUM_TEST_SEED_ORDER", "given", 1);
  const std::vector<std::uint32_t> order = order_in_space(positions);
  ::unsetenv("CINGULUM_TEST_SEED_ORDER");
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_FALSE(std::ranges::is_sorted(order_in_space(positions)));
}

}  // namespace
}  // namespace cingulum
