#include "dmri/phantom/phantom_curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;
using std::numbers::pi;

TEST(PhantomCurve, a_line_has_its_length_and_feet) {
  ASSERT_OK_AND_ASSIGN(const Curve line, Curve::create({line_piece({-10, 1, 2}, {20, 1, 2})}));
  EXPECT_NEAR(line.length(), 30, 1e-12);
  const CurveFoot foot = line.foot({3.3, 4, 6});
  EXPECT_NEAR(foot.distance, 5, 1e-12);
  EXPECT_NEAR(line.arc(foot), 13.3, 1e-12);
  EXPECT_FALSE(foot.beyond);
  EXPECT_TRUE(line.foot({-10.001, 1, 2}).beyond);
  EXPECT_TRUE(line.foot({20.001, 1, 2}).beyond);
  EXPECT_FALSE(line.foot({20, 1, 2}).beyond);
}

TEST(PhantomCurve, a_circle_has_its_curvature_and_feet) {
  const double r = 15;
  ASSERT_OK_AND_ASSIGN(const Curve arc, Curve::create({arc_piece({1, 2, 3}, {1, 0, 0}, {0, 0, 1}, r, -pi / 2, pi)}));
  EXPECT_NEAR(arc.length(), pi * r, 1e-10);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> angle(-1.5, 1.5), radius(5, 25), height(-4, 4);
  for (int i = 0; i < 1000; ++i) {
    const double a = angle(random), q = radius(random), h = height(random);
    const Vec3d point{1 + q * std::cos(a), 2 + h, 3 + q * std::sin(a)};
    const CurveFoot foot = arc.foot(point);
    EXPECT_NEAR(foot.distance, std::hypot(q - r, h), 1e-10);
    EXPECT_NEAR(arc.arc(foot), (a + pi / 2) * r, 1e-8);
    const CurveState state = arc.state(foot);
    EXPECT_NEAR(length(state.curvature), 1 / r, 1e-12);
    EXPECT_NEAR(dot(state.tangent, Vec3d{-std::sin(a), 0, std::cos(a)}), 1, 1e-12);
    EXPECT_NEAR(arc.arc(arc.at_arc(arc.arc(foot))), arc.arc(foot), 1e-9);
  }
}

TEST(PhantomCurve, a_helix_has_its_length_and_total_torsion) {
  const double r = 15, pitch = 30, turns = 1.25, slope = pitch / (2 * pi);
  ASSERT_OK_AND_ASSIGN(
      const Curve helix,
      Curve::create({arc_piece({0, 0, 0}, {1, 0, 0}, {0, 1, 0}, r, 0, turns * 2 * pi, {0, 0, turns * pitch})}));
  EXPECT_NEAR(helix.length(), turns * 2 * pi * std::hypot(r, slope), 1e-9);
  // Against the Frenet frame the rotation-minimising one turns back by the integral of the torsion.
  const double torsion = slope / (r * r + slope * slope);
  const auto frenet_angle = [&](double arc) {
    const CurveFoot foot = helix.at_arc(arc);
    const CurveState state = helix.state(foot);
    const Vec3d principal = numerics::normalise(state.curvature);
    const Vec3d normal = helix.normal(foot);
    EXPECT_NEAR(dot(normal, state.tangent), 0, 1e-12);
    return std::atan2(dot(normal, cross(state.tangent, principal)), dot(normal, principal));
  };
  const double turned = frenet_angle(20) - frenet_angle(0);
  EXPECT_NEAR(std::remainder(turned + torsion * 20, 2 * pi), 0, 1e-6);
}

TEST(PhantomCurve, a_spline_passes_its_points_with_continuous_curvature) {
  const std::vector<Vec3d> points = {{0, 0, 0}, {10, 5, 1}, {22, 4, 8}, {30, -6, 12}, {33, -20, 9}};
  const auto pieces = spline_pieces(points);
  ASSERT_EQ(pieces.size(), 4u);
  ASSERT_OK_AND_ASSIGN(const Curve curve, Curve::create(pieces));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double arc = i == 0 ? 0 : curve.piece_end_arc(i - 1);
    EXPECT_NEAR(length(curve.state(curve.at_arc(arc)).position - points[i]), 0, 1e-9);
    if (i == 0 || i + 1 == points.size()) continue;
    const CurveState before = curve.state(curve.at_arc(arc - 1e-7));
    const CurveState after = curve.state(curve.at_arc(arc + 1e-7));
    EXPECT_NEAR(length(before.curvature - after.curvature), 0, 1e-6);
  }
}

TEST(PhantomCurve, the_foot_is_the_nearest_of_dense_points) {
  const std::vector<Vec3d> points = {{-30, 0, 0}, {-10, 15, 5}, {5, -10, 8}, {25, 0, -5}, {20, 20, -15}};
  ASSERT_OK_AND_ASSIGN(const Curve curve, Curve::create(spline_pieces(points)));
  std::vector<Vec3d> dense;
  constexpr int count = 20000;
  for (int i = 0; i <= count; ++i) dense.push_back(curve.state(curve.at_arc(curve.length() * i / count)).position);
  std::mt19937 random(11);
  std::uniform_real_distribution<double> place(-35, 35);
  for (int i = 0; i < 300; ++i) {
    const Vec3d point{place(random), place(random), place(random)};
    double nearest = 1e9;
    for (const Vec3d& p : dense) nearest = std::min(nearest, length(p - point));
    EXPECT_NEAR(curve.foot(point).distance, nearest, 1e-3);
  }
}

TEST(PhantomCurve, unsound_pieces_are_refused) {
  EXPECT_TRUE(testing::fails_with(Curve::create({}), ErrorKind::invalid_argument, "0 pieces"));
  EXPECT_TRUE(testing::fails_with(Curve::create({line_piece({0, 0, 0}, {5, 0, 0}), line_piece({6, 0, 0}, {9, 0, 0})}),
                                  ErrorKind::invalid_argument, "does not continue"));
  EXPECT_TRUE(testing::fails_with(Curve::create({line_piece({0, 0, 0}, {5, 0, 0}), line_piece({5, 0, 0}, {5, 5, 0})}),
                                  ErrorKind::invalid_argument, "piece 1 does not continue piece 0"));
  EXPECT_TRUE(testing::fails_with(Curve::create({line_piece({0, 0, 0}, {5, 0, 0}), line_piece({5, 0, 0}, {8, 0, 0}),
                                                 line_piece({8, 1, 0}, {9, 1, 0})}),
                                  ErrorKind::invalid_argument, "piece 2 does not continue piece 1"));
  EXPECT_TRUE(
      testing::fails_with(Curve::create({line_piece({0, 0, 0}, {NAN, 0, 0})}), ErrorKind::invalid_argument, "finite"));
  EXPECT_TRUE(
      testing::fails_with(Curve::create({line_piece({0, 0, 0}, {0, 0, 0})}), ErrorKind::invalid_argument, "length"));
}

}  // namespace
}  // namespace cingulum
