#include "dmri/models/peaks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cingulum {
namespace {

using numerics::Vec3d;

Sphere sphere_of(std::string_view name) {
  auto sphere = named_sphere(name);
  EXPECT_TRUE(sphere.has_value());
  return sphere ? *std::move(sphere) : Sphere{};
}

// Lobes around the given axes with the given heights, over a floor.
std::vector<float> lobes(const Sphere& sphere, const std::vector<std::pair<Vec3d, double>>& axes, double floor) {
  std::vector<float> values;
  for (const Vec3d& v : sphere.directions) {
    double value = floor;
    for (const auto& [axis, height] : axes) {
      const double cosine = dot(v, axis);
      const double near = sphere.is_hemisphere ? std::abs(cosine) : std::max(0.0, cosine);
      value += height * std::exp(-30 * (1 - near * near));
    }
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::vector<std::uint32_t> peaks_of(const Sphere& sphere, const std::vector<float>& values, PeakOptions options = {}) {
  const auto finder = PeakFinder::create(sphere, options);
  EXPECT_TRUE(finder.has_value()) << finder.error().message();
  std::vector<std::uint32_t> candidates;
  std::vector<std::uint32_t> peaks(options.max_peaks);
  peaks.resize(finder->find(values, candidates, peaks));
  return peaks;
}

TEST(peaks, lobes_are_found_strongest_first) {
  for (const char* name : {"mirror321", "repulsion724"}) {
    const Sphere sphere = sphere_of(name);
    const Vec3d a = sphere.directions[10];
    const Vec3d b = numerics::normalise(cross(a, Vec3d{1, 0, 0}));
    const auto peaks = peaks_of(sphere, lobes(sphere, {{b, 0.6}, {a, 1.0}}, 0.1));
    ASSERT_EQ(peaks.size(), 2U) << name;
    EXPECT_EQ(peaks[0], 10U);
    EXPECT_GT(std::abs(dot(sphere.directions[peaks[1]], b)), std::cos(6 * M_PI / 180));
  }
}

TEST(peaks, the_threshold_is_relative_to_the_greatest_above_the_floor) {
  const Sphere sphere = sphere_of("mirror321");
  const Vec3d a = {0, 0, 1};
  const Vec3d b = {1, 0, 0};
  // Heights above the floor are 1 and 0.3; with the floor 5 counted in, 0.3 would pass any threshold.
  const auto values = lobes(sphere, {{a, 1.0}, {b, 0.3}}, 5.0);
  EXPECT_EQ(peaks_of(sphere, values, {.relative_threshold = 0.25}).size(), 2U);
  EXPECT_EQ(peaks_of(sphere, values, {.relative_threshold = 0.35}).size(), 1U);
  // A floor below zero does not count.
  const auto negative = lobes(sphere, {{a, 1.0}, {b, 0.4}}, -0.2);
  EXPECT_EQ(peaks_of(sphere, negative, {.relative_threshold = 0.24}).size(), 2U);
  EXPECT_EQ(peaks_of(sphere, negative, {.relative_threshold = 0.26}).size(), 1U);
}

TEST(peaks, peaks_nearer_than_the_separation_are_dropped_and_at_most_so_many_kept) {
  const Sphere sphere = sphere_of("mirror501");
  const double angle = 40 * M_PI / 180;
  const Vec3d a = {0, 0, 1};
  const Vec3d b = {std::sin(angle), 0, std::cos(angle)};
  const Vec3d c = {0, 1, 0};
  const auto values = lobes(sphere, {{a, 1.0}, {b, 0.9}, {c, 0.8}}, 0);
  EXPECT_EQ(peaks_of(sphere, values, {.min_separation_deg = 25}).size(), 3U);
  EXPECT_EQ(peaks_of(sphere, values, {.min_separation_deg = 50}).size(), 2U);
  EXPECT_EQ(peaks_of(sphere, values, {.min_separation_deg = 25, .max_peaks = 2}).size(), 2U);
  EXPECT_EQ(peaks_of(sphere, values, {.min_separation_deg = 90}).size(), 2U);  // a and c are 90 degrees apart
}

TEST(peaks, opposite_peaks_of_a_full_sphere_are_two) {
  const Sphere full = sphere_of("repulsion362-full");
  const Vec3d a = full.directions[3];
  EXPECT_EQ(peaks_of(full, lobes(full, {{a, 1.0}, {-a, 0.7}}, 0)).size(), 2U);
  EXPECT_EQ(peaks_of(full, lobes(full, {{a, 1.0}}, 0)).size(), 1U);
}

TEST(peaks, equal_values_go_by_slot_and_constant_or_negative_functions_have_no_peak) {
  const Sphere sphere = sphere_of("mirror321");
  std::vector<float> values(sphere.size(), 1.0f);
  EXPECT_TRUE(peaks_of(sphere, values).empty());
  values[300] = values[4] = 2.0f;
  const double cosine = std::abs(dot(sphere.directions[4], sphere.directions[300]));
  ASSERT_LT(cosine, std::cos(45 * M_PI / 180));
  EXPECT_EQ(peaks_of(sphere, values), (std::vector<std::uint32_t>{4, 300}));
  for (float& value : values) value -= 3.0f;
  EXPECT_TRUE(peaks_of(sphere, values).empty());
}

TEST(peaks, a_peak_across_the_rim_of_the_hemisphere_is_one) {
  const Sphere sphere = sphere_of("mirror406");
  // The axes are midpoints of edges here: two vertices of equal value, of which the separation drops one.
  for (const Vec3d axis : {Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, numerics::normalise(Vec3d{1, 1, 0.02})}) {
    EXPECT_EQ(peaks_of(sphere, lobes(sphere, {{axis, 1.0}}, 0.0), {.min_separation_deg = 10}).size(), 1U) << axis.x;
  }
}

TEST(peaks, peak_vectors_have_the_value_as_length) {
  const Sphere sphere = sphere_of("mirror321");
  const auto one = lobes(sphere, {{{0, 0, 1}, 0.8}, {{1, 0, 0}, 0.5}}, 0);
  std::vector<float> values(3 * one.size(), 0.0f);
  std::copy(one.begin(), one.end(), values.begin() + static_cast<std::ptrdiff_t>(one.size()));
  const auto finder = PeakFinder::create(sphere, {.max_peaks = 3});
  const auto pool = ThreadPool::create(2);
  ASSERT_TRUE(finder && pool);
  const std::vector<float> vectors = finder->peak_vectors(values, **pool);
  ASSERT_EQ(vectors.size(), 27U);
  const auto length = [&](std::size_t i) { return std::hypot(vectors[i], vectors[i + 1], vectors[i + 2]); };
  EXPECT_EQ(length(0), 0.0f);
  EXPECT_NEAR(length(9), 0.8, 0.01);
  EXPECT_NEAR(length(12), 0.5, 0.01);
  EXPECT_EQ(length(15), 0.0f);
  EXPECT_EQ(length(18), 0.0f);
}

TEST(peaks, options_outside_their_range_are_refused) {
  const Sphere half = sphere_of("small");
  EXPECT_FALSE(PeakFinder::create(half, {.relative_threshold = 1.5}).has_value());
  EXPECT_FALSE(PeakFinder::create(half, {.min_separation_deg = 91}).has_value());
  EXPECT_FALSE(PeakFinder::create(half, {.max_peaks = 0}).has_value());
  EXPECT_TRUE(PeakFinder::create(sphere_of("small-full"), {.min_separation_deg = 91}).has_value());
  // Limits belong to what is possible.
  EXPECT_FALSE(PeakFinder::create(half, {.relative_threshold = -0.01}).has_value());
  EXPECT_TRUE(PeakFinder::create(half, {.relative_threshold = 0}).has_value());
  EXPECT_TRUE(PeakFinder::create(half, {.relative_threshold = 1}).has_value());
  EXPECT_FALSE(PeakFinder::create(half, {.min_separation_deg = -1}).has_value());
  EXPECT_TRUE(PeakFinder::create(half, {.min_separation_deg = 0}).has_value());
  EXPECT_TRUE(PeakFinder::create(half, {.min_separation_deg = 90}).has_value());
  EXPECT_TRUE(PeakFinder::create(sphere_of("small-full"), {.min_separation_deg = 180}).has_value());
  EXPECT_FALSE(PeakFinder::create(sphere_of("small-full"), {.min_separation_deg = 181}).has_value());
  const auto directions = static_cast<std::uint32_t>(half.size());
  EXPECT_TRUE(PeakFinder::create(half, {.max_peaks = directions}).has_value());
  EXPECT_FALSE(PeakFinder::create(half, {.max_peaks = directions + 1}).has_value());
}

}  // namespace
}  // namespace cingulum
