#include "measure/repetitions.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cingulum::measure {
namespace {

TEST(repetitions, the_median_of_an_even_number_of_values_is_the_lower_one) {
  const Spread spread = spread_of({4, 1, 3, 2});
  EXPECT_EQ(spread.median, 2);
  EXPECT_EQ(spread.low, 1);
  EXPECT_EQ(spread.high, 3);
  EXPECT_EQ(spread.repetitions, 4U);
}

TEST(repetitions, percentiles_are_values_that_were_measured) {
  std::vector<double> values(1001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(1000 - i);
  const Percentiles percentiles = percentiles_of(values);
  EXPECT_EQ(percentiles.p50, 500);
  EXPECT_EQ(percentiles.p99, 990);
  EXPECT_EQ(percentiles.p999, 999);
  EXPECT_EQ(percentiles.min, 0);
  EXPECT_EQ(percentiles.max, 1000);
  EXPECT_EQ(percentiles.samples, 1001U);
}

TEST(repetitions, nothing_measured_is_zero) {
  EXPECT_EQ(spread_of({}).repetitions, 0U);
  EXPECT_EQ(percentiles_of({}).samples, 0U);
}

TEST(repetitions, warm_ups_run_and_do_not_count) {
  int runs = 0;
  const Seconds seconds = measure_repetitions(2, 3, [&] { ++runs; });
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(seconds.elapsed.size(), 3U);
  EXPECT_EQ(seconds.processor.size(), 3U);
}

TEST(repetitions, a_failure_ends_the_measurement) {
  int runs = 0;
  const Result<Seconds> seconds = measure_repetitions(1, 3, [&]() -> Status {
    if (++runs == 2) return fail(ErrorKind::io, "the disk is full");
    return {};
  });
  ASSERT_FALSE(seconds.has_value());
  EXPECT_EQ(seconds.error().message(), "the disk is full");
  EXPECT_EQ(runs, 2);
}

TEST(repetitions, the_longest_times_are_the_lowest_rates) {
  const Spread rate = as_rate({2, 1, 4, 3}, 4'000'000'000);
  EXPECT_EQ(rate.median, 2);
  EXPECT_EQ(rate.low, 1);
  EXPECT_EQ(rate.high, 4);
}

}  // namespace
}  // namespace cingulum::measure
