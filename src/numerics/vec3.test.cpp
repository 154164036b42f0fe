#include "numerics/vec3.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cingulum::numerics {
namespace {

TEST(Vec3, dot_adds_x_y_z_in_sequence) {
  // (2^24 + 1) rounds to 2^24, then + 1 again does; any other order would give 2^24 + 2.
  EXPECT_EQ(dot(Vec3{0x1p24f, 1.0f, 1.0f}, Vec3{1.0f, 1.0f, 1.0f}), 0x1p24f);
  EXPECT_EQ(dot(Vec3{1.0f, 1.0f, 0x1p24f}, Vec3{1.0f, 1.0f, 1.0f}), 0x1.000002p24f);
}

TEST(Vec3, dot_rounds_every_product_by_itself) {
  // The exact square of 1 + 2^-12 needs 25 bits; a fused operation would keep the last one.
  const float a = 0x1.001p0f;
  EXPECT_EQ(dot(Vec3{a, -1.0f, 0.0f}, Vec3{a, 0x1.002p0f, 0.0f}), 0.0f);
}

TEST(Vec3, vectors_are_equal_when_all_three_components_are) {
  const Vec3 a{1, 2, 3};
  EXPECT_TRUE(a == (Vec3{1, 2, 3}));
  for (const Vec3 other : {Vec3{1, 2, 0}, Vec3{1, 0, 3}, Vec3{0, 2, 3}, Vec3{1, 0, 0}, Vec3{0, 2, 0}, Vec3{0, 0, 3}}) {
    EXPECT_FALSE(a == other);
    EXPECT_TRUE(a != other);
  }
}

TEST(Vec3, cross_of_two_axes_is_the_third) {
  EXPECT_EQ(cross(Vec3{1, 0, 0}, Vec3{0, 1, 0}), (Vec3{0, 0, 1}));
  EXPECT_EQ(cross(Vec3{0, 1, 0}, Vec3{0, 0, 1}), (Vec3{1, 0, 0}));
  EXPECT_EQ(cross(Vec3{0, 0, 1}, Vec3{1, 0, 0}), (Vec3{0, 1, 0}));
}

TEST(Vec3, normalise_gives_unit_length_at_every_scale) {
  for (int exponent = -59; exponent < 62; ++exponent) {
    const float scale = std::ldexp(1.0f, exponent);
    const Vec3 unit = normalise(Vec3{3 * scale, -4 * scale, 12 * scale} * 0.05f);
    ASSERT_NEAR(unit.x, 3.0 / 13, 1e-7) << exponent;
    ASSERT_NEAR(unit.y, -4.0 / 13, 1e-7) << exponent;
    ASSERT_NEAR(unit.z, 12.0 / 13, 1e-7) << exponent;
  }
}

TEST(Vec3, normalise_of_a_vanishing_vector_is_zero) {
  EXPECT_EQ(normalise(Vec3{0, 0, 0}), (Vec3{0, 0, 0}));
  EXPECT_EQ(normalise(Vec3{0x1p-61f, 0, 0}), (Vec3{0, 0, 0}));
  EXPECT_EQ(normalise(Vec3{0, 0x1p-60f, 0}), (Vec3{0, 1, 0}));
}

}  // namespace
}  // namespace cingulum::numerics
