#include "numerics/rotation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/philox.hpp"
#include "numerics/random.hpp"

namespace cingulum::numerics {
namespace {

constexpr float tolerance = 5e-7f;

Vec3 random_direction(std::uint32_t i) {
  const PhiloxBlock block = philox4x32_10({{i, 0, 0, 0}}, {1, 2});
  const NormalPair<float> a = normals_from_words(block.word[0], block.word[1]);
  const NormalPair<float> b = normals_from_words(block.word[2], block.word[3]);
  return normalise(Vec3{a.first, a.second, b.first});
}

Vec3d widen(Vec3 v) {
  return {v.x, v.y, v.z};
}

void expect_near(Vec3 a, Vec3 b, float allowed = tolerance) {
  EXPECT_NEAR(a.x, b.x, allowed);
  EXPECT_NEAR(a.y, b.y, allowed);
  EXPECT_NEAR(a.z, b.z, allowed);
}

void expect_orthonormal(const Frame& frame) {
  EXPECT_NEAR(dot(frame.tangent, frame.tangent), 1, tolerance);
  EXPECT_NEAR(dot(frame.normal, frame.normal), 1, tolerance);
  EXPECT_NEAR(dot(frame.tangent, frame.normal), 0, tolerance);
  expect_near(cross(frame.tangent, frame.normal), frame.binormal);
}

TEST(Rotation, any_perpendicular_is_a_unit_vector_at_a_right_angle) {
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const Vec3 v = random_direction(i);
    const Vec3 p = any_perpendicular(v);
    ASSERT_NEAR(dot(v, p), 0, tolerance);
    ASSERT_NEAR(dot(p, p), 1, tolerance);
  }
}

TEST(Rotation, any_perpendicular_crosses_with_the_first_of_the_shortest_axes) {
  EXPECT_EQ(any_perpendicular(Vec3{1, 0, 0}), (Vec3{0, 0, 1}));  // y and z are equal: x cross y
  EXPECT_EQ(any_perpendicular(Vec3{0, 1, 0}), (Vec3{0, 0, -1}));
  EXPECT_EQ(any_perpendicular(Vec3{0, 0, 1}), (Vec3{0, 1, 0}));
  expect_near(any_perpendicular(Vec3{1, 1, 1}), Vec3{0, 0.70710678f, -0.70710678f});
}

TEST(Rotation, a_quaternion_turns_as_rodrigues_formula_says) {
  for (std::uint32_t i = 0; i < 500; ++i) {
    const Vec3 axis = random_direction(2 * i);
    const Vec3 v = random_direction(2 * i + 1);
    const double angle = 0.02 * i - 5.0;
    const Vec3 turned = rotate(quaternion_about(axis, static_cast<float>(angle)), v);
    const auto c = static_cast<float>(std::cos(angle));
    const auto s = static_cast<float>(std::sin(angle));
    expect_near(turned, v * c + cross(axis, v) * s + axis * (dot(axis, v) * (1 - c)), 1e-6f);
  }
}

TEST(Rotation, a_product_of_quaternions_turns_by_the_second_then_the_first) {
  const Quaternion a = quaternion_about(Vec3{0, 0, 1}, 1.5707963f);
  const Quaternion b = quaternion_about(Vec3{1, 0, 0}, 1.5707963f);
  expect_near(rotate(multiply(a, b), Vec3{0, 1, 0}), rotate(a, rotate(b, Vec3{0, 1, 0})));
  expect_near(rotate(multiply(a, b), Vec3{0, 1, 0}), Vec3{0, 0, 1});
  expect_near(rotate(multiply(b, a), Vec3{0, 1, 0}), Vec3{-1, 0, 0});
}

TEST(Rotation, transport_turns_the_frame_about_the_common_normal_of_both_tangents) {
  for (std::uint32_t i = 0; i < 500; ++i) {
    const Vec3 from = random_direction(2 * i);
    const Vec3 to = random_direction(2 * i + 1);
    const Frame moved = transport_frame(frame_with_tangent(from), to);
    expect_orthonormal(moved);
    // Rodrigues' formula in double about from x to; its condition is that of 1 / (1 + cos).
    const Vec3d a = widen(from), b = widen(to), n = widen(frame_with_tangent(from).normal);
    const Vec3d axis = normalise(cross(a, b));
    const double c = dot(a, b), s = length(cross(a, b));
    const Vec3d turned = n * c + cross(axis, n) * s + axis * (dot(axis, n) * (1 - c));
    const Vec3 expected{static_cast<float>(turned.x), static_cast<float>(turned.y), static_cast<float>(turned.z)};
    expect_near(moved.normal, expected, static_cast<float>(1e-6 / (1 + c)));
  }
}

TEST(Rotation, transport_to_the_opposite_tangent_keeps_the_normal) {
  const Frame frame = frame_with_tangent(Vec3{0.6f, 0.0f, 0.8f});
  const Frame moved = transport_frame(frame, -frame.tangent);
  expect_near(moved.normal, frame.normal);
  expect_near(moved.binormal, -frame.binormal);
}

TEST(Rotation, transport_around_a_closed_octant_turns_the_normal_by_its_solid_angle) {
  // Gauss and Bonnet: carried around a spherical triangle a vector turns by the triangle's area, here pi / 2.
  Frame frame{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const std::vector<Vec3> corners{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}};
  for (std::size_t side = 0; side + 1 < corners.size(); ++side) {
    for (int i = 1; i <= 30; ++i) {
      const double t = i * M_PI / 60;
      frame = transport_frame(frame, normalise(corners[side] * static_cast<float>(std::cos(t)) +
                                               corners[side + 1] * static_cast<float>(std::sin(t))));
    }
  }
  expect_near(frame.tangent, Vec3{1, 0, 0}, 1e-6f);
  expect_near(frame.normal, Vec3{0, 0, 1}, 1e-5f);
}

TEST(Rotation, propagation_follows_a_circle_of_the_given_curvature) {
  // In the plane of tangent and normal, radius 2, a quarter turn.
  const Frame start{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const FrameStep step = propagate_frame(start, 0.5f, 0.0f, static_cast<float>(M_PI));
  expect_near(step.displacement, Vec3{2, 2, 0}, 1e-6f);
  expect_near(step.frame.tangent, Vec3{0, 1, 0});
  expect_near(step.frame.normal, Vec3{-1, 0, 0});
  expect_near(step.frame.binormal, Vec3{0, 0, 1});
}

TEST(Rotation, propagation_in_many_small_steps_ends_where_one_long_step_ends) {
  const Frame start = frame_with_tangent(random_direction(77));
  const FrameStep whole = propagate_frame(start, 0.7f, -0.4f, 1.5f);
  Frame frame = start;
  Vec3 travelled{0, 0, 0};
  for (int i = 0; i < 50; ++i) {
    const FrameStep part = propagate_frame(frame, 0.7f, -0.4f, 0.03f);
    travelled = travelled + part.displacement;
    frame = part.frame;
    expect_orthonormal(frame);
  }
  expect_near(travelled, whole.displacement, 3e-6f);
  expect_near(frame.tangent, whole.frame.tangent, 3e-6f);
  expect_near(frame.normal, whole.frame.normal, 3e-6f);
}

TEST(Rotation, vanishing_curvature_is_a_straight_line) {
  const Frame start = frame_with_tangent(Vec3{0, 0, 1});
  const FrameStep step = propagate_frame(start, 0.0f, 5e-5f, 0.25f);
  EXPECT_EQ(step.displacement, (Vec3{0, 0, 0.25f}));
  EXPECT_EQ(step.frame.tangent, start.tangent);
}

}  // namespace
}  // namespace cingulum::numerics
