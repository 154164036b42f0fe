#include "dmri/phantom/phantom_bundle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "dmri/phantom/phantom_presets.hpp"
#include "support/each_device.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;
using std::numbers::pi;

BundleShape fan() {
  return {.name = "fan", .pieces = {line_piece({-30, 0, 0}, {30, 0, 0})}, .radius = {{0, 2}, {60, 10}}};
}

TEST(PhantomBundle, a_fan_points_away_from_its_apex) {
  ASSERT_OK_AND_ASSIGN(const Bundle bundle, Bundle::create(fan()));
  EXPECT_NEAR(bundle.radius_at(15), 4, 1e-12);
  EXPECT_NEAR(bundle.radius_slope_at(15), 8.0 / 60, 1e-12);
  // Lines with the same (u, w) meet where the radius would be 0: 15 mm before the start.
  const Vec3d apex{-45, 0, 0};
  const Vec3d point{0, 3, -2};
  const BundlePosition position = bundle.position(point);
  EXPECT_TRUE(position.inside);
  EXPECT_NEAR(dot(bundle.direction(point, position), numerics::normalise(point - apex)), 1, 1e-12);
  EXPECT_NEAR(bundle.volume_mm3(), pi * 60 * (4 + 20 + 100) / 3.0, 1e-6);
  EXPECT_NEAR(bundle.cross_section_mm2(), 4 * pi, 1e-9);
}

TEST(PhantomBundle, fibres_keep_their_place_and_run_along_the_direction_field) {
  for (const char* name : {"arcs", "helix", "fanning", "kissing", "brain"}) {
    ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset(name, {}));
    for (const BundleShape& shape : model.bundles) {
      ASSERT_OK_AND_ASSIGN(const Bundle bundle, Bundle::create(shape));
      for (const auto& [u, w] : {std::pair{0.0, 0.0}, {0.6, -0.3}, {-0.2, 0.85}}) {
        for (double arc = 1; arc < bundle.length() - 1; arc += 7.3) {
          const Vec3d point = bundle.fibre_point(arc, {u, w});
          const BundlePosition position = bundle.position(point);
          ASSERT_TRUE(position.inside) << shape.name << " at " << arc;
          EXPECT_NEAR(position.arc, arc, 1e-6) << shape.name;
          const auto section = bundle.section(point, position);
          EXPECT_NEAR(section.u, u, 1e-6);
          EXPECT_NEAR(section.w, w, 1e-6);
          const double h = 1e-3;
          const Vec3d step = bundle.fibre_point(arc + h, {u, w}) - bundle.fibre_point(arc - h, {u, w});
          EXPECT_NEAR(dot(numerics::normalise(step), bundle.direction(point, position)), 1, 1e-6)
              << shape.name << " at " << arc;
        }
      }
    }
  }
}

TEST(PhantomBundle, end_regions_are_the_last_millimetres_between_flat_ends) {
  ASSERT_OK_AND_ASSIGN(const Bundle bundle, Bundle::create(fan()));
  EXPECT_TRUE(bundle.position({-29.9, 1, 0}).at_start);
  EXPECT_TRUE(bundle.position({-26.01, 0, 0}).at_start);
  EXPECT_FALSE(bundle.position({-25.99, 0, 0}).at_start);
  EXPECT_FALSE(bundle.position({-30.01, 0, 0}).inside);
  EXPECT_TRUE(bundle.position({26.01, 9, 0}).at_end);
  EXPECT_FALSE(bundle.position({26.01, 9.6, 0}).inside);
  EXPECT_FALSE(bundle.position({30.01, 0, 0}).at_end);
}

TEST(PhantomBundle, the_index_knows_every_bundle_near_a_point) {
  ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset("brain", {}));
  std::vector<Bundle> bundles;
  for (const BundleShape& shape : model.bundles) {
    ASSERT_OK_AND_ASSIGN(Bundle bundle, Bundle::create(shape));
    bundles.push_back(std::move(bundle));
  }
  const BundleIndex index(bundles, 1.0);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> x(-81, 81), y(-106, 106), z(-76, 76);
  int inside = 0;
  for (int i = 0; i < 4000; ++i) {
    const Vec3d point{x(random), y(random), z(random)};
    for (std::uint32_t b = 0; b < bundles.size(); ++b) {
      const BundlePosition position = bundles[b].position(point);
      if (position.distance > position.radius + 1.0) continue;
      const BundleIndex::Entry* entry = index.entry(point, b);
      ASSERT_NE(entry, nullptr) << bundles[b].name();
      const CurveFoot foot = bundles[b].curve().foot(point, entry->first_sample, entry->last_sample);
      EXPECT_EQ(foot.distance, position.distance) << bundles[b].name();
      inside += position.inside ? 1 : 0;
    }
  }
  EXPECT_GT(inside, 400);
}

TEST(PhantomBundle, every_preset_is_sound_and_inside_its_box) {
  for (const std::string& name : phantom_preset_names()) {
    ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset(name, {}));
    EXPECT_FALSE(model.bundles.empty());
    for (const BundleShape& shape : model.bundles) {
      const auto bundle = Bundle::create(shape);
      ASSERT_OK(bundle);
      for (std::size_t i = 0; i < bundle->curve().sample_count(); ++i) {
        const Vec3d p = bundle->curve().sample(i);
        EXPECT_LT(std::abs(p.x), model.extent_mm.x / 2 - 3) << name << " " << shape.name;
        EXPECT_LT(std::abs(p.y), model.extent_mm.y / 2 - 3) << name << " " << shape.name;
        EXPECT_LT(std::abs(p.z), model.extent_mm.z / 2 - 3) << name << " " << shape.name;
      }
    }
  }
}

TEST(PhantomBundle, unsound_bundles_are_refused_by_name) {
  BundleShape shape = fan();
  shape.radius = {{0, 0}};
  EXPECT_TRUE(testing::fails_with(Bundle::create(shape), ErrorKind::invalid_argument, "bundle fan: a radius of 0 mm"));
  shape = fan();
  shape.name = "../fan";
  EXPECT_TRUE(testing::fails_with(Bundle::create(shape), ErrorKind::invalid_argument, "name"));
  shape = {.name = "tight", .pieces = {arc_piece({0, 0, 0}, {1, 0, 0}, {0, 1, 0}, 5, 0, pi)}, .radius = {{0, 5}}};
  EXPECT_TRUE(testing::fails_with(Bundle::create(shape), ErrorKind::invalid_argument, "curvature"));
}

TEST(PhantomBundle, bundles_of_kissing_and_deadend_are_as_far_apart_as_said) {
  for (const double gap : {0.0, 1.0, 2.0}) {
    ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset("kissing", {.gap_mm = gap}));
    ASSERT_OK_AND_ASSIGN(const Bundle upper, Bundle::create(model.bundles[0]));
    ASSERT_OK_AND_ASSIGN(const Bundle lower, Bundle::create(model.bundles[1]));
    EXPECT_NEAR(upper.position({0, 0, 0}).distance, 4 + gap / 2, 1e-10);
    EXPECT_NEAR(lower.position({0, 0, 0}).distance, 4 + gap / 2, 1e-10);
    EXPECT_NEAR(dot(upper.direction({0, 0, 0}, upper.position({0, 0, 0})),
                    lower.direction({0, 0, 0}, lower.position({0, 0, 0}))),
                1, 1e-12);
  }
}

}  // namespace
}  // namespace cingulum
