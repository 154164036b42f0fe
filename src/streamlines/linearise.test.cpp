#include "streamlines/linearise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "support/each_device.hpp"
#include "support/example_tractogram.hpp"

namespace cingulum {
namespace {

TractogramBatch line_of(const std::vector<std::array<double, 3>>& points) {
  TractogramBatch batch;
  for (const auto& point : points) batch.positions64.insert(batch.positions64.end(), point.begin(), point.end());
  batch.offsets = {0, points.size()};
  return batch;
}

TEST(Linearise, a_straight_line_keeps_its_ends) {
  std::vector<std::array<double, 3>> points;
  for (int i = 0; i <= 40; ++i) points.push_back({i * 0.2, 1, 2});
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(line_of(points), {}, {.tolerance_mm = 0.01, .max_segment_mm = 10}));
  EXPECT_EQ(result.positions64, (std::vector<double>{0, 1, 2, 8, 1, 2}));
}

TEST(Linearise, segments_are_not_longer_than_asked) {
  std::vector<std::array<double, 3>> points;
  for (int i = 0; i <= 40; ++i) points.push_back({i * 1.0, 0, 0});
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(line_of(points), {}, {.tolerance_mm = 0.01, .max_segment_mm = 10}));
  EXPECT_EQ(result.positions64, (std::vector<double>{0, 0, 0, 10, 0, 0, 20, 0, 0, 30, 0, 0, 40, 0, 0}));
}

TEST(Linearise, every_dropped_point_stays_within_the_tolerance) {
  std::vector<std::array<double, 3>> points;
  for (int i = 0; i < 500; ++i) {
    const double t = i * 0.05;
    points.push_back({10 * std::sin(t), 10 * std::cos(t), t * 3});
  }
  const TractogramBatch batch = line_of(points);
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(batch, {}, {.tolerance_mm = 0.1, .max_segment_mm = 10}));
  EXPECT_LT(result.point_count(), 200U);
  EXPECT_GT(result.point_count(), 20U);
  const auto at = [](const TractogramBatch& b, std::size_t i) {
    return numerics::Vec3d{b.positions64[i * 3], b.positions64[i * 3 + 1], b.positions64[i * 3 + 2]};
  };
  for (std::size_t i = 0; i < batch.point_count(); ++i) {
    double nearest = 1e9;
    for (std::size_t s = 0; s + 1 < result.point_count(); ++s) {
      const auto a = at(result, s), b = at(result, s + 1), p = at(batch, i);
      const double share = std::min(1.0, std::max(0.0, dot(p - a, b - a) / dot(b - a, b - a)));
      nearest = std::min(nearest, length(p - a - (b - a) * share));
    }
    EXPECT_LE(nearest, 0.1 + 1e-12);
  }
}

TEST(Linearise, fields_of_kept_points_go_with_them_and_short_streamlines_stay) {
  const TractogramBatch batch = testing::example_batch();
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(batch, testing::example_layout(TractogramFormat::trx),
                                                    {.tolerance_mm = 100, .max_segment_mm = 1000}));
  EXPECT_EQ(result.offsets, (std::vector<std::uint64_t>{0, 2, 2, 3, 5, 7}));
  EXPECT_EQ(result.point_data[0], testing::bytes_of(std::vector<float>{0, 2.0f / 64, 3.0f / 64, 4.0f / 64, 5.0f / 64,
                                                                       6.0f / 64, 45.0f / 64}));
  EXPECT_EQ(result.point_data[1].size(), 7U * 24);
  EXPECT_EQ(result.streamline_data, batch.streamline_data);
}

TEST(Linearise, nothing_is_dropped_from_a_zigzag) {
  std::vector<std::array<double, 3>> points;
  for (int i = 0; i < 20; ++i) points.push_back({i * 0.5, i % 2 == 0 ? 0.0 : 1.0, 0});
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(line_of(points), {}, {.tolerance_mm = 0.1, .max_segment_mm = 10}));
  EXPECT_EQ(result.point_count(), 20U);
}

TEST(Linearise, points_that_are_not_finite_are_kept) {
  const double nan = std::nan("");
  ASSERT_OK_AND_ASSIGN(const auto result, linearise(line_of({{0, 0, 0}, {1, nan, 0}, {2, 0, 0}, {3, 0, 0}}), {}, {}));
  EXPECT_EQ(result.point_count(), 4U);
}

// The rule as it is stated: from a kept point the segment is stretched until a point in between is too far from it.
std::vector<std::size_t> kept_by_the_rule(const std::vector<std::array<double, 3>>& points, const LinearisePlan& plan) {
  const auto holds = [&](std::size_t first, std::size_t last) {
    const auto& a = points[first];
    const auto& b = points[last];
    double along[3], length_squared = 0;
    for (std::size_t c = 0; c < 3; ++c) along[c] = b[c] - a[c];
    length_squared = (along[0] * along[0] + along[1] * along[1]) + along[2] * along[2];
    if (!(length_squared <= plan.max_segment_mm * plan.max_segment_mm)) return false;
    for (std::size_t i = first + 1; i < last; ++i) {
      double from[3], apart[3];
      for (std::size_t c = 0; c < 3; ++c) from[c] = points[i][c] - a[c];
      double share = (from[0] * along[0] + from[1] * along[1]) + from[2] * along[2];
      share = length_squared > 0 ? std::min(1.0, std::max(0.0, share / length_squared)) : 0;
      for (std::size_t c = 0; c < 3; ++c) apart[c] = from[c] - along[c] * share;
      const double square = (apart[0] * apart[0] + apart[1] * apart[1]) + apart[2] * apart[2];
      if (!(square <= plan.tolerance_mm * plan.tolerance_mm)) return false;
    }
    return true;
  };
  std::vector<std::size_t> kept;
  for (std::size_t anchor = 0; anchor < points.size();) {
    kept.push_back(anchor);
    if (anchor + 1 == points.size()) break;
    std::size_t last = anchor + 1;
    while (last + 1 < points.size() && holds(anchor, last + 1)) ++last;
    anchor = last;
  }
  return kept;
}

TEST(Linearise, threads_keep_the_points_of_the_rule_in_batch_after_batch) {
  constexpr unsigned seed = 30;
  std::mt19937 random(seed);
  const auto pool = ThreadPool::create(4).value();
  const LinearisePlan plan = {.tolerance_mm = 0.1, .max_segment_mm = 10};
  Lineariser lineariser(plan, pool.get());
  TractogramLayout layout;
  layout.point_fields = {{.name = "number", .type = element_type_of<std::uint32_t>(), .columns = 1}};
  TractogramBatch result;
  std::size_t dropped = 0;
  for (const std::size_t streamlines : {std::size_t{700}, std::size_t{3}, std::size_t{0}, std::size_t{900}}) {
    for (const bool doubles : {true, false}) {
      TractogramBatch batch;
      std::vector<double> expected;
      std::vector<std::uint32_t> expected_numbers;
      std::vector<std::uint64_t> expected_offsets = {0};
      batch.point_data.resize(1);
      for (std::size_t s = 0; s < streamlines; ++s) {
        std::vector<std::array<double, 3>> points(random() % 150);
        double angle = static_cast<double>(random() % 7), turn = 1e-3 * static_cast<double>(random() % 200), x = 0,
               y = 0;
        for (auto& point : points) {
          const double z = 1e-5 * static_cast<double>(random() % 10000);
          // What a file holds is what is judged.
          point = {static_cast<double>(static_cast<float>(x)), static_cast<double>(static_cast<float>(y)),
                   static_cast<double>(static_cast<float>(z))};
          x += std::cos(angle);
          y += std::sin(angle);
          angle += turn;
        }
        const auto before = static_cast<std::uint32_t>(batch.offsets.back());
        for (std::uint32_t i = 0; i < points.size(); ++i) {
          for (const double number : points[i]) {
            if (doubles) {
              batch.positions64.push_back(number);
            } else {
              batch.positions.push_back(static_cast<float>(number));
            }
          }
          const std::uint32_t number = before + i;
          const auto bytes = std::as_bytes(std::span(&number, 1));
          batch.point_data[0].insert(batch.point_data[0].end(), bytes.begin(), bytes.end());
        }
        batch.offsets.push_back(before + points.size());
        for (const std::size_t point : kept_by_the_rule(points, plan)) {
          expected.insert(expected.end(), points[point].begin(), points[point].end());
          expected_numbers.push_back(before + static_cast<std::uint32_t>(point));
        }
        expected_offsets.push_back(expected.size() / 3);
      }
      ASSERT_OK(lineariser.apply(batch, layout, result));
      ASSERT_EQ(result.offsets, expected_offsets);
      std::vector<double> found = result.positions64;
      found.insert(found.end(), result.positions.begin(), result.positions.end());
      ASSERT_EQ(found, expected);
      EXPECT_TRUE(streamlines == 0 || result.positions64.empty() != doubles);
      ASSERT_EQ(result.point_data[0].size(), 4 * expected_numbers.size());
      EXPECT_TRUE(expected_numbers.empty() ||
                  std::memcmp(result.point_data[0].data(), expected_numbers.data(), result.point_data[0].size()) == 0);
      dropped += batch.point_count() - result.point_count();
    }
  }
  EXPECT_GT(dropped, 50000U);
}

}  // namespace
}  // namespace cingulum
