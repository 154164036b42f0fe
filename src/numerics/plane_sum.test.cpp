#include "numerics/plane_sum.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cingulum::numerics {
namespace {

TEST(PlaneSum, rows_are_lane_sums_and_so_is_the_sum_of_rows) {
  // In float32 2^24 + 1 is 2^24: which terms meet decides what is left of the ones.
  const auto sum = [](std::uint32_t rows, std::uint32_t columns, auto&& term) {
    return plane_sum(rows, columns, term);
  };
  EXPECT_EQ(sum(1, 2, [](auto, auto column) { return column == 0 ? 0x1p24f : 1.0f; }), 0x1p24f);
  // Lane 0 adds both of its ones before it meets the large number.
  EXPECT_EQ(
      sum(1, 34, [](auto, auto column) { return column == 33                  ? 0x1p24f
                                                : column == 32 || column == 0 ? 1.0f
                                                                              : 0.0f; }),
      0x1p24f + 2.0f);
  // Across columns the ones of a row are summed before rows meet.
  EXPECT_EQ(sum(2, 2, [](auto row, auto) { return row == 0 ? 0x1p23f : 1.0f; }), 0x1p24f + 2.0f);
  EXPECT_EQ(sum(34, 1, [](auto row, auto) { return row == 33               ? 0x1p24f
                                                   : row == 32 || row == 0 ? 1.0f
                                                                           : 0.0f; }),
            0x1p24f + 2.0f);
}

TEST(PlaneSum, whole_numbers_are_summed_exactly) {
  for (const std::uint32_t rows : {1u, 31u, 33u, 100u}) {
    for (const std::uint32_t columns : {1u, 32u, 77u}) {
      const float expected = static_cast<float>(rows * columns * (rows - 1) / 2 + rows * columns * (columns - 1) / 2);
      EXPECT_EQ(plane_sum(rows, columns, [](auto row, auto column) { return static_cast<float>(row + column); }),
                expected);
    }
  }
}

}  // namespace
}  // namespace cingulum::numerics
