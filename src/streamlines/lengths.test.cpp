#include "streamlines/lengths.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cingulum {
namespace {

TEST(lengths, length_is_measured_in_world_space) {
  ImageGeometry g;
  g.voxel_to_world.rows = {0, -3, 0, 7, 2, 0, 0, 1, 0, 0, 1.5, 0};
  const auto mapped_length = [&](const std::vector<float>& points) { return length_in_mm(points, g.voxel_to_world); };
  EXPECT_DOUBLE_EQ(mapped_length({0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0}), 6.0);
  const std::vector<float> bend = {0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 2};
  EXPECT_DOUBLE_EQ(mapped_length(bend), 2.0 + 3.0 + 3.0);
  EXPECT_EQ(mapped_length({}), 0);
  EXPECT_EQ(mapped_length({5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(length_in_mm(bend), 1.0 + 1.0 + 2.0);  // of points of the world
  EXPECT_EQ(length_in_mm(std::vector<float>{1, 2, 3}), 0);
}

// Point by point and segment by segment, as the contract has it.
TEST(lengths, points_are_mapped_and_segments_added_in_sequence) {
  constexpr unsigned seed = 12;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> steps(-0.5f, 0.5f);
  Affine affine;
  affine.rows = {1.9, 0.2, 0.01, -40, -0.2, 1.9, 0.1, 3, 0.003, -0.1, 2.2, 11};
  for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u}) {
    std::vector<float> points;
    float p[3] = {50, 40, 30};
    for (std::size_t i = 0; i < 3 * count; ++i) points.push_back(p[i % 3] += steps(random));
    double expected = 0;
    std::vector<double> mapped;
    for (std::size_t i = 0; i < count; ++i) {
      for (int row = 0; row < 3; ++row) {
        mapped.push_back(((affine.at(row, 0) * static_cast<double>(points[3 * i]) +
                           affine.at(row, 1) * static_cast<double>(points[3 * i + 1])) +
                          affine.at(row, 2) * static_cast<double>(points[3 * i + 2])) +
                         affine.at(row, 3));
      }
      if (i == 0) continue;
      double d[3];
      for (std::size_t c = 0; c < 3; ++c) d[c] = mapped[3 * i + c] - mapped[3 * i - 3 + c];
      expected += std::sqrt((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
    }
    std::vector<double> world(points.size());
    std::vector<float> rounded(points.size());
    map_to_world(points, affine, world);
    map_to_world(points, affine, rounded);
    EXPECT_EQ(length_in_mm(points, affine), expected) << count;
    EXPECT_EQ(world, mapped) << count;
    EXPECT_EQ(rounded, std::vector<float>(mapped.begin(), mapped.end())) << count;
  }
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

// 0.1 is no sum of powers of two that ends: as doubles these sums would depend on where they are cut.
TEST(lengths, numbers_do_not_depend_on_how_lengths_are_cut_into_parts) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(0.1 * ((i * 7919) % 1000) + 0.1 / (i + 1));
  values.push_back(123456789.75);
  LengthHistogram whole;
  for (const double value : values) whole.add(value);
  double sum = 0;
  for (const double value : values) sum += value;
  EXPECT_NEAR(whole.mean_mm(), sum / static_cast<double>(values.size()), 1e-9 * sum);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{333}, values.size()}) {
    LengthHistogram first, second;
    for (std::size_t i = 0; i < values.size(); ++i) (i < cut ? second : first).add(values[values.size() - 1 - i]);
    // Through what is kept of them.
    const auto kept = LengthHistogram::of_sums(second.sums());
    ASSERT_TRUE(kept);
    first.add(*kept);
    EXPECT_EQ(first.count(), whole.count());
    EXPECT_EQ(first.mean_mm(), whole.mean_mm()) << cut;
    EXPECT_EQ(first.quantile_mm(0.5), whole.quantile_mm(0.5));
    EXPECT_EQ(first.smallest_mm(), whole.smallest_mm());
    EXPECT_EQ(first.largest_mm(), whole.largest_mm());
  }
}

TEST(lengths, sums_of_no_lengths_are_refused) {
  LengthHistogram lengths;
  lengths.add(3);
  const LengthHistogram::Sums good = lengths.sums();
  EXPECT_TRUE(LengthHistogram::of_sums(good));
  const auto refused = [&](const auto& change) {
    LengthHistogram::Sums sums = good;
    change(sums);
    return !LengthHistogram::of_sums(sums);
  };
  EXPECT_TRUE(refused([](auto& sums) { sums.rest = std::uint64_t{1} << 40U; }));
  EXPECT_TRUE(refused([](auto& sums) { sums.smallest_mm = 4; }));
  EXPECT_TRUE(refused([](auto& sums) { sums.smallest_mm = -1; }));
  EXPECT_TRUE(refused([](auto& sums) { sums.bins[0].first = 100'000; }));
  EXPECT_TRUE(refused([](auto& sums) { sums.bins[0].second = 0; }));
  EXPECT_TRUE(refused([](auto& sums) { sums.bins.push_back(sums.bins[0]); }));
}

}  // namespace
}  // namespace cingulum
