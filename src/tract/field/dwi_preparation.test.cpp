#include "tract/field/dwi_preparation.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace cingulum {
namespace {

TEST(dwi_preparation, reachable_voxels_are_those_within_reach_of_one_that_passes) {
  ImageGeometry geometry;
  geometry.size = {9, 7, 6};
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> map(9 * 7 * 6, 0.0f);
    for (int n = 0; n < 3; ++n) map[random() % map.size()] = 0.4f;
    map[random() % map.size()] = 0.1f;  // the threshold itself does not pass
    const std::int64_t reach = round % 3;
    const auto found = reachable_voxels(geometry, map, 0.1, reach);
    for (std::int64_t k = 0; k < 6; ++k) {
      for (std::int64_t j = 0; j < 7; ++j) {
        for (std::int64_t i = 0; i < 9; ++i) {
          bool expected = false;
          for (std::size_t v = 0; v < map.size(); ++v) {
            const auto at = static_cast<std::int64_t>(v);
            const bool near =
                std::abs(at % 9 - i) <= reach && std::abs(at / 9 % 7 - j) <= reach && std::abs(at / 63 - k) <= reach;
            expected = expected || (near && map[v] > 0.1f);
          }
          ASSERT_EQ(found[static_cast<std::size_t>(voxel_index(geometry, i, j, k))] != 0, expected);
        }
      }
    }
  }
}

TEST(dwi_preparation, everything_is_reachable_below_a_negative_threshold) {
  ImageGeometry geometry;
  geometry.size = {2, 2, 2};
  const std::vector<float> map(8, -5.0f);
  EXPECT_EQ(reachable_voxels(geometry, map, -1, 1), std::vector<std::uint8_t>(8, 1));
}

}  // namespace
}  // namespace cingulum
