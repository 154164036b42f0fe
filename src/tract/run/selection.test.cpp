#include "tract/run/selection.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

// Voxels first to last of the row along x, in a grid of 20.
Region along_x(std::size_t first, std::size_t last) {
  ImageGeometry grid;
  grid.size = {20, 20, 20};
  std::vector<std::uint8_t> mask(20 * 20 * 20, 0);
  for (std::size_t i = first; i <= last; ++i) mask[i] = 1;
  return Region::of_mask("row", grid, mask, grid).value();
}

MappedVector<float> line_along_x() {
  MappedVector<float> points;
  for (int i = 0; i < 15; ++i) points.insert(points.end(), {static_cast<float>(i), 0, 0});
  return points;
}

TEST(selection, a_stop_region_keeps_the_segment_that_enters_it_and_nothing_after) {
  const Region right = along_x(8, 12);
  const Region left = along_x(0, 2);
  StreamlineBatch batch;
  batch.points = line_along_x();
  batch.offsets = {0, 15};
  batch.seed_index = {0};
  batch.seed_point = {5};
  batch.end_reason = {1, 3};
  const StreamlineCut cut = cut_at_stop_regions({right, left}, batch, 0);
  EXPECT_EQ(cut.first_point, 2u);
  EXPECT_EQ(cut.point_count, 7u);  // 2 .. 8
  EXPECT_EQ(cut.seed_point, 3u);
  EXPECT_EQ(cut.start_reason, EndReason::stop_region);
  EXPECT_EQ(cut.end_reason, EndReason::stop_region);
}

TEST(selection, a_half_that_meets_no_stop_region_keeps_its_points_and_reason) {
  StreamlineBatch batch;
  batch.points = line_along_x();
  batch.offsets = {0, 15};
  batch.seed_index = {0};
  batch.seed_point = {5};
  batch.end_reason = {1, 3};
  const StreamlineCut cut = cut_at_stop_regions({along_x(8, 8)}, batch, 0);
  EXPECT_EQ(cut.first_point, 0u);
  EXPECT_EQ(cut.point_count, 9u);
  EXPECT_EQ(cut.start_reason, EndReason::stop_map);
  EXPECT_EQ(cut.end_reason, EndReason::stop_region);
}

TEST(selection, limits_include_themselves_and_what_rounding_takes) {
  const SelectionRules rules = {.min_length_mm = 2, .max_length_mm = 10, .tolerance_mm = 0.001};
  const std::vector<float> points = {0, 0, 0};
  EXPECT_EQ(judge(rules, points, 1.9995), SelectionVerdict::kept);
  EXPECT_EQ(judge(rules, points, 1.99), SelectionVerdict::too_short);
  EXPECT_EQ(judge(rules, points, 10.0005), SelectionVerdict::kept);
  EXPECT_EQ(judge(rules, points, 10.01), SelectionVerdict::too_long);
  EXPECT_EQ(judge({}, {}, 0), SelectionVerdict::too_short);
}

TEST(selection, points_are_counted_and_both_limits_belong_to_what_is_kept) {
  const MappedVector<float> fifteen = line_along_x();
  const auto verdict = [&](std::uint64_t least, std::uint64_t most) {
    return judge({.min_points = least, .max_points = most}, fifteen, 14);
  };
  EXPECT_EQ(verdict(15, 15), SelectionVerdict::kept);
  EXPECT_EQ(verdict(16, 20), SelectionVerdict::too_few_points);
  EXPECT_EQ(verdict(0, 14), SelectionVerdict::too_many_points);
  // Length is judged before points, points before regions.
  SelectionRules rules = {.min_length_mm = 20, .min_points = 16};
  EXPECT_EQ(judge(rules, fifteen, 14), SelectionVerdict::too_short);
  rules.min_length_mm = 0;
  rules.regions.exclude = {along_x(0, 14)};
  EXPECT_EQ(judge(rules, fifteen, 14), SelectionVerdict::too_few_points);
  rules.min_points = 15;
  EXPECT_EQ(judge(rules, fifteen, 14), SelectionVerdict::region_rules);
}

}  // namespace
}  // namespace cingulum
