#include "oct/registration/slice_registration.hpp"
#include "support/long_tests.hpp"
#include "support/plain_simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace cingulum::oct {
namespace registration_tests {

// Two slices of one tile of 192 x 192, the second turned, shifted, brighter, with speckle of its own.
SimulatedScene pair_scene(std::uint64_t seed, std::uint32_t speckle) {
  SimulationPlan plan = level_tile_plan(seed, {26, 192, 192}, 3);
  plan.speckle_shape = speckle;
  plan.slices = 2;
  plan.interval_planes = 10;
  plan.slice_gain_low = 0.7;
  plan.slice_gain_high = 1.4;
  plan.slice_rotation_deg = 1.5;
  plan.slice_shift_px = 5;
  return *make_scene(plan);
}

RegistrationOptions pair_options() {
  RegistrationOptions options;
  options.moving_plane = 6;
  options.expected_planes = 12;
  options.search_planes = 4;
  return options;
}

struct PairErrors {
  double angle = 0, shift = 0, planes = 0;
};

PairErrors errors_of_pair(std::uint64_t seed, std::uint32_t speckle) {
  const SimulatedScene scene = pair_scene(seed, speckle);
  const auto pool = ThreadPool::create(2);
  const HostVolume fixed = simulate_tile(scene, 0, pool->get());
  const HostVolume moving = simulate_tile(scene, 1, pool->get());
  const auto found = register_slices(planes_of_volume(fixed), planes_of_volume(moving), pair_options());
  EXPECT_TRUE(found) << found.error().message();
  const SliceTruth& truth = scene.slices[1];
  EXPECT_GT(found->confidence, 0.4);
  // The scene turns about the middle of 192 pixels, the fit about the middle between the first and the last centre.
  const double angle = truth.rotation_deg * M_PI / 180;
  const std::array<double, 2> half = {0.5 * (std::cos(angle) - std::sin(angle) - 1),
                                      0.5 * (std::sin(angle) + std::cos(angle) - 1)};
  return {std::abs(found->rigid.rotation_deg - truth.rotation_deg),
          std::hypot(found->rigid.shift_px[0] - truth.shift_px[0] + half[0],
                     found->rigid.shift_px[1] - truth.shift_px[1] + half[1]),
          std::abs(found->interval_planes - 10)};
}

void expect_pairs_within(const PairErrors& bounds, std::uint32_t speckle) {
  const std::uint64_t seeds = test::may_take_long() ? 20 : 2;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const PairErrors errors = errors_of_pair(seed, speckle);
    EXPECT_LT(errors.angle, bounds.angle);
    EXPECT_LT(errors.shift, bounds.shift);
    EXPECT_LT(errors.planes, bounds.planes);
  }
}

TEST(OctRegistration, a_slice_pair_is_found_within_the_bounds) {
  expect_pairs_within({0.1, 0.3, 0.6}, 4);
}

TEST(OctRegistration, a_slice_pair_with_full_speckle_is_found_within_the_bounds) {
  expect_pairs_within({0.2, 0.5, 0.8}, 1);
}

TEST(OctRegistration, planes_at_a_time_and_threads_change_no_bit) {
  const SimulatedScene scene = pair_scene(1, 4);
  const auto pool = ThreadPool::create(3);
  const HostVolume fixed = simulate_tile(scene, 0, pool->get());
  const HostVolume moving = simulate_tile(scene, 1, pool->get());
  RegistrationOptions options = pair_options();
  const auto whole = register_slices(planes_of_volume(fixed), planes_of_volume(moving), options);
  ASSERT_TRUE(whole);
  for (const std::size_t at_a_time : {1u, 4u, 100u}) {
    SCOPED_TRACE(at_a_time);
    options.planes_at_a_time = at_a_time;
    options.pool = at_a_time == 4 ? nullptr : pool->get();
    SlicePlanes counted = planes_of_volume(fixed);
    std::size_t most = 0;
    counted.read = [&, read = counted.read](std::size_t first, std::size_t count) {
      most = std::max(most, count);
      return read(first, count);
    };
    const auto found = register_slices(counted, planes_of_volume(moving), options);
    ASSERT_TRUE(found);
    EXPECT_LE(most, std::max<std::size_t>(options.planes, std::min<std::size_t>(at_a_time, 9) + options.planes - 1));
    EXPECT_EQ(found->rigid.rotation_deg, whole->rigid.rotation_deg);
    EXPECT_EQ(found->rigid.shift_px, whole->rigid.shift_px);
    EXPECT_EQ(found->interval_planes, whole->interval_planes);
    EXPECT_EQ(found->z_ncc, whole->z_ncc);
  }
  options.planes_at_a_time = 0;
  const SlicePlanes unread{fixed.planes, [](std::size_t, std::size_t) -> Result<HostVolume> {
                             return fail(ErrorKind::io, "a disk that went away");
                           }};
  EXPECT_EQ(register_slices(unread, planes_of_volume(moving), options).error().message(), "a disk that went away");
}

TEST(OctRegistration, a_slice_against_itself_stays) {
  HostVolume slice(10, 64, 80);
  for (std::size_t z = 0; z < 10; ++z) {
    for (std::size_t r = 0; r < 64; ++r) {
      for (std::size_t c = 0; c < 80; ++c) {
        const double wave = std::sin(0.2 * static_cast<double>(r)) + std::cos(0.13 * static_cast<double>(c + r));
        slice.at(z, r, c) = static_cast<float>(std::exp(wave));
      }
    }
  }
  const auto found = register_slices(planes_of_volume(slice), planes_of_volume(slice), {.search_planes = 1});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_NEAR(found->rigid.rotation_deg, 0, 1e-6);
  EXPECT_NEAR(found->rigid.shift_px[0], 0, 1e-6);
  EXPECT_NEAR(found->rigid.shift_px[1], 0, 1e-6);
  EXPECT_NEAR(found->rigid.ncc, 1, 1e-9);
}

TEST(OctRegistration, slices_that_do_not_overlap_are_refused) {
  const HostVolume slice(10, 32, 32);
  RegistrationOptions options;
  options.expected_planes = 40;
  options.search_planes = 3;
  EXPECT_FALSE(register_slices(planes_of_volume(slice), planes_of_volume(slice), options));
  options.expected_planes = 2;
  options.moving_plane = 8;
  EXPECT_FALSE(register_slices(planes_of_volume(slice), planes_of_volume(slice), options));
}

}  // namespace registration_tests
}  // namespace cingulum::oct
