#include "report/cohort_page.hpp"

#include <gtest/gtest.h>

namespace cingulum::cohort_page_tests {
namespace {

using Values = std::vector<std::optional<double>>;

TEST(CohortPage, what_is_far_from_the_others_is_found_by_the_median) {
  double median = 0, deviation = 0;
  // Distances to the median 12: 2 1 0 1 2 88 0; their median is 1.
  const Values values = {10.0, 11.0, std::nullopt, 12.0, 13.0, 14.0, 100.0, 12.0};
  const std::vector<bool> far = find_outliers(values, median, deviation);
  EXPECT_EQ(median, 12);
  EXPECT_DOUBLE_EQ(deviation, 1.4826);
  EXPECT_EQ(far, (std::vector<bool>{false, false, false, false, false, false, true, false}));
}

TEST(CohortPage, the_border_is_three_and_a_half_deviations) {
  double median = 0, deviation = 0;
  const double border = far_deviations * 1.4826;
  EXPECT_FALSE(find_outliers({-1.0, -1.0, 0.0, 1.0, 1.0, border - 1e-9, -border}, median, deviation)[5]);
  EXPECT_TRUE(find_outliers({-1.0, -1.0, 0.0, 1.0, 1.0, border + 1e-9, -border}, median, deviation)[5]);
  EXPECT_EQ(median, 0);
}

TEST(CohortPage, few_or_equal_values_mark_nobody) {
  double median = 0, deviation = 0;
  EXPECT_EQ(find_outliers({1.0, 1.1, 1.2, 50.0}, median, deviation), std::vector<bool>(4, false));
  EXPECT_EQ(find_outliers({1.0, 1.0, 1.0, 1.0, 1.0, 9.0}, median, deviation), std::vector<bool>(6, false));
  EXPECT_EQ(find_outliers({std::nullopt, std::nullopt}, median, deviation), std::vector<bool>(2, false));
}

}  // namespace
}  // namespace cingulum::cohort_page_tests
