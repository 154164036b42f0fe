#include "dmri/series/median_otsu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace cingulum {
namespace {

constexpr std::array<std::int64_t, 3> size = {11, 8, 6};

std::size_t at(std::int64_t x, std::int64_t y, std::int64_t z) {
  return static_cast<std::size_t>(x + size[0] * (y + size[1] * z));
}

std::vector<double> random_volume(std::uint32_t seed, int distinct_values) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> uniform(0, distinct_values - 1);
  std::vector<double> volume(static_cast<std::size_t>(size[0] * size[1] * size[2]));
  for (double& value : volume) value = uniform(random) * 0.37 - 5;
  return volume;
}

std::int64_t mirrored(std::int64_t position, std::int64_t count) {
  while (position < 0 || position >= count) position = position < 0 ? -1 - position : 2 * count - 1 - position;
  return position;
}

TEST(median_otsu, medians_are_those_of_the_sorted_window) {
  const auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.has_value());
  for (const int distinct_values : {3, 100000}) {
    const std::vector<double> volume = random_volume(3, distinct_values);
    for (const int radius : {1, 2, 7}) {
      const auto filtered = median_filtered(volume, size, radius, 1, **pool);
      ASSERT_TRUE(filtered.has_value());
      for (std::int64_t z = 0; z < size[2]; ++z) {
        for (std::int64_t y = 0; y < size[1]; ++y) {
          for (std::int64_t x = 0; x < size[0]; ++x) {
            std::vector<double> window;
            for (int k = -radius; k <= radius; ++k) {
              for (int j = -radius; j <= radius; ++j) {
                for (int i = -radius; i <= radius; ++i) {
                  window.push_back(
                      volume[at(mirrored(x + i, size[0]), mirrored(y + j, size[1]), mirrored(z + k, size[2]))]);
                }
              }
            }
            const auto middle = window.begin() + static_cast<std::ptrdiff_t>(window.size() / 2);
            std::nth_element(window.begin(), middle, window.end());
            ASSERT_EQ((*filtered)[at(x, y, z)], *middle);
          }
        }
      }
    }
  }
}

TEST(median_otsu, the_mask_does_not_depend_on_threads) {
  const auto one = ThreadPool::create(1);
  const auto three = ThreadPool::create(3);
  ASSERT_TRUE(one && three);
  const std::vector<double> volume = random_volume(5, 1000);
  const auto a = median_otsu(volume, size, {}, **one);
  const auto b = median_otsu(volume, size, {}, **three);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->mask, b->mask);
  EXPECT_EQ(a->threshold, b->threshold);
  EXPECT_EQ(a->voxels, static_cast<std::size_t>(std::count(a->mask.begin(), a->mask.end(), 1)));
}

TEST(median_otsu, finalising_keeps_the_largest_island_and_fills_holes) {
  std::vector<double> volume(static_cast<std::size_t>(size[0] * size[1] * size[2]), 0.0);
  for (std::int64_t z = 1; z < 5; ++z) {
    for (std::int64_t y = 1; y < 7; ++y) {
      for (std::int64_t x = 1; x < 7; ++x) volume[at(x, y, z)] = 10;
    }
  }
  volume[at(3, 3, 3)] = 0;   // a hole
  volume[at(9, 4, 3)] = 10;  // an island
  const auto pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.has_value());
  const auto mask = median_otsu(volume, size, {.median_radius = 0, .finalise = true}, **pool);
  ASSERT_TRUE(mask.has_value());
  EXPECT_EQ(mask->voxels, 4U * 6U * 6U);
  EXPECT_EQ(mask->mask[at(3, 3, 3)], 1);
  EXPECT_EQ(mask->mask[at(9, 4, 3)], 0);
}

TEST(median_otsu, what_gives_no_mask_is_refused) {
  const auto pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.has_value());
  const std::vector<double> flat(static_cast<std::size_t>(size[0] * size[1] * size[2]), 4.0);
  const auto message = [&](const std::vector<double>& volume, const MedianOtsuOptions& options) {
    const auto mask = median_otsu(volume, size, options, **pool);
    return mask ? std::string("accepted") : mask.error().message();
  };
  EXPECT_NE(message(flat, {}).find("have the value 4"), std::string::npos);
  EXPECT_NE(message({1, 2, 3}, {}).find("3 values for 11 x 8 x 6"), std::string::npos);
  EXPECT_NE(message(flat, {.median_radius = 99}).find("radius 99"), std::string::npos);
  std::vector<double> infinite = flat;
  infinite[5] = std::numeric_limits<double>::infinity();
  EXPECT_NE(message(infinite, {}).find("not finite"), std::string::npos);
}

TEST(median_otsu, the_mean_of_volumes_leaves_out_what_is_not_finite) {
  std::vector<double> sum;
  add_to_sum(sum, std::vector<float>{1, 2, std::numeric_limits<float>::quiet_NaN()});
  add_to_sum(sum, std::vector<float>{3, 5, 7});
  divide_sum(sum, 2);
  EXPECT_EQ(sum, (std::vector<double>{2, 3.5, 3.5}));
}

}  // namespace
}  // namespace cingulum
