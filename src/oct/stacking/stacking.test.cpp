#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "oct/stacking/stack_decisions.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/volume/slab_volume.hpp"
#include "support/plain_simulation.hpp"

namespace cingulum::oct {
namespace stacking_tests {

constexpr VoxelSize ten_um = {10, 10, 10};

SliceRegistration registration_of(double rotation, double row, double column, double interval, double confidence) {
  SliceRegistration found;
  found.rigid.rotation_deg = rotation;
  found.rigid.shift_px = {row, column};
  found.interval_planes = interval;
  found.z_ncc = 0.8;
  found.confidence = confidence;
  return found;
}

struct Series {
  std::vector<SliceFacts> slices;
  std::vector<SliceShift> shifts;
  std::vector<std::optional<SliceRegistration>> registrations;
  StackOptions options;

  explicit Series(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      slices.push_back({i, 30, 40, 50, 20});
      if (i == 0) continue;
      shifts.push_back({.fixed = i - 1, .moving = i, .shift_mm = {0, 0}});
      registrations.emplace_back(registration_of(0, 0, 0, 20, 0.9));
    }
    options.rotation_window = 0;
  }
  [[nodiscard]] Result<StackPlan> decide() const {
    return decide_stack(slices, shifts, registrations, ten_um, options);
  }
};

HostVolume box_of(HostVolume volume, const PlaneBox& box) {
  HostVolume part(box.planes, box.rows, volume.columns);
  EXPECT_TRUE(SlabVolume(volume).read_box(box, part.values));
  return part;
}

// A box of the volume, which held something else before.
Result<HostVolume> stacked_box(const StackPlan& plan, const SliceSource& source, const PlaneBox& box,
                               ThreadPool* pool = nullptr, std::size_t rows_at_once = rows_at_a_time) {
  HostVolume made(box.planes, box.rows, plan.columns);
  std::ranges::fill(made.values, 77.0f);
  CGL_TRY(stack_box(plan, source, box, made.values, pool, rows_at_once));
  return made;
}

// The whole volume.
Result<HostVolume> stacked(StackPlan& plan, const SliceSource& source, const StackOptions& options,
                           ThreadPool* pool = nullptr) {
  CGL_TRY(find_gains(plan, source, options, pool));
  return stacked_box(plan, source, {0, plan.planes, 0, plan.rows}, pool);
}

TEST(OctStackDecisions, a_plain_series_lies_on_top_of_each_other) {
  const auto plan = Series(4).decide();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->planes, 90u);
  EXPECT_EQ(plan->rows, 40u);
  EXPECT_EQ(plan->columns, 50u);
  EXPECT_EQ(plan->slices[3].start_plane, 60.0);
  EXPECT_EQ(plan->slices[3].transform, TransformUse::full);
}

TEST(OctStackDecisions, the_canvas_holds_all_slices_whatever_their_sizes) {
  Series series(3);
  series.shifts[0].shift_mm = {-0.1, 0.05};  // slice 1 lies 10 rows further and 5 columns before
  series.registrations[0] = registration_of(0, 10, -5, 20, 0.9);
  series.slices[2].columns = 80;
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->slices[0].motor_px[1], 5, 1e-9);
  EXPECT_NEAR(plan->slices[1].motor_px[0], 10, 1e-9);
  EXPECT_NEAR(plan->slices[1].motor_px[1], 0, 1e-9);
  EXPECT_NEAR(plan->slices[1].shift_px[0], 0, 1e-9);
  EXPECT_EQ(plan->rows, 50u);
  EXPECT_EQ(plan->columns, 80u);
}

TEST(OctStackDecisions, registrations_are_used_as_far_as_they_are_believed) {
  Series series(6);
  series.registrations[0] = registration_of(1, 2, 3, 20, 0.9);
  series.registrations[1] = registration_of(1, 2, 3, 20, 0.5);
  series.registrations[2] = registration_of(1, 2, 3, 20, 0.2);
  series.registrations[3] = registration_of(1, 19.5, 0, 20, 0.9);
  series.registrations[4] = std::nullopt;
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  const std::vector<TransformUse> expected = {TransformUse::none,          TransformUse::full,
                                              TransformUse::rotation_only, TransformUse::none,
                                              TransformUse::rotation_only, TransformUse::none};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(plan->slices[i].transform, expected[i]) << i;
  EXPECT_NEAR(plan->slices[5].rotation_deg, 3, 1e-9);
  EXPECT_NEAR(plan->slices[5].shift_px[0], 2, 1e-9);
  EXPECT_NEAR(plan->slices[5].shift_px[1], 3, 1e-9);
  EXPECT_NE(plan->slices[3].reason.find("0.20 below 0.3"), std::string::npos);
  EXPECT_NE(plan->slices[4].reason.find("ran into the limit"), std::string::npos);
  EXPECT_NE(plan->slices[5].reason.find("not registered"), std::string::npos);
}

TEST(OctStackDecisions, transforms_are_composed) {
  Series series(3);
  series.options.max_rotation_deg = 120;
  series.registrations[0] = registration_of(90, 4, 0, 20, 0.9);
  series.registrations[1] = registration_of(0, 0, 3, 20, 0.9);
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  // A step of 3 columns in a slice that is turned by 90 degrees goes 3 rows up.
  EXPECT_NEAR(plan->slices[2].shift_px[0], 4 - 3, 1e-9);
  EXPECT_NEAR(plan->slices[2].shift_px[1], 0, 1e-9);
}

TEST(OctStackDecisions, depth_is_kept_in_fractions_and_does_not_drift) {
  Series series(11);
  for (auto& found : series.registrations) found->interval_planes = 20.4;
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->slices[10].start_plane, 204, 1e-9);
  EXPECT_EQ(plan->planes, 234u);
}

TEST(OctStackDecisions, a_doubtful_interval_far_from_the_others_is_replaced_by_what_its_neighbours_measured) {
  Series series(6);
  const std::array<double, 5> measured = {20, 21, 40, 19, 20};
  for (std::size_t i = 0; i < 5; ++i) series.registrations[i]->interval_planes = measured[i];
  series.registrations[2]->confidence = 0.5;
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->slices[3].interval_planes, 20.0);
  EXPECT_NE(plan->slices[3].reason.find("40.0 replaced by 20.0"), std::string::npos);
  series.registrations[2]->confidence = 0.9;  // a sure one stays, however far
  EXPECT_EQ(series.decide()->slices[3].interval_planes, 40.0);
}

TEST(OctStackDecisions, drift_is_cut) {
  Series series(6);
  for (auto& found : series.registrations) found->rigid.shift_px = {15, 0};
  const auto plan = series.decide();
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->slices[2].shift_px[0], 30, 1e-9);
  EXPECT_NEAR(plan->slices[5].shift_px[0], 50, 1e-9);
}

TEST(OctStackDecisions, what_does_not_pair_is_refused_by_name) {
  Series series(3);
  series.shifts[1].moving = 7;
  EXPECT_NE(series.decide().error().message().find("no pair of slices 1 and 2"), std::string::npos);
  Series doubled(3);
  doubled.slices[2].id = 1;
  EXPECT_NE(doubled.decide().error().message().find("slice 1 comes after slice 1"), std::string::npos);
  Series short_one(3);
  short_one.registrations.pop_back();
  EXPECT_FALSE(short_one.decide());
}

TEST(OctStackDecisions, gains_follow_the_ratios_and_have_mean_one) {
  auto plan = Series(3).decide();
  ASSERT_TRUE(plan);
  decide_gains(std::array{1.5, 8.0}, {}, *plan);
  EXPECT_NEAR(plan->slices[1].gain / plan->slices[0].gain, 1.5, 1e-9);
  EXPECT_NEAR(plan->slices[2].gain / plan->slices[1].gain, 2.0, 1e-9);  // limited
  EXPECT_NEAR(plan->slices[0].gain * plan->slices[1].gain * plan->slices[2].gain, 1, 1e-9);
}

TEST(OctStack, slices_of_a_known_sample_become_that_sample) {
  SimulationPlan simulated = level_tile_plan(31, {20, 72, 72}, -50);  // all is tissue
  simulated.attenuation = simulated.water = 0;
  simulated.speckle_shape = 0;
  simulated.slices = 3;
  simulated.interval_planes = 12;
  simulated.slice_gain_low = 0.7;
  simulated.slice_gain_high = 1.4;
  simulated.slice_rotation_deg = 1.5;
  simulated.slice_shift_px = 2;
  const SimulatedScene scene = *make_scene(simulated);
  std::vector<SliceFacts> facts;
  std::vector<SliceShift> shifts;
  std::vector<std::optional<SliceRegistration>> registrations;
  for (std::size_t i = 0; i < 3; ++i) {
    facts.push_back({i, 20, 72, 72, 12});
    if (i == 0) continue;
    shifts.push_back({.fixed = i - 1, .moving = i});
    // The pair's transform: the inverse of the slice before, then the slice's own, about the middle of the pixels'
    // centres.
    const auto map = [&](std::size_t slice, double r, double c) {
      const double angle = scene.slices[slice].rotation_deg * M_PI / 180;
      return std::array{std::cos(angle) * (r - 36) - std::sin(angle) * (c - 36) + 36 + scene.slices[slice].shift_px[0],
                        std::sin(angle) * (r - 36) + std::cos(angle) * (c - 36) + 36 + scene.slices[slice].shift_px[1]};
    };
    const auto in_sample = map(i, 35.5, 35.5);
    const double back = -scene.slices[i - 1].rotation_deg * M_PI / 180;
    const double y = in_sample[0] - 36 - scene.slices[i - 1].shift_px[0];
    const double x = in_sample[1] - 36 - scene.slices[i - 1].shift_px[1];
    registrations.emplace_back(registration_of(scene.slices[i].rotation_deg - scene.slices[i - 1].rotation_deg,
                                               std::cos(back) * y - std::sin(back) * x + 36 - 35.5,
                                               std::sin(back) * y + std::cos(back) * x + 36 - 35.5, 12, 0.9));
  }
  StackOptions options;
  options.rotation_window = 0;
  options.first_plane = 2;
  auto plan = decide_stack(facts, shifts, registrations, ten_um, options);
  ASSERT_TRUE(plan) << plan.error().message();
  const auto source = [&](std::size_t i, const PlaneBox& box) -> Result<HostVolume> {
    return box_of(simulate_tile(scene, i), box);
  };
  const auto volume = stacked(*plan, source, options);
  ASSERT_TRUE(volume) << volume.error().message();
  EXPECT_EQ(volume->planes, 44u);
  for (std::size_t i = 1; i < 3; ++i) {
    const double expected = scene.slices[i - 1].gain / scene.slices[i].gain;
    EXPECT_NEAR(plan->slices[i].gain / plan->slices[i - 1].gain, expected, 0.01 * expected);
  }
  // Against the sample, up to one factor.
  const auto row0 = static_cast<std::int32_t>(std::lround(plan->slices[0].motor_px[0]));
  const auto column0 = static_cast<std::int32_t>(std::lround(plan->slices[0].motor_px[1]));
  const HostVolume truth = simulate_texture(simulated.seed, simulated.texture_strength, {0, 12, 12, 44, 48, 48});
  const double factor = scene.slices[0].gain * plan->slices[0].gain;
  double squares = 0;
  for (std::size_t z = 0; z < 44; ++z) {
    for (std::size_t r = 0; r < 48; ++r) {
      for (std::size_t c = 0; c < 48; ++c) {
        const double value = static_cast<double>(
            volume->at(z, r + 12 + static_cast<std::size_t>(row0), c + 12 + static_cast<std::size_t>(column0)));
        squares += std::pow(value / factor / static_cast<double>(truth.at(z, r, c)) - 1, 2);
      }
    }
  }
  EXPECT_LT(std::sqrt(squares / (44.0 * 48 * 48)), 0.02);
  const auto pool = ThreadPool::create(3);
  auto again = decide_stack(facts, shifts, registrations, ten_um, options);
  ASSERT_TRUE(find_gains(*again, source, options, nullptr, 11));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(again->slices[i].gain, plan->slices[i].gain);
  EXPECT_EQ(stacked(*again, source, options, pool->get())->values, volume->values);
  // A few planes and rows at a time are the same voxels, of sources that are asked for what they show alone.
  std::size_t read = 0, asked = 0;
  const auto counted = [&](std::size_t i, const PlaneBox& box) {
    read += box.planes * box.rows;
    ++asked;
    return source(i, box);
  };
  HostVolume pieces(volume->planes, volume->rows, volume->columns);
  for (std::size_t first = 0; first < plan->planes; first += 7) {
    for (std::size_t row = 0; row < plan->rows; row += 13) {
      const PlaneBox box{first, std::min<std::size_t>(7, plan->planes - first), row,
                         std::min<std::size_t>(13, plan->rows - row)};
      const auto piece = stacked_box(*plan, counted, box);
      ASSERT_TRUE(piece);
      for (std::size_t z = 0; z < box.planes; ++z) {
        const auto rows = piece->plane(z);
        std::copy(rows.begin(), rows.end(), &pieces.at(first + z, row, 0));
      }
    }
  }
  EXPECT_EQ(pieces.values, volume->values);
  const PlaneBox lower{3, plan->planes - 5, 2, plan->rows - 3};
  const auto by_rows = stacked_box(*plan, source, lower, pool->get(), 13);
  ASSERT_TRUE(by_rows);
  for (std::size_t z = 0; z < lower.planes; ++z) {
    const auto rows = volume->plane(3 + z).subspan(2 * volume->columns, by_rows->plane_size());
    EXPECT_TRUE(std::ranges::equal(by_rows->plane(z), rows)) << z;
  }
  EXPECT_GT(asked, 0u);
  // About 13 rows and what the turn adds of each slice, and one more plane, and not all of it.
  EXPECT_LT(static_cast<double>(read) / static_cast<double>(asked), 8.0 * 20);
}

TEST(OctStack, a_constant_stays_constant_and_zero_weighs_nothing) {
  Series series(3);
  series.options.first_plane = 3;
  auto plan = series.decide();
  ASSERT_TRUE(plan);
  const auto source = [](std::size_t, const PlaneBox& box) -> Result<HostVolume> {
    HostVolume slice(30, 40, 50);
    for (float& value : slice.values) value = 0.3f;
    for (std::size_t z = 0; z < 30; ++z) slice.at(z, 5, 5) = 0;
    return box_of(std::move(slice), box);
  };
  const auto volume = stacked(*plan, source, series.options);
  ASSERT_TRUE(volume);
  for (std::size_t z = 0; z < volume->planes; ++z) {
    for (std::size_t r = 0; r < 40; ++r) {
      for (std::size_t c = 0; c < 50; ++c) {
        ASSERT_EQ(volume->at(z, r, c), r == 5 && c == 5 ? 0.0f : 0.3f) << z << " " << r << " " << c;
      }
    }
  }
}

TEST(OctStack, depth_between_planes_is_interpolated) {
  Series series(2);
  series.options.first_plane = 0;
  series.registrations[0]->interval_planes = 20.25;
  auto plan = series.decide();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->planes, 50u);
  // The value is the depth in the sample, so that both slices say the same wherever both are.
  const auto source = [](std::size_t number, const PlaneBox& box) -> Result<HostVolume> {
    HostVolume slice(30, 40, 50);
    for (std::size_t i = 0; i < slice.values.size(); ++i) {
      const double depth = 100 + 20.25 * static_cast<double>(number) + static_cast<double>(i / slice.plane_size());
      slice.values[i] = static_cast<float>(depth);
    }
    return box_of(std::move(slice), box);
  };
  const auto volume = stacked_box(*plan, source, {0, plan->planes, 0, plan->rows});
  ASSERT_TRUE(volume);
  for (std::size_t z = 0; z < 50; ++z) ASSERT_NEAR(volume->at(z, 20, 20), 100.0 + static_cast<double>(z), 1e-4) << z;
}

}  // namespace stacking_tests
}  // namespace cingulum::oct
