#include "streamlines/lengths.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

TEST(lengths, length_is_measured_in_world_space) {
  ImageGeometry g;
  g.voxel_to_world.rows = {0, -3, 0, 7, 2, 0, 0, 1, 0, 0, 1.5, 0};
  EXPECT_DOUBLE_EQ(length_in_mm(std::vector<float>{0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0}, g.voxel_to_world), 6.0);
  const std::vector<float> bend = {0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 2};
  EXPECT_DOUBLE_EQ(length_in_mm(bend, g.voxel_to_world), 2.0 + 3.0 + 3.0);
  EXPECT_EQ(length_in_mm({}, g.voxel_to_world), 0);
  EXPECT_DOUBLE_EQ(length_in_mm(bend), 1.0 + 1.0 + 2.0);  // of points of the world
  EXPECT_EQ(length_in_mm(std::vector<float>{1, 2, 3}), 0);
}

TEST(lengths, the_histogram_gives_mean_and_median_in_fixed_memory) {
  LengthHistogram lengths;
  EXPECT_EQ(lengths.quantile_mm(0.5), 0);
  for (int i = 1; i <= 999; ++i) lengths.add(i * 0.25);
  lengths.add(1e9);
  EXPECT_EQ(lengths.count(), 1000u);
  EXPECT_NEAR(lengths.quantile_mm(0.5), 125, 0.3);
  EXPECT_EQ(lengths.smallest_mm(), 0.25);
  EXPECT_EQ(lengths.largest_mm(), 1e9);
}

}  // namespace
}  // namespace cingulum
