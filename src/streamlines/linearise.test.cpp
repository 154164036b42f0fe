#include "streamlines/linearise.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace cingulum
