#include "ring/telemetry/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cingulum::ring {
namespace {

TEST(latency_histogram, buckets_cover_all_values_without_gap_or_overlap) {
  std::uint64_t next = 0;
  for (std::uint32_t bucket = 0; bucket < LatencyHistogram::bucket_count; ++bucket) {
    EXPECT_EQ(LatencyHistogram::bucket_of(next), bucket);
    EXPECT_EQ(LatencyHistogram::bucket_of(LatencyHistogram::upper_bound_ns(bucket)), bucket);
    next = LatencyHistogram::upper_bound_ns(bucket) + 1;
  }
  EXPECT_GE(next, std::uint64_t{1} << 40);
  EXPECT_EQ(LatencyHistogram::bucket_of(~std::uint64_t{0}), LatencyHistogram::bucket_count - 1);
}

TEST(latency_histogram, quantiles_are_those_of_the_sorted_values_within_a_bucket) {
  std::mt19937_64 random(7);
  LatencyHistogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(100 + random() % (std::uint64_t{1} << (random() % 24 + 1)));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  const LatencySummary summary = histogram.summary();
  const auto expect_near = [&](std::uint64_t found, double share) {
    const std::uint64_t exact = values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    EXPECT_GE(found, exact);
    EXPECT_LE(static_cast<double>(found), static_cast<double>(exact) * 1.0625 + 1);
  };
  EXPECT_EQ(summary.count, values.size());
  EXPECT_EQ(summary.min_ns, values.front());
  EXPECT_EQ(summary.max_ns, values.back());
  expect_near(summary.p50_ns, 0.5);
  expect_near(summary.p99_ns, 0.99);
  expect_near(summary.p999_ns, 0.999);
}

// Values below sixteen have buckets of their own: the quantiles of few values are exact.
TEST(latency_histogram, quantiles_of_few_values_are_those_values) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.summary().count, 0u);
  for (std::uint64_t value = 1; value <= 10; ++value) histogram.record(value);
  const LatencySummary summary = histogram.summary();
  EXPECT_EQ(summary.count, 10u);
  EXPECT_EQ(summary.min_ns, 1u);
  EXPECT_EQ(summary.max_ns, 10u);
  EXPECT_EQ(summary.mean_ns, 5u);
  EXPECT_EQ(summary.p50_ns, 5u);
  EXPECT_EQ(summary.p99_ns, 9u);
  EXPECT_EQ(summary.p999_ns, 9u);
  LatencyHistogram one;
  one.record(7);
  EXPECT_EQ(one.summary().p50_ns, 7u);
  EXPECT_EQ(one.summary().p999_ns, 7u);
  EXPECT_EQ(one.summary().min_ns, 7u);
}

// No time at all is a time too, whether it comes first or last.
TEST(latency_histogram, the_smallest_of_all_is_zero_where_zero_was_recorded) {
  for (const bool first : {true, false}) {
    LatencyHistogram histogram;
    histogram.record(first ? 0 : 5);
    histogram.record(first ? 5 : 0);
    const LatencySummary summary = histogram.summary();
    EXPECT_EQ(summary.count, 2u);
    EXPECT_EQ(summary.min_ns, 0u);
    EXPECT_EQ(summary.max_ns, 5u);
    EXPECT_EQ(summary.mean_ns, 2u);
    EXPECT_EQ(summary.p50_ns, 0u);
  }
}

// Sixteen buckets for each power of two: their last values by hand.
TEST(latency_histogram, buckets_end_at_sixteenths_of_powers_of_two) {
  const std::pair<std::uint64_t, std::uint64_t> ends[] = {{15, 15}, {16, 16}, {31, 31},     {32, 33},    {33, 33},
                                                          {34, 35}, {63, 63}, {1000, 1023}, {1024, 1087}};
  for (const auto& [value, end] : ends) {
    EXPECT_EQ(LatencyHistogram::upper_bound_ns(LatencyHistogram::bucket_of(value)), end) << value;
  }
}

}  // namespace
}  // namespace cingulum::ring
