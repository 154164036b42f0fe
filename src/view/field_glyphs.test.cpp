#include "view/field_glyphs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "dmri/sphere/sphere.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "tract/field/field_builders.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

Vec3d wide(numerics::Vec3 v) {
  return {static_cast<double>(v.x), static_cast<double>(v.y), static_cast<double>(v.z)};
}

// The series of degree 8 that is greatest along a direction of the image: its basis there.
std::vector<float> lobe_along(Vec3d direction) {
  double basis[45];
  numerics::evaluate_harmonics({numerics::HarmonicConvention::descoteaux07_legacy, 8, false}, direction, basis);
  return {basis, basis + 45};
}

Vec3d greatest_direction(const FieldGlyphs& glyphs, std::size_t voxel) {
  const std::size_t corners = glyphs.directions.size();
  const auto begin = glyphs.amplitudes.begin() + static_cast<std::ptrdiff_t>(voxel * corners);
  return wide(glyphs.directions[static_cast<std::size_t>(
      std::max_element(begin, begin + static_cast<std::ptrdiff_t>(corners)) - begin)]);
}

TEST(FieldGlyphs, the_sphere_is_closed_and_turns_outwards_or_inwards_nowhere_twice) {
  auto pool = ThreadPool::create(1).value();
  const ImageGeometry geometry = test::grid(1, 1, 1);
  const Field field =
      make_harmonic_field(geometry, std::vector<float>{1}, {std::vector<std::uint32_t>{0}, 45, lobe_along({1, 0, 0})},
                          {numerics::HarmonicConvention::descoteaux07_legacy, 8, false}, DirectionFrame::image,
                          named_sphere("mirror321").value())
          .value();
  ASSERT_OK_AND_ASSIGN(const FieldGlyphs glyphs, glyphs_of_slice(field, 2, 0, *pool));
  EXPECT_EQ(glyphs.directions.size(), 362);
  EXPECT_EQ(glyphs.triangles.size(), 720);
  // Euler: corners - edges + triangles = 2, and every edge belongs to two triangles.
  std::map<std::pair<int, int>, int> edges;
  for (const auto& [a, b, c] : glyphs.triangles) {
    for (const auto& [from, to] : {std::pair<int, int>(a, b), std::pair<int, int>(b, c), std::pair<int, int>(c, a)}) {
      ++edges[std::minmax(from, to)];
    }
  }
  EXPECT_EQ(edges.size(), 1080);
  for (const auto& [edge, triangles] : edges) EXPECT_EQ(triangles, 2);
  for (const auto& direction : glyphs.directions) EXPECT_NEAR(length(wide(direction)), 1, 1e-6);
}

// Oblique, with a flipped axis and edges of different length.
TEST(FieldGlyphs, lobes_point_along_the_fibres_of_the_world) {
  auto pool = ThreadPool::create(2).value();
  ImageGeometry geometry = test::grid(3, 2, 2);
  const double c = std::cos(0.4), s = std::sin(0.4);
  geometry.voxel_to_world.rows = {-2 * c, -1.5 * s, 0, 3, -2 * s, 1.5 * c, 0, 4, 0, 0, 3, 5};
  const Vec3d in_image{0.6, 0.64, std::sqrt(1 - 0.36 - 0.4096)};
  const Vec3d in_world{-c * in_image.x - s * in_image.y, -s * in_image.x + c * in_image.y, in_image.z};
  const std::vector<std::uint32_t> voxels = {0, 4, 7, 11};  // two in each layer of z
  std::vector<float> coefficients;
  for (std::size_t v = 0; v < voxels.size(); ++v) {
    const auto lobe = lobe_along(in_image);
    coefficients.insert(coefficients.end(), lobe.begin(), lobe.end());
  }
  for (const char* name : {"mirror321", "repulsion362"}) {
    const Field field = make_harmonic_field(geometry, std::vector<float>(12, 1.0f), {voxels, 45, coefficients},
                                            {numerics::HarmonicConvention::descoteaux07_legacy, 8, false},
                                            DirectionFrame::image, named_sphere(name).value())
                            .value();
    ASSERT_OK_AND_ASSIGN(const FieldGlyphs glyphs, glyphs_of_slice(field, 2, 8.4, *pool));
    ASSERT_EQ(glyphs.centres.size(), 2);  // the layer at z = 8
    for (std::size_t v = 0; v < 2; ++v) {
      EXPECT_FLOAT_EQ(glyphs.centres[v].z, 8.0f);
      // Corners of the sphere are 11 degrees apart.
      EXPECT_GT(std::abs(dot(greatest_direction(glyphs, v), in_world)), std::cos(0.15)) << name;
    }
    // The plane half-way belongs to one layer, not to both and not to none.
    ASSERT_OK_AND_ASSIGN(const FieldGlyphs between, glyphs_of_slice(field, 2, 6.5, *pool));
    EXPECT_EQ(between.centres.size(), 2);
    ASSERT_OK_AND_ASSIGN(const FieldGlyphs outside, glyphs_of_slice(field, 2, 50, *pool));
    EXPECT_TRUE(outside.centres.empty());
  }
}

TEST(FieldGlyphs, amplitudes_of_a_field_of_amplitudes_are_those_of_the_nearest_direction) {
  auto pool = ThreadPool::create(1).value();
  const Sphere sphere = named_sphere("repulsion362").value();
  // The glyph of the first voxel; the second has none and is left out.
  std::vector<float> values(2 * sphere.size(), 0.0f);
  for (std::size_t d = 0; d < sphere.size(); ++d) values[d] = static_cast<float>(d) - 20.0f;
  const Field field = make_amplitude_field(test::grid(2, 1, 1), std::vector<float>{1, 1},
                                           {std::vector<std::uint32_t>{0, 1}, sphere.size(), values}, sphere)
                          .value();
  ASSERT_OK_AND_ASSIGN(const FieldGlyphs glyphs, glyphs_of_slice(field, 1, 0, *pool));
  ASSERT_EQ(glyphs.centres.size(), 1);
  EXPECT_GT(glyphs.greatest[0], 100.0f);
  for (std::size_t i = 0; i < glyphs.directions.size(); ++i) {
    std::size_t nearest = 0;
    for (std::size_t d = 1; d < sphere.size(); ++d) {
      if (std::abs(dot(wide(glyphs.directions[i]), sphere.directions[d])) >
          std::abs(dot(wide(glyphs.directions[i]), sphere.directions[nearest]))) {
        nearest = d;
      }
    }
    const float share = std::max(values[nearest], 0.0f) / glyphs.greatest[0];
    EXPECT_NEAR(glyphs.amplitudes[i], 255.0f * share, 0.51f) << i;
  }
}

TEST(FieldGlyphs, what_cannot_be_shown_is_refused) {
  auto pool = ThreadPool::create(1).value();
  const Field tensors = make_tensor_field(test::grid(1, 1, 1), std::vector<float>{1},
                                          {std::vector<std::uint32_t>{0}, 6, std::vector<float>{1, 1, 1, 0, 0, 0}},
                                          TensorOrder::fsl, DirectionFrame::image)
                            .value();
  EXPECT_FALSE(glyphs_of_slice(tensors, 0, 0, *pool));
  EXPECT_FALSE(glyphs_of_slice(tensors, 3, 0, *pool));
  EXPECT_FALSE(glyphs_of_slice(tensors, 0, std::nan(""), *pool));
}

TEST(FieldGlyphs, bytes_hold_counts_and_then_everything_in_order) {
  FieldGlyphs glyphs;
  glyphs.directions = {{1, 0, 0}, {0, 1, 0}};
  glyphs.triangles = {{0, 1, 0}};
  glyphs.centres = {{4, 5, 6}};
  glyphs.greatest = {0.25f};
  glyphs.amplitudes = {255, 7};
  const auto bytes = glyph_bytes(glyphs);
  ASSERT_EQ(bytes.size(), 12 + 24 + 12 + 4 + 6 + 2);
  std::uint32_t counts[3];
  std::memcpy(counts, bytes.data(), sizeof counts);
  EXPECT_EQ(counts[0], 1);
  EXPECT_EQ(counts[1], 2);
  EXPECT_EQ(counts[2], 1);
  float centre[3];
  std::memcpy(centre, bytes.data() + 12 + 24, sizeof centre);
  EXPECT_EQ(centre[2], 6.0f);
  EXPECT_EQ(bytes.back(), std::byte{7});
}

}  // namespace
}  // namespace cingulum
