#include "dmri/phantom/phantom_bundle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <vector>

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

TEST(PhantomBundle, the_index_is_as_fine_far_from_the_origin_as_at_it) {
  const auto index_at = [](Vec3d origin) {
    const BundleShape line{.name = "line", .pieces = {line_piece(origin, origin + Vec3d{8, 0, 0})}, .radius = {{0, 2}}};
    const std::vector<Bundle> bundles = {Bundle::create(line).value()};
    return BundleIndex(bundles, 1.0);
  };
  const BundleIndex near = index_at({0, 0, 0});
  for (const double side : {-1.0, 1.0}) {
    // A power of two, so that sums are exact.
    const Vec3d far = Vec3d{4096, 4096, 4096} * side;
    const BundleIndex index = index_at(far);
    int in_reach = 0;
    for (double x = -7; x <= 15; x += 1) {
      for (double y = -7; y <= 7; y += 1) {
        for (double z = -7; z <= 7; z += 1) {
          const bool found = near.entry({x, y, z}, 0) != nullptr;
          ASSERT_EQ(index.entry(far + Vec3d{x, y, z}, 0) != nullptr, found) << side << " " << x << " " << y << " " << z;
          in_reach += found ? 1 : 0;
        }
      }
    }
    EXPECT_GT(in_reach, 0);
    EXPECT_LT(in_reach, 23 * 15 * 15 / 2);
  }
}

// All numbers are exact: a line of 8 mm, a reach of 2 + 1 + 0.5 mm around it, cells of 4 mm.
TEST(PhantomBundle, the_index_ends_with_its_last_cell_along_every_axis) {
  const BundleShape line{.name = "line", .pieces = {line_piece({0, 0, 0}, {8, 0, 0})}, .radius = {{0, 2}}};
  const std::vector<Bundle> bundles = {Bundle::create(line).value()};
  const BundleIndex index(bundles, 1.0);
  EXPECT_EQ(index.margin_mm(), 1.0);
  const Vec3d middle{4, 0, 0};
  const double low[3] = {-3.5, -3.5, -3.5}, high[3] = {12.5, 4.5, 4.5};
  const auto near = [&](int axis, double x) {
    Vec3d point = middle;
    (axis == 0 ? point.x : axis == 1 ? point.y : point.z) = x;
    return index.near(point).size();
  };
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(near(axis, low[axis]), 1U) << axis;
    EXPECT_EQ(near(axis, std::nextafter(low[axis], -100)), 0U) << axis;
    EXPECT_EQ(near(axis, std::nextafter(high[axis], -100)), 1U) << axis;
    EXPECT_EQ(near(axis, high[axis]), 0U) << axis;
    EXPECT_EQ(near(axis, std::numeric_limits<double>::quiet_NaN()), 0U) << axis;
  }
  EXPECT_EQ(index.entry(middle, 0), index.near(middle).data());
  EXPECT_EQ(index.entry(middle, 1), nullptr);
  EXPECT_TRUE(BundleIndex({}, 1.0).near(middle).empty());
}

// A cell has the samples that reach into it, from the first to the last, and no others.
TEST(PhantomBundle, a_cell_of_the_index_has_the_samples_in_reach) {
  const BundleShape line{.name = "line", .pieces = {line_piece({0, 0, 0}, {80, 0, 0})}, .radius = {{0, 2}, {80, 4}}};
  const std::vector<Bundle> bundles = {Bundle::create(line).value()};
  const BundleIndex index(bundles, 1.0);
  const auto& curve = bundles[0].curve();
  constexpr double low_mm = -5.5, cell_mm = 4;  // of the largest radius and of the grid
  int cells = 0;
  for (int cell = 0; cell < 22; ++cell) {
    const double begin = low_mm + cell_mm * cell, end = begin + cell_mm;
    const auto found = index.near({begin + 1, 0, 0});
    // Rounding decides about a sample whose reach ends at the edge of the cell.
    std::vector<std::uint32_t> surely, perhaps;
    for (std::uint32_t i = 0; i < curve.sample_count(); ++i) {
      const double x = curve.sample(i).x;
      const double beyond =
          std::max({begin - x, x - end, 0.0}) - (bundles[0].radius_at(curve.sample_arc(i)) + 1.0 + 0.5);
      if (beyond < -1e-9) surely.push_back(i);
      if (beyond < 1e-9) perhaps.push_back(i);
    }
    ASSERT_GE(found.size(), surely.empty() ? 0U : 1U) << cell;
    ASSERT_LE(found.size(), perhaps.empty() ? 0U : 1U) << cell;
    if (surely.empty()) continue;
    ++cells;
    EXPECT_TRUE(found[0].first_sample == surely.front() || found[0].first_sample == perhaps.front()) << cell;
    EXPECT_TRUE(found[0].last_sample == surely.back() || found[0].last_sample == perhaps.back()) << cell;
  }
  EXPECT_GT(cells, 18);
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

// Scores of today are compared with those of yesterday: the brain is the same brain. Lengths and volumes as they are,
// the right side a mirror image of the left.
TEST(PhantomBundle, the_brain_has_the_bundles_and_tissues_of_the_table) {
  ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset("brain", {}));
  struct Row {
    const char* name;
    std::size_t pieces;
    double length_mm;
    double volume_ml;
  };
  const Row rows[] = {
      {"callosum_genu", 6, 122.0760, 28.7845},
      {"callosum_prefrontal", 6, 117.2623, 30.3301},
      {"callosum_premotor", 6, 106.5515, 27.1570},
      {"callosum_motor", 6, 102.5175, 25.7284},
      {"callosum_sensory", 6, 102.4517, 25.6984},
      {"callosum_parietal", 6, 107.2473, 27.1698},
      {"callosum_occipital", 6, 118.1914, 24.9138},
      {"callosum_temporal", 6, 117.3098, 17.4272},
      {"anterior_commissure", 6, 128.4820, 6.6174},
      {"corticospinal_left", 5, 119.2965, 24.0675},
      {"frontopontine_left", 5, 128.6617, 22.8898},
      {"parietopontine_left", 5, 105.9761, 15.5872},
      {"thalamic_anterior_left", 3, 86.4585, 22.6189},
      {"thalamic_superior_left", 3, 57.6941, 14.4875},
      {"thalamic_posterior_left", 3, 59.7245, 12.4412},
      {"optic_radiation_left", 5, 100.9178, 12.2360},
      {"cerebellar_left", 3, 58.2253, 8.0846},
      {"cingulum_left", 8, 205.4009, 14.8464},
      {"slf_superior_left", 4, 128.4025, 24.8949},
      {"slf_middle_left", 4, 115.7978, 22.4902},
      {"arcuate_left", 6, 159.2191, 26.8779},
      {"inferior_fronto_occipital_left", 5, 167.9363, 25.3041},
      {"inferior_longitudinal_left", 4, 118.6771, 21.0347},
      {"middle_longitudinal_left", 3, 101.1735, 17.6493},
      {"uncinate_left", 4, 103.9774, 14.9278},
      {"frontal_aslant_left", 3, 78.2558, 12.2351},
      {"vertical_occipital_left", 3, 59.6311, 8.6888},
      {"fornix_left", 6, 97.3500, 2.0673},
  };
  std::map<std::string, const BundleShape*> by_name;
  for (const BundleShape& shape : model.bundles) by_name[shape.name] = &shape;
  EXPECT_EQ(by_name.size(), model.bundles.size());
  for (const Row& row : rows) {
    ASSERT_TRUE(by_name.contains(row.name)) << row.name;
    ASSERT_OK_AND_ASSIGN(const Bundle bundle, Bundle::create(*by_name[row.name]));
    EXPECT_EQ(bundle.shape().pieces.size(), row.pieces) << row.name;
    EXPECT_NEAR(bundle.length(), row.length_mm, 1e-3) << row.name;
    EXPECT_NEAR(bundle.volume_mm3() / 1000, row.volume_ml, 1e-3) << row.name;
  }
  // Short bundles, and the sides.
  std::size_t sides = 0, short_ones = 0;
  double short_length = 0;
  for (const auto& [name, shape] : by_name) {
    if (!name.ends_with("_left")) continue;
    ++sides;
    const std::string right_name = name.substr(0, name.size() - 5) + "_right";
    ASSERT_TRUE(by_name.contains(right_name)) << right_name;
    ASSERT_OK_AND_ASSIGN(const Bundle left, Bundle::create(*shape));
    ASSERT_OK_AND_ASSIGN(const Bundle right, Bundle::create(*by_name[right_name]));
    ASSERT_EQ(left.curve().sample_count(), right.curve().sample_count()) << name;
    for (std::size_t i = 0; i < left.curve().sample_count(); ++i) {
      const Vec3d a = left.curve().sample(i), b = right.curve().sample(i);
      EXPECT_LT(numerics::length(Vec3d{-a.x, a.y, a.z} - b), 1e-9) << name;
    }
    EXPECT_NEAR(left.volume_mm3(), right.volume_mm3(), 1e-6) << name;
    if (!name.starts_with("short_")) continue;
    ++short_ones;
    short_length += left.length();
  }
  EXPECT_EQ(sides, 60U);
  EXPECT_EQ(short_ones, 41U);
  EXPECT_NEAR(short_length, 1918.05, 1e-2);
  EXPECT_EQ(model.bundles.size(), 9 + 2 * sides);

  // Its own tissues, not the box of the others.
  using Form = TissueRegion::Form;
  const auto fluid = [](Vec3d centre, Vec3d half) {
    return TissueRegion{Tissue::fluid, Form::ellipsoid, centre, half};
  };
  const std::vector<TissueRegion> regions = {{Tissue::grey_matter, Form::ellipsoid, {0, 0, 0}, {75, 95, 69}},
                                             fluid({-9, 0, 13}, {5, 30, 6}),
                                             fluid({-18, -36, 4}, {5, 14, 7}),
                                             fluid({-30, -16, -14}, {4, 14, 4}),
                                             fluid({9, 0, 13}, {5, 30, 6}),
                                             fluid({18, -36, 4}, {5, 14, 7}),
                                             fluid({30, -16, -14}, {4, 14, 4}),
                                             fluid({0, -6, -2}, {2.5, 14, 9}),
                                             fluid({0, 0, 52}, {1.5, 90, 22}),
                                             fluid({0, 72, 8}, {1.5, 24, 30})};
  EXPECT_TRUE(model.regions == regions);
}

TEST(PhantomBundle, presets_without_tissues_of_their_own_get_a_box_of_grey_matter) {
  ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset("straight", {}));
  const Vec3d half = model.extent_mm * 0.5;
  const std::vector<TissueRegion> box = {{.tissue = Tissue::grey_matter, .half = {half.x - 3, half.y - 3, half.z - 3}}};
  EXPECT_TRUE(model.regions == box);
  EXPECT_TRUE(testing::fails_with(phantom_preset("cube", {}), ErrorKind::invalid_argument, "no phantom 'cube'"));
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

TEST(PhantomBundle, radii_are_accepted_up_to_their_limits_and_their_knots_ascend) {
  const auto with_radius = [](std::vector<RadiusKnot> radius) {
    BundleShape shape = fan();
    shape.radius = std::move(radius);
    return Bundle::create(shape).has_value();
  };
  EXPECT_TRUE(with_radius({{0, 0.1}}));
  EXPECT_FALSE(with_radius({{0, 0.0999}}));
  EXPECT_TRUE(with_radius({{0, 1000}}));
  EXPECT_FALSE(with_radius({{0, 1000.1}}));
  EXPECT_FALSE(with_radius({}));
  EXPECT_TRUE(with_radius({{0, 2}, {30, 2}, {60, 2}}));
  EXPECT_FALSE(with_radius({{0, 2}, {30, 2}, {30, 2}}));
  EXPECT_FALSE(with_radius({{0, 2}, {std::numeric_limits<double>::infinity(), 2}}));
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
