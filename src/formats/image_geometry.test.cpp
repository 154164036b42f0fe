#include "formats/image_geometry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cingulum {
namespace {

using numerics::Vec3d;

Affine some_affine() {
  Affine affine;
  affine.rows = {-1.5, 0.25, 0.1, 40, 0.2, 2, -0.3, -60, 0.05, 0.4, 2.5, 12};
  return affine;
}

void expect_near(Vec3d a, Vec3d b, double tolerance) {
  EXPECT_NEAR(a.x, b.x, tolerance);
  EXPECT_NEAR(a.y, b.y, tolerance);
  EXPECT_NEAR(a.z, b.z, tolerance);
}

TEST(Affine, apply_and_rotate_are_the_matrix_products) {
  const Affine affine = some_affine();
  const Vec3d point{1, 2, 3};
  EXPECT_EQ(affine.apply(point), (Vec3d{-1.5 + 0.5 + 0.1 * 3 + 40, 0.2 + 4 - 0.3 * 3 - 60, 0.05 + 0.8 + 7.5 + 12}));
  expect_near(affine.rotate(point), affine.apply(point) - Vec3d{40, -60, 12}, 1e-12);
}

TEST(Affine, inverse_undoes_it) {
  const Affine affine = some_affine();
  const auto inverse = affine.inverse();
  ASSERT_TRUE(inverse);
  const Vec3d point{10, -20, 30};
  expect_near(inverse->apply(affine.apply(point)), point, 1e-12);
  const Affine both = compose(*inverse, affine);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(both.rows[static_cast<std::size_t>(i)], Affine{}.rows[static_cast<std::size_t>(i)], 1e-12);
  }
}

TEST(Affine, compose_applies_the_second_first) {
  Affine shift, scale;
  shift.at(0, 3) = 5;
  scale.at(0, 0) = 2;
  EXPECT_EQ(compose(scale, shift).apply({1, 0, 0}), (Vec3d{12, 0, 0}));
  EXPECT_EQ(compose(shift, scale).apply({1, 0, 0}), (Vec3d{7, 0, 0}));
}

TEST(Affine, what_cannot_be_inverted_is_refused) {
  Affine flat;
  flat.at(2, 2) = 0;
  EXPECT_FALSE(flat.inverse());
  Affine broken;
  broken.at(1, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(broken.is_finite());
  EXPECT_FALSE(broken.inverse());
}

TEST(Affine, determinant_has_the_sign_of_the_handedness) {
  Affine affine;
  affine.at(0, 0) = -2;
  affine.at(1, 1) = 3;
  EXPECT_EQ(affine.determinant(), -6);
}

TEST(ImageGeometry, edges_are_the_lengths_of_the_columns) {
  ImageGeometry geometry;
  geometry.voxel_to_world.rows = {0, -3, 0, 0, 4, 0, 0, 0, 3, 0, 2, 0};
  EXPECT_EQ(geometry.voxel_mm(), (std::array<double, 3>{5, 3, 2}));
  EXPECT_EQ(geometry.smallest_edge_mm(), 2);
}

TEST(ImageGeometry, axis_codes_name_each_world_direction_once) {
  ImageGeometry geometry;
  EXPECT_EQ(geometry.axis_codes(), "RAS");
  geometry.voxel_to_world.rows = {-2, 0, 0, 0, 0, -2, 0, 0, 0, 0, 2, 0};
  EXPECT_EQ(geometry.axis_codes(), "LPS");
  geometry.voxel_to_world.rows = {0, 0, 2, 0, -2, 0, 0, 0, 0, -2, 0, 0};
  EXPECT_EQ(geometry.axis_codes(), "PIR");
  // Both of the first two axes are nearest to x; the nearer one has it.
  const double c = std::sqrt(0.5);
  geometry.voxel_to_world.rows = {c + 0.01, c + 0.02, 0, 0, c, -c, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(geometry.axis_codes(), "ARS");
}

TEST(ImageGeometry, voxels_are_counted_x_fastest) {
  ImageGeometry geometry;
  geometry.size = {4, 3, 2};
  EXPECT_EQ(geometry.voxel_count(), 24);
  EXPECT_EQ(voxel_index(geometry, 1, 2, 1), 1 + 4 * (2 + 3 * 1));
}

TEST(SameGrid, sizes_and_corners_are_compared_and_both_are_named) {
  ImageGeometry a, b;
  a.size = b.size = {100, 100, 50};
  EXPECT_TRUE(check_same_grid(a, "the mask", b, "the series"));
  // A turn so small that only the far corner tells.
  b.voxel_to_world.at(0, 1) = 0.00015;
  const Status turned = check_same_grid(a, "the mask", b, "the series");
  ASSERT_FALSE(turned);
  EXPECT_NE(turned.error().message().find("the mask and the series are not on the same grid"), std::string::npos);
  EXPECT_TRUE(check_same_grid(a, "the mask", b, "the series", 0.02));
  b = a;
  b.size = {100, 100, 51};
  const Status other = check_same_grid(a, "the mask", b, "the series");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(), "the mask has 100 x 100 x 50 voxels, the series has 100 x 100 x 51");
  b = a;
  b.voxel_to_world.at(2, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_same_grid(a, "a", b, "b"));
}

}  // namespace
}  // namespace cingulum
