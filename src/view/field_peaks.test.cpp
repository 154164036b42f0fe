#include "view/field_peaks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "dmri/sphere/sphere.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum::field_peaks_tests {
namespace {

using numerics::Vec3d;

struct PeakLine {
  Vec3d from, to;
  std::uint32_t voxel = 0;
  [[nodiscard]] Vec3d way() const { return to - from; }
  [[nodiscard]] Vec3d middle() const { return (from + to) * 0.5; }
};

std::vector<PeakLine> read_lines(const std::vector<std::byte>& message) {
  std::uint32_t counts[2];
  std::memcpy(counts, message.data() + 12, sizeof counts);
  const auto [lines, points] = counts;
  EXPECT_EQ(points, 2 * lines);
  std::vector<float> numbers(3 * std::size_t{points});
  const std::size_t positions = 20 + 4 * (std::size_t{lines} + 1);
  std::memcpy(numbers.data(), message.data() + positions, 4 * numbers.size());
  std::vector<PeakLine> result(lines);
  for (std::size_t i = 0; i < lines; ++i) {
    const auto point = [&](std::size_t p) {
      return Vec3d{static_cast<double>(numbers[3 * p]), static_cast<double>(numbers[3 * p + 1]),
                   static_cast<double>(numbers[3 * p + 2])};
    };
    result[i].from = point(2 * i);
    result[i].to = point(2 * i + 1);
    std::memcpy(&result[i].voxel, message.data() + positions + 4 * numbers.size() + 4 * i, 4);
  }
  return result;
}

// Oblique, with a flipped axis and edges of different length.
ImageGeometry oblique_grid() {
  ImageGeometry geometry = test::grid(2, 1, 2);
  const double c = std::cos(0.4), s = std::sin(0.4);
  geometry.voxel_to_world.rows = {-2 * c, -1.5 * s, 0, 3, -2 * s, 1.5 * c, 0, 4, 0, 0, 3, 5};
  return geometry;
}
Vec3d in_world(Vec3d image) {
  const double c = std::cos(0.4), s = std::sin(0.4);
  return {-c * image.x - s * image.y, -s * image.x + c * image.y, image.z};
}

double angle_between(Vec3d a, Vec3d b) {
  return std::acos(std::min(1.0, std::abs(dot(a, b)) / (length(a) * length(b))));
}

TEST(field_peaks, of_two_lobes_there_are_two_lines_along_them_the_weaker_one_shorter) {
  auto pool = ThreadPool::create(2).value();
  const Vec3d strong{0.6, 0.64, std::sqrt(1 - 0.36 - 0.4096)}, weak{-0.8, 0.6, 0};
  double of_strong[45], of_weak[45];
  const numerics::HarmonicBasis basis{numerics::HarmonicConvention::descoteaux07_legacy, 8, false};
  numerics::evaluate_harmonics(basis, strong, of_strong);
  numerics::evaluate_harmonics(basis, weak, of_weak);
  std::vector<float> coefficients;
  for (int voxel = 0; voxel < 2; ++voxel) {
    for (int j = 0; j < 45; ++j) coefficients.push_back(static_cast<float>(of_strong[j] + 0.6 * of_weak[j]));
  }
  for (const char* name : {"mirror321", "repulsion724"}) {
    const Field field = make_harmonic_field(oblique_grid(), std::vector<float>(4, 1.0f),
                                            {std::vector<std::uint32_t>{0, 3}, 45, coefficients}, basis,
                                            DirectionFrame::image, named_sphere(name).value())
                            .value();
    ASSERT_OK_AND_ASSIGN(const auto message, peaks_of_slice(field, 2, 8, *pool));
    const auto lines = read_lines(message);
    ASSERT_EQ(lines.size(), 2u) << name;
    EXPECT_LT(angle_between(lines[0].way(), in_world(strong)), 0.15);
    EXPECT_LT(angle_between(lines[1].way(), in_world(weak)), 0.15);
    // The strongest is as long as the shortest edge.
    EXPECT_NEAR(length(lines[0].way()), 1.5, 1e-4);
    EXPECT_GT(length(lines[1].way()), 0.5 * 1.5);
    EXPECT_LT(length(lines[1].way()), 0.75 * 1.5);
    for (const PeakLine& line : lines) {
      const Vec3d off = line.middle() - oblique_grid().voxel_to_world.apply({1, 0, 1});
      EXPECT_LT(length(off), 1e-5);
      EXPECT_EQ(line.voxel, 0u);
    }
  }
}

TEST(field_peaks, tensors_and_given_peaks_have_theirs) {
  auto pool = ThreadPool::create(1).value();
  // Greatest along (1, 1, 0).
  const Field tensors = make_tensor_field(oblique_grid(), std::vector<float>(4, 1.0f),
                                          {std::vector<std::uint32_t>{0}, 6, std::vector<float>{2, 1, 0, 2, 0, 1}},
                                          TensorOrder::fsl, DirectionFrame::image)
                            .value();
  ASSERT_OK_AND_ASSIGN(const auto of_tensors, peaks_of_slice(tensors, 2, 5, *pool));
  const auto lines = read_lines(of_tensors);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(angle_between(lines[0].way(), in_world({1, 1, 0})), 1e-4);
  EXPECT_NEAR(length(lines[0].way()), 1.5, 1e-4);

  const Field given = make_peak_field(oblique_grid(), std::vector<float>(4, 1.0f),
                                      {std::vector<std::uint32_t>{0}, 6, std::vector<float>{0, 0, 2, 0.5f, 0, 0}},
                                      DirectionFrame::image)
                          .value();
  ASSERT_OK_AND_ASSIGN(const auto of_given, peaks_of_slice(given, 2, 5, *pool));
  const auto two = read_lines(of_given);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_LT(angle_between(two[0].way(), in_world({0, 0, 1})), 1e-4);
  EXPECT_NEAR(length(two[0].way()), 1.5, 1e-4);
  EXPECT_LT(angle_between(two[1].way(), in_world({1, 0, 0})), 1e-4);
  EXPECT_NEAR(length(two[1].way()), 0.25 * 1.5, 1e-4);
}

TEST(field_peaks, what_has_none_is_refused) {
  auto pool = ThreadPool::create(1).value();
  Field field;
  field.kind = FieldKind::bootstrap;
  field.geometry = test::grid(1, 1, 1);
  field.record_of_voxel = {0};
  EXPECT_TRUE(testing::fails_with(peaks_of_slice(field, 0, 0, *pool), ErrorKind::unavailable, "drawn anew"));
  EXPECT_FALSE(peaks_of_slice(field, 3, 0, *pool));
  EXPECT_FALSE(peaks_of_slice(field, 0, std::nan(""), *pool));
}

}  // namespace
}  // namespace cingulum::field_peaks_tests
