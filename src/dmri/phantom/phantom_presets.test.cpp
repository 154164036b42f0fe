// Where the bundles of the small phantoms lie, worked out from what each of them says of itself.
#include "dmri/phantom/phantom_presets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/each_device.hpp"

namespace cingulum::phantom_presets_tests {
namespace {

using numerics::Vec3d;
using std::numbers::pi;

// A bundle's centre line and the radii at its ends.
struct Tube {
  std::string name;
  Vec3d start, middle, end;
  double length_mm;
  double first_radius_mm, last_radius_mm;
};

void expect_tubes(const std::string& preset, const PresetOptions& options, const std::vector<Tube>& tubes) {
  SCOPED_TRACE(preset);
  ASSERT_OK_AND_ASSIGN(const PhantomModel model, phantom_preset(preset, options));
  ASSERT_EQ(model.bundles.size(), tubes.size());
  for (std::size_t i = 0; i < tubes.size(); ++i) {
    const Tube& tube = tubes[i];
    SCOPED_TRACE(tube.name);
    EXPECT_EQ(model.bundles[i].name, tube.name);
    ASSERT_OK_AND_ASSIGN(const Bundle bundle, Bundle::create(model.bundles[i]));
    EXPECT_NEAR(bundle.length(), tube.length_mm, 1e-6);
    const auto distance = [&](double share, Vec3d expected) {
      return numerics::length(bundle.fibre_point(share * bundle.length(), {0, 0}) - expected);
    };
    EXPECT_LT(distance(0, tube.start), 1e-6);
    EXPECT_LT(distance(0.5, tube.middle), 1e-6);
    EXPECT_LT(distance(1, tube.end), 1e-6);
    EXPECT_NEAR(bundle.radius_at(0), tube.first_radius_mm, 1e-9);
    EXPECT_NEAR(bundle.radius_at(bundle.length()), tube.last_radius_mm, 1e-9);
  }
}

Tube line(const std::string& name, Vec3d start, Vec3d end, double radius_mm) {
  return {name, start, (start + end) * 0.5, end, numerics::length(end - start), radius_mm, radius_mm};
}
Vec3d mirrored_in_y(Vec3d point) {
  return {point.x, -point.y, point.z};
}
Tube mirrored_in_y(const std::string& name, const Tube& tube) {
  return {name,           mirrored_in_y(tube.start), mirrored_in_y(tube.middle), mirrored_in_y(tube.end),
          tube.length_mm, tube.first_radius_mm,      tube.last_radius_mm};
}

TEST(PhantomPresets, straight_tubes_lie_about_the_origin) {
  expect_tubes("straight", {}, {line("straight", {-30, 0, 0}, {30, 0, 0}, 4)});
  Tube fan = line("fan", {-30, 0, 0}, {30, 0, 0}, 2);
  fan.last_radius_mm = 10;
  expect_tubes("fanning", {}, {fan});
  expect_tubes("crossing3", {},
               {line("along_x", {-30, 0, 0}, {30, 0, 0}, 5), line("along_y", {0, -30, 0}, {0, 30, 0}, 5),
                line("along_z", {0, 0, -22}, {0, 0, 22}, 5)});
  for (const auto& [name, degrees] :
       {std::pair("crossing90", 90.0), std::pair("crossing60", 60.0), std::pair("crossing45", 45.0),
        std::pair("crossing30", 30.0), std::pair("crossing", 50.0)}) {
    const Vec3d end = Vec3d{std::cos(degrees * pi / 360), std::sin(degrees * pi / 360), 0} * 30.0;
    const Tube first = line("first", end * -1.0, end, 5);
    expect_tubes(name, {.angle_deg = 50}, {first, mirrored_in_y("second", first)});
  }
}

TEST(PhantomPresets, arcs_are_a_quarter_circle_and_two_half_circles) {
  const double diagonal = 30 * std::numbers::sqrt2 / 2;
  expect_tubes("arcs", {},
               {{"arc30", {8, -22, -14}, {diagonal - 22, diagonal - 22, -14}, {-22, 8, -14}, 15 * pi, 4, 4},
                {"arc15", {-8, -21, 14}, {7, -6, 14}, {-8, 9, 14}, 15 * pi, 4, 4},
                {"arc8", {22, 12, -10}, {30, 12, -2}, {22, 12, 6}, 8 * pi, 3, 3}});
}

TEST(PhantomPresets, bent_tubes_are_the_circles_that_they_are_named_for) {
  const double diagonal = 15 * std::numbers::sqrt2 / 2;
  const double around = 1.25 * 2 * pi * 15, rise = 1.25 * 30;
  expect_tubes(
      "helix", {},
      {{"helix", {15, 0, -rise / 2}, {-diagonal, -diagonal, 0}, {0, 15, rise / 2}, std::hypot(around, rise), 4, 4}});
  for (const double gap : {0.0, 1.0, 7.0}) {
    // Arcs of 120 degrees; between the tubes, of radius 4 mm, is the gap.
    const double nearest = 4 + gap / 2, far = nearest + 30 * (1 - std::cos(pi / 3)), aside = 30 * std::sin(pi / 3);
    const Tube upper = {"upper", {-aside, far, 0}, {0, nearest, 0}, {aside, far, 0}, 20 * pi, 4, 4};
    expect_tubes("kissing", {.gap_mm = gap}, {upper, mirrored_in_y("lower", upper)});
    // 8 mm straight on, then 70 degrees of a circle of 20 mm.
    const double turn = 70 * pi / 180, length = 8 + 20 * turn, begin = gap / 2;
    const auto on_circle = [&](double angle) {
      return Vec3d{begin + 8 + 20 * std::sin(angle), 20 * (1 - std::cos(angle)), 0};
    };
    expect_tubes("deadend", {.gap_mm = gap},
                 {line("ending", {-32, 0, 0}, {-gap / 2, 0, 0}, 4),
                  {"beyond", {begin, 0, 0}, on_circle((length / 2 - 8) / 20), on_circle(turn), length, 4, 4}});
  }
  // Sixty degrees of a circle of 24 mm, the trunk of 10 mm, and sixty degrees out again.
  const double aside = 5 + 24 * std::sin(pi / 3), up = 24 * (1 - std::cos(pi / 3));
  const Tube upper = {"upper", {-aside, up, 0}, {0, 0, 0}, {aside, up, 0}, 16 * pi + 10, 4, 4};
  expect_tubes("bottleneck", {}, {upper, mirrored_in_y("lower", upper)});
  // The others pass where the commissure runs at 45 degrees.
  const double side = 25 * std::numbers::sqrt2 / 2, height = 8 - side;
  expect_tubes("commissural", {},
               {{"callosum", {-25, 0, 24}, {0, 0, -17}, {25, 0, 24}, 32 + 25 * pi, 5, 5},
                line("corticospinal_left", {-side, 0, -26}, {-side, 0, 26}, 4),
                line("slf_left", {-side, -32, height}, {-side, 32, height}, 4),
                line("corticospinal_right", {side, 0, -26}, {side, 0, 26}, 4),
                line("slf_right", {side, -32, height}, {side, 32, height}, 4)});
}

TEST(PhantomPresets, all_has_the_small_ones_in_tiles_of_80_mm) {
  ASSERT_OK_AND_ASSIGN(const PhantomModel all, phantom_preset("all", {.angle_deg = 50, .gap_mm = 3}));
  const std::vector<std::string> tiles = {"straight",  "arcs",    "helix",   "crossing90",  "crossing60", "crossing45",
                                          "crossing3", "kissing", "fanning", "commissural", "bottleneck", "deadend"};
  const std::vector<double> columns = {-120, -40, 40, 120}, rows = {-80, 0, 80};
  EXPECT_TRUE(all.extent_mm == (Vec3d{320, 240, 60}));
  std::size_t next = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const PhantomModel small, phantom_preset(tiles[i], {}));
    for (const BundleShape& shape : small.bundles) {
      ASSERT_LT(next, all.bundles.size());
      const BundleShape& placed = all.bundles[next++];
      EXPECT_EQ(placed.name, tiles[i] + "_" + shape.name);
      ASSERT_OK_AND_ASSIGN(const Bundle here, Bundle::create(placed));
      ASSERT_OK_AND_ASSIGN(const Bundle there, Bundle::create(shape));
      EXPECT_NEAR(here.length(), there.length(), 1e-9);
      for (const double share : {0.0, 0.3, 1.0}) {
        const double arc = share * there.length();
        const Vec3d shift = here.fibre_point(arc, {0, 0}) - there.fibre_point(arc, {0, 0});
        EXPECT_LT(numerics::length(shift - Vec3d{columns[i % 4], rows[i / 4], 0}), 1e-9) << placed.name;
        EXPECT_EQ(here.radius_at(arc), there.radius_at(arc));
      }
    }
  }
  EXPECT_EQ(next, all.bundles.size());
}

TEST(PhantomPresets, angles_and_gaps_are_accepted_up_to_their_limits) {
  for (const double angle : {5.0, 90.0}) EXPECT_TRUE(phantom_preset("crossing", {.angle_deg = angle})) << angle;
  for (const double angle : {4.99, 90.01}) {
    EXPECT_TRUE(testing::fails_with(phantom_preset("crossing", {.angle_deg = angle}), ErrorKind::invalid_argument,
                                    "5 to 90 are accepted"));
  }
  for (const double gap : {0.0, 10.0}) EXPECT_TRUE(phantom_preset("kissing", {.gap_mm = gap})) << gap;
  for (const double gap : {-0.01, 10.01}) {
    EXPECT_TRUE(testing::fails_with(phantom_preset("kissing", {.gap_mm = gap}), ErrorKind::invalid_argument,
                                    "0 to 10 are accepted"));
  }
}

TEST(PhantomPresets, regions_hold_their_surface_and_what_is_inside) {
  using Form = TissueRegion::Form;
  const Vec3d centre = {10, 20, 30};
  const Vec3d ends[] = {{0.5, 0, 0}, {0, 2, 0}, {0, 0, 4}};
  for (const Form form : {Form::box, Form::ellipsoid}) {
    const TissueRegion region = {Tissue::fluid, form, centre, {0.5, 2, 4}};
    EXPECT_TRUE(region.contains(centre));
    for (const Vec3d& end : ends) {
      for (const double side : {-1.0, 1.0}) {
        EXPECT_TRUE(region.contains(centre + end * side));
        EXPECT_FALSE(region.contains(centre + end * (side * 1.001)));
      }
    }
    EXPECT_EQ(region.contains(centre + Vec3d{0.45, 1.8, 3.6}), form == Form::box);
    EXPECT_TRUE(region.contains(centre + Vec3d{0.25, 1, 2}));
  }
  EXPECT_EQ(tissue_name(Tissue::air), "air");
  EXPECT_EQ(tissue_name(Tissue::grey_matter), "grey_matter");
  EXPECT_EQ(tissue_name(Tissue::fluid), "fluid");
}

}  // namespace
}  // namespace cingulum::phantom_presets_tests
