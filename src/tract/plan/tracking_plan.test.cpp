#include "tract/plan/tracking_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace cingulum {
namespace {

ImageGeometry geometry_of(double x, double y, double z) {
  ImageGeometry geometry;
  geometry.size = {20, 30, 40};
  geometry.voxel_to_world.rows = {x, 0, 0, -3, 0, y, 0, 5, 0, 0, z, 7};
  return geometry;
}

TEST(tracking_plan, lengths_become_steps_along_each_axis_of_anisotropic_voxels) {
  TrackingOptions options;
  options.step_mm = 0.75;
  const auto plan = make_tracking_plan(options, geometry_of(1.5, 2, 3));
  ASSERT_TRUE(plan);
  EXPECT_FLOAT_EQ(plan->step_in_voxels[0], 0.5f);
  EXPECT_FLOAT_EQ(plan->step_in_voxels[1], 0.375f);
  EXPECT_FLOAT_EQ(plan->step_in_voxels[2], 0.25f);
  EXPECT_FLOAT_EQ(plan->voxels_per_mm[2], 1.0f / 3.0f);
  EXPECT_EQ(plan->size.y, 30u);
}

TEST(tracking_plan, defaults_come_from_the_smallest_voxel_edge_and_from_step_and_angle) {
  const auto plan = make_tracking_plan({}, geometry_of(3, 2, 2.5));
  ASSERT_TRUE(plan);
  EXPECT_FLOAT_EQ(plan->step_mm, 1.0f);
  EXPECT_EQ(plan->max_steps, 500u);
  EXPECT_FLOAT_EQ(plan->cos_max_angle, 0.5f);
  EXPECT_FLOAT_EQ(plan->cos_min_separation, static_cast<float>(std::sqrt(0.5)));
  EXPECT_EQ(plan->max_directions, most_initial_directions);
  EXPECT_FLOAT_EQ(plan->ptt_probe_length_mm, 4.0f);
  EXPECT_FLOAT_EQ(plan->ptt_probe_step_mm, 4.0f / 6.0f);
  EXPECT_FLOAT_EQ(plan->ptt_max_curvature, 1.0f);  // 2 sin(30 degrees) per step of 1 mm
  EXPECT_EQ(plan->ptt_exponent_is_one, 1u);
}

TEST(tracking_plan, the_arc_of_ptt_is_the_quotient_of_float32_that_kernels_would_form) {
  for (const std::uint32_t arcs : {1u, 3u, 7u, 20u}) {
    const auto plan =
        make_tracking_plan({.getter = Getter::ptt, .step_mm = 0.7, .ptt_substeps = arcs}, geometry_of(2, 2, 2));
    ASSERT_TRUE(plan);
    const float arc = plan->step_mm / static_cast<float>(arcs);
    EXPECT_EQ(std::memcmp(&plan->ptt_arc_mm, &arc, sizeof arc), 0);
  }
}

TEST(tracking_plan, ptt_reaches_as_far_as_its_probe_and_a_step_others_one_voxel) {
  EXPECT_EQ(make_tracking_plan({.getter = Getter::prob}, geometry_of(2, 2, 2))->reach_voxels, 1u);
  TrackingOptions options;
  options.getter = Getter::ptt;
  options.step_mm = 1;
  options.ptt_probe_length_mm = 4;
  options.ptt_probe_radius_mm = 0.5;
  // 5.5 mm are 2.75 of the smallest edges; one more for the cell and one for what rounding does.
  EXPECT_EQ(make_tracking_plan(options, geometry_of(3, 2, 2.5))->reach_voxels, 4u);
}

TEST(tracking_plan, a_length_that_is_a_multiple_of_the_step_gives_that_many_steps) {
  TrackingOptions options;
  options.step_mm = 0.1;
  const auto plan = make_tracking_plan(options, geometry_of(2, 2, 2));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->max_steps, 5000u);
  // As people type them: of these quotients of float64 many lie just below a whole number.
  std::uint32_t below = 0;
  for (std::uint32_t hundredths = 1; hundredths <= 100; ++hundredths) {
    for (std::uint32_t steps = 1; steps <= 600; steps += 7) {
      options.step_mm = hundredths / 100.0;
      options.max_length_mm = hundredths * steps / 100.0;
      options.min_length_mm = 0;
      below += std::floor(options.max_length_mm / options.step_mm) < steps ? 1 : 0;
      const auto exact = make_tracking_plan(options, geometry_of(2, 2, 2));
      ASSERT_TRUE(exact);
      ASSERT_EQ(exact->max_steps, steps) << options.max_length_mm << " / " << options.step_mm;
      // What is really shorter than the multiple has one step less.
      options.max_length_mm *= 1 - 1e-6;
      const auto shorter = make_tracking_plan(options, geometry_of(2, 2, 2));
      if (steps == 1) {
        ASSERT_FALSE(shorter);
      } else {
        ASSERT_EQ(shorter->max_steps, steps - 1) << options.max_length_mm << " / " << options.step_mm;
      }
    }
  }
  EXPECT_GT(below, 100u) << "no quotient that rounding matters for";
}

TEST(tracking_plan, equal_options_give_equal_bytes) {
  TrackingOptions options;
  options.random_key = 0x123456789abcdef0u;
  const auto a = make_tracking_plan(options, geometry_of(2, 2, 2));
  const auto b = make_tracking_plan(options, geometry_of(2, 2, 2));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(std::memcmp(&*a, &*b, sizeof(TrackingPlan)), 0);
  EXPECT_EQ(a->key.low, 0x9abcdef0u);
  EXPECT_EQ(a->key.high, 0x12345678u);
}

TEST(tracking_plan, every_refusal_names_argument_value_and_range) {
  struct Case {
    std::function<void(TrackingOptions&)> change;
    std::string argument;
    std::string value;
    std::string range;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {[](auto& o) { o.step_mm = -1; }, "step_size", "-1", "at least 0"},
      {[](auto& o) { o.step_mm = 101; }, "step_size", "101", "at most 100"},
      {[](auto& o) { o.max_angle_deg = 0; }, "max_angle", "0", "more than 0"},
      {[](auto& o) { o.max_angle_deg = 91; }, "max_angle", "91", "at most 90"},
      {[&](auto& o) { o.max_angle_deg = nan; }, "max_angle", "nan", "at most 90"},
      {[](auto& o) { o.min_length_mm = -2; }, "min_length", "-2", "at least 0"},
      {[](auto& o) { o.min_length_mm = 501; }, "min_length", "501", "500"},
      {[](auto& o) { o.max_length_mm = 0; }, "max_length", "0", "more than 0"},
      {[](auto& o) { o.max_length_mm = 0.5, o.min_length_mm = 0; }, "max_length", "0.5", "one step, 1 mm"},
      {[](auto& o) { o.max_length_mm = 1e6, o.step_mm = 1e-3; }, "max_length", "1000000", "16777216"},
      {[](auto& o) { o.stop_threshold = 1e31; }, "stop_threshold", "1e+31", "1e+30"},
      {[](auto& o) { o.relative_threshold = 1.5; }, "pmf_threshold", "1.5", "at most 1"},
      {[](auto& o) { o.absolute_threshold = -1; }, "pmf_threshold_absolute", "-1", "at least 0"},
      {[](auto& o) { o.relative_peak_threshold = -0.1; }, "relative_peak_threshold", "-0.1", "at least 0"},
      {[](auto& o) { o.min_separation_deg = 91; }, "min_separation_angle", "91", "at most 90"},
      {[](auto& o) { o.max_directions = 33; }, "max_directions", "33", "at most 32"},
      {[](auto& o) { o.angular_weight = 2; }, "angular_weight", "2", "at most 1"},
      {[](auto& o) { o.boot_attempts = 0; }, "boot_attempts", "0", "at least 1"},
      {[](auto& o) { o.boot_attempts = 65536; }, "boot_attempts", "65536", "at most 65535"},
      {[](auto& o) { o.boot_min_signal = 0; }, "min_signal", "0", "more than 0"},
      {[](auto& o) { o.ptt_probe_length_mm = -1; }, "ptt_probe_length", "-1", "at least 0"},
      {[](auto& o) { o.ptt_probe_radius_mm = -1; }, "ptt_probe_radius", "-1", "at least 0"},
      {[](auto& o) { o.ptt_probe_quality = 1; }, "ptt_probe_quality", "1", "at least 2"},
      {[](auto& o) { o.ptt_probe_count = 0; }, "ptt_probe_count", "0", "at least 1"},
      {[](auto& o) { o.ptt_probe_count = 4; }, "ptt_probe_count", "4", "ptt_probe_radius"},
      {[](auto& o) { o.ptt_exponent = 0; }, "ptt_exponent", "0", "more than 0"},
      {[](auto& o) { o.ptt_min_radius_mm = -1; }, "ptt_min_radius", "-1", "at least 0"},
      {[](auto& o) { o.ptt_tries = 65536; }, "ptt_tries", "65536", "at most 65535"},
      {[](auto& o) { o.ptt_substeps = 0; }, "ptt_substeps", "0", "at least 1"},
  };
  for (const Case& one : cases) {
    TrackingOptions options;
    one.change(options);
    const auto plan = make_tracking_plan(options, geometry_of(2, 2, 2));
    ASSERT_FALSE(plan) << one.argument << " " << one.value;
    EXPECT_EQ(plan.error().kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(plan.error().argument(), one.argument);
    const std::string& message = plan.error().message();
    EXPECT_EQ(message.find(one.argument + " " + one.value), 0u) << message;
    EXPECT_NE(message.find(one.range), std::string::npos) << message;
  }
}

TEST(tracking_plan, images_that_kernels_cannot_index_are_refused) {
  ImageGeometry geometry = geometry_of(2, 2, 2);
  geometry.size = {2048, 2048, 1024};
  EXPECT_FALSE(make_tracking_plan({}, geometry));
  geometry.size = {0, 2, 2};
  EXPECT_FALSE(make_tracking_plan({}, geometry));
  EXPECT_FALSE(make_tracking_plan({}, geometry_of(0, 2, 2)));
}

TEST(tracking_plan, names_of_getters_and_end_reasons_are_those_of_files_and_options) {
  EXPECT_EQ(getter_name(Getter::closest), "closest");
  EXPECT_EQ(getter_from_name("ptt").value(), Getter::ptt);
  EXPECT_FALSE(getter_from_name("eudx"));
  EXPECT_EQ(end_reason_name(EndReason::none), "none");
  EXPECT_EQ(end_reason_name(EndReason::stop_region), "stop_region");
  EXPECT_EQ(end_reason_name(EndReason::outside_mask), "outside_mask");
  EXPECT_EQ(end_reason_name(static_cast<EndReason>(200)), "unknown");
}

}  // namespace
}  // namespace cingulum
