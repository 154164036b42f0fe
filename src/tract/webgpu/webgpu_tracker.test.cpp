// The streamlines of WebGPU are the CPU's, bit for bit: every getter on every kind of field, whatever the bindings,
// pages, budgets and ranges.
#include "tract/webgpu/webgpu_tracker.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "support/long_tests.hpp"
#include "support/memory_jobs.hpp"
#include "support/plan_shrinker.hpp"
#include "support/random_plan.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

std::vector<Vec3> scattered_seeds(std::size_t count, const ImageGeometry& geometry) {
  std::vector<Vec3> positions(count);
  std::uint64_t state = 88172645463325252ull;
  const auto draw = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<float>(state >> 40) * 0x1p-24f;
  };
  for (Vec3& p : positions) {
    // Some lie outside.
    p = {draw() * static_cast<float>(geometry.size[0]) - 0.7f, draw() * static_cast<float>(geometry.size[1]) - 0.7f,
         draw() * static_cast<float>(geometry.size[2]) - 0.7f};
  }
  return positions;
}

StreamlineBatch track_all(Tracker& tracker, const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                          const GivenDirections* directions = nullptr) {
  StreamlineBatch batch;
  const Status supported = tracker.supports(plan, field);
  EXPECT_TRUE(supported) << testing::message_of(supported);
  const Status prepared = tracker.prepare(plan, field, seeds, directions);
  EXPECT_TRUE(prepared) << testing::message_of(prepared);
  if (!prepared) return batch;
  const Status tracked = tracker.track({0, seeds.count()}, batch);
  EXPECT_TRUE(tracked) << testing::message_of(tracked);
  return batch;
}

class WebgpuTracking : public testing::EachDevice {
 protected:
  void expect_the_cpus(const TrackingPlan& plan, const Field& field, std::vector<Vec3> positions,
                       const WebgpuTrackerOptions& options = {}, const GivenDirections* directions = nullptr) {
    const std::unique_ptr<Seeds> seeds = listed_seeds(std::move(positions)).value();
    const std::unique_ptr<ThreadPool> pool = ThreadPool::create(1).value();
    const StreamlineBatch expected = track_all(*make_cpu_tracker(*pool), plan, field, *seeds, directions);
    EXPECT_GT(expected.steps, 0u);
    EXPECT_TRUE(test::same_batch(track_all(*make_webgpu_tracker(device(), options), plan, field, *seeds, directions),
                                 expected));
  }
};
CGL_FOR_DEVICES(WebgpuTracking, "webgpu");

const ImageGeometry geometry = test::grid(9, 10, 7, {1.5, 1.25, 2});

// Fibres that turn about an axis, and further ones across.
Vec3d turning(Vec3d p) {
  return test::unit({p.y - 4.3, 3.9 - p.x, 0.4 + 0.1 * p.z});
}
Vec3d across(Vec3d p) {
  return test::unit({0.3, 1, 0.2 * (p.x - 4)});
}

float map_value(Vec3d p) {
  return static_cast<float>(1.1 - 0.02 * numerics::dot(p - Vec3d{4, 4.5, 3}, p - Vec3d{4, 4.5, 3}));
}

double lobes(Vec3d p, Vec3d v) {
  return std::pow(numerics::dot(v, turning(p)), 8) + 0.6 * std::pow(numerics::dot(v, across(p)), 8) + 0.02;
}

Field amplitudes(const char* sphere) {
  return test::amplitude_field(geometry, named_sphere(sphere).value(), lobes, map_value);
}

Field harmonics(const char* sphere, int degree) {
  return test::harmonic_field(
      geometry, named_sphere(sphere).value(), degree,
      [&](Vec3d p, double* c) {
        std::fill_n(c, numerics::coefficient_count(degree, false), 0.0);
        test::add_lobe(degree, turning(p), 1, c);
        test::add_lobe(degree, across(p), 0.6, c);
      },
      map_value);
}

TrackingPlan plan_for(TrackingOptions options, const Field& field) {
  options.max_length_mm = 20;
  options.random_key = 0x123456789abcdef0ull;
  return make_tracking_plan(options, field.geometry).value();
}

Field tensors() {
  return test::tensor_field(geometry, turning, map_value);
}

Field peaks() {
  return test::peak_field(
      geometry, 3,
      [](Vec3d p, Vec3d* peaks) {
        peaks[0] = across(p) * 0.4;
        if (p.x > 3) peaks[2] = turning(p);
      },
      map_value);
}

// A signal of two fibres in `gradients` directions.
Field bootstrap(const char* sphere, std::size_t gradients, bool csa, int degree) {
  std::vector<Vec3d> directions = {{0, 0, 0}};
  std::vector<std::uint8_t> is_b0 = {1};
  for (std::size_t g = 0; g < gradients; ++g) {
    const double z = (static_cast<double>(g) + 0.5) / static_cast<double>(gradients);
    const double angle = 2.39996322972865 * static_cast<double>(g);
    directions.push_back({std::sqrt(1 - z * z) * std::cos(angle), std::sqrt(1 - z * z) * std::sin(angle), z});
    is_b0.push_back(0);
  }
  std::uint32_t noise = 1;
  const test::AllVoxels all(
      geometry, directions.size(),
      [&](Vec3d p, float* signal) {
        signal[0] = 1000;
        for (std::size_t g = 1; g < directions.size(); ++g) {
          noise = noise * 1664525u + 1013904223u;
          const double along = numerics::dot(directions[g], turning(p)),
                       beside = numerics::dot(directions[g], across(p));
          signal[g] = static_cast<float>(
              1000 * (0.6 * std::exp(-0.3 - 2.4 * along * along) + 0.4 * std::exp(-0.3 - 2.4 * beside * beside)) +
              static_cast<double>(noise >> 16) / 65536 * 60);
        }
      },
      map_value);
  return make_bootstrap_field(geometry, all.stop, all.records(), directions, is_b0, {.csa = csa, .degree = degree},
                              named_sphere(sphere).value(), *ThreadPool::create(1).value())
      .value();
}

TEST_P(WebgpuTracking, of_prob_has_the_cpus_bits) {
  for (const char* sphere : {"repulsion724", "mirror321"}) {
    const Field field = amplitudes(sphere);
    expect_the_cpus(plan_for({.getter = Getter::prob}, field), field, scattered_seeds(12, geometry));
  }
  for (const char* sphere : {"repulsion724", "mirror321"}) {
    const Field field = harmonics(sphere, 8);
    expect_the_cpus(plan_for({.getter = Getter::prob, .angular_weight = 0.7}, field), field,
                    scattered_seeds(12, geometry));
  }
}

TEST_P(WebgpuTracking, of_det_has_the_cpus_bits) {
  const Field on_sphere = amplitudes("mirror321");
  expect_the_cpus(plan_for({.getter = Getter::det}, on_sphere), on_sphere, scattered_seeds(12, geometry));
  for (const bool refine : {false, true}) {
    const Field field = harmonics("mirror321", 6);
    expect_the_cpus(plan_for({.getter = Getter::det, .refine = refine}, field), field, scattered_seeds(12, geometry));
  }
}

TEST_P(WebgpuTracking, of_closest_has_the_cpus_bits) {
  const Field stored = peaks();
  expect_the_cpus(plan_for({.getter = Getter::closest}, stored), stored, scattered_seeds(16, geometry));
  const Field on_sphere = amplitudes("mirror321");
  expect_the_cpus(plan_for({.getter = Getter::closest, .max_directions = 1}, on_sphere), on_sphere,
                  scattered_seeds(12, geometry));
  const Field series = harmonics("mirror321", 4);
  expect_the_cpus(plan_for({.getter = Getter::closest, .one_sided = true}, series), series,
                  scattered_seeds(12, geometry));
}

TEST_P(WebgpuTracking, of_tensor_has_the_cpus_bits) {
  const Field field = tensors();
  for (const bool rk4 : {false, true}) {
    expect_the_cpus(plan_for({.getter = Getter::tensor, .rk4 = rk4}, field), field, scattered_seeds(24, geometry));
  }
}

TEST_P(WebgpuTracking, of_boot_has_the_cpus_bits) {
  for (const bool csa : {false, true}) {
    const Field field = bootstrap("mirror321", 64, csa, 4);
    expect_the_cpus(plan_for({.getter = Getter::boot, .boot_seed = csa}, field), field, scattered_seeds(8, geometry));
  }
  const Field field = bootstrap("repulsion362", 170, false, 6);
  expect_the_cpus(plan_for({.getter = Getter::boot,
                            .max_angle_deg = 20,
                            .angular_weight = 0.5,
                            .boot_retry = BootRetry::no_peak_or_angle},
                           field),
                  field, scattered_seeds(6, geometry));
}

TEST_P(WebgpuTracking, of_ptt_has_the_cpus_bits) {
  const Field on_sphere = amplitudes("mirror321");
  expect_the_cpus(plan_for({.getter = Getter::ptt}, on_sphere), on_sphere, scattered_seeds(6, geometry));
  const Field full = amplitudes("repulsion724");
  expect_the_cpus(plan_for({.getter = Getter::ptt,
                            .ptt_probe_radius_mm = 0.5,
                            .ptt_probe_quality = 4,
                            .ptt_probe_count = 3,
                            .ptt_exponent = 2,
                            .ptt_weak_links = true,
                            .ptt_substeps = 3},
                           full),
                  full, scattered_seeds(4, geometry));
  const Field series = harmonics("mirror321", 8);
  expect_the_cpus(plan_for({.getter = Getter::ptt}, series), series, scattered_seeds(4, geometry));
}

// ptt by ptt_probes.wgsl, which is chosen on its own where subgroups fit. Few tries, so that a software adapter takes
// it.
TEST_P(WebgpuTracking, of_ptt_by_lanes_that_hand_on_their_candidates_has_the_cpus_bits) {
  const Field full = amplitudes("repulsion724");
  const std::vector<Vec3> seeds = scattered_seeds(9, geometry);
  const TrackingPlan plan = plan_for({.getter = Getter::ptt, .ptt_tries = 100}, full);
  expect_the_cpus(plan, full, seeds, {.probes = true, .int64 = false});
  const TrackingPlan weak = plan_for({.getter = Getter::ptt,
                                      .max_directions = 2,
                                      .ptt_probe_quality = 3,
                                      .ptt_weak_links = true,
                                      .ptt_tries = 50,
                                      .ptt_substeps = 3},
                                     full);
  expect_the_cpus(weak, full, seeds, {.pages = 5, .workgroups = 2, .budget = 7, .probes = true});
  expect_the_cpus(weak, full, seeds, {.budget = 1, .probes = true});
}

TEST_P(WebgpuTracking, of_random_ptt_by_lanes_that_hand_on_their_candidates_has_the_cpus_bits) {
  const bool few = device().capabilities().software && !test::may_take_long();
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).value();
  std::uint64_t points = 0;
  std::uint32_t plans = 0;
  for (std::uint32_t number = 0; plans < (few ? 4u : 40u); ++number) {
    test::PlanRecipe recipe = test::random_recipe(number);
    if (recipe.options.getter != Getter::ptt || recipe.field != test::PlanField::amplitudes) continue;
    if (few) test::cut_down(recipe);
    recipe.options.ptt_probe_count = 1;
    recipe.options.ptt_probe_radius_mm = 0;
    recipe.options.ptt_exponent = 1;
    points += test::expect_same_as_cpu([&] { return make_webgpu_tracker(device(), {.probes = true}); }, recipe, *pool);
    ++plans;
  }
  EXPECT_GT(points, 10 * plans);
}

// Pages that run out, budgets that end in the middle of a half, few workgroups, a field in five bindings, the text that
// is written for one shape: none of it shows in the result.
TEST_P(WebgpuTracking, depends_on_no_size_of_the_machinery) {
  const Field field = amplitudes("repulsion724");
  const TrackingPlan plan = plan_for({.getter = Getter::prob}, field);
  const std::vector<Vec3> seeds = scattered_seeds(8, geometry);
  const std::uint64_t field_bytes = field.record_count() * field.stride * sizeof(float);
  expect_the_cpus(plan, field, seeds, {.pages = 5, .workgroups = 3, .budget = 17});
  expect_the_cpus(plan, field, seeds, {.largest_binding_bytes = field_bytes / 5 + 4 * field.stride});
  expect_the_cpus(plan, field, seeds, {.workgroups = 1, .specialised = true});
  // ptt has the most to carry from one dispatch to the next.
  const Field series = harmonics("mirror321", 8);
  const TrackingPlan carried = plan_for({.getter = Getter::ptt}, series);
  for (const std::uint32_t budget : {1u, 5u, 1000u}) {
    SCOPED_TRACE(budget);
    expect_the_cpus(carried, series, seeds, {.budget = budget});
    expect_the_cpus(carried, series, seeds, {.workgroups = 1, .budget = budget});
  }
}

// Runs of many seeds get a text of their own, with the loops written out. Drivers take long to compile one, so there
// are few plans here on a software adapter; CINGULUM_TEST_LONG=1 has more.
TEST_P(WebgpuTracking, by_a_text_for_one_shape_has_the_cpus_bits) {
  const bool few = device().capabilities().software && !test::may_take_long();
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).value();
  const std::uint32_t wanted = few ? 1 : 60;
  std::uint64_t points = 0;
  std::uint32_t plans = 0;
  for (std::uint32_t number = 0; plans < wanted; ++number) {
    test::PlanRecipe recipe = test::random_recipe(number);
    // ptt takes a compiler of shaders half a minute there.
    if (few && recipe.options.getter == Getter::ptt) continue;
    if (few) test::cut_down(recipe);
    // A plan whose seeds hardly start shows nothing; the CPU tells quickly.
    if (test::expect_same_as_cpu([&] { return make_cpu_tracker(*pool); }, recipe, *pool) <= 10) continue;
    points +=
        test::expect_same_as_cpu([&] { return make_webgpu_tracker(device(), {.specialised = true}); }, recipe, *pool);
    ++plans;
  }
  EXPECT_GT(points, 10 * plans);
}

TEST_P(WebgpuTracking, by_subgroups_has_the_cpus_bits) {
  const DeviceCapabilities& can = device().capabilities();
  const Field field = bootstrap("mirror321", 64, false, 4);
  const TrackingPlan plan = plan_for({.getter = Getter::boot}, field);
  if (can.subgroups && can.subgroup_min == 32 && can.subgroup_max == 32) {
    for (const LaneForm lanes : {LaneForm::workgroup, LaneForm::subgroup}) {
      expect_the_cpus(plan, field, scattered_seeds(8, geometry), {.lanes = lanes});
    }
    return;
  }
  const std::unique_ptr<Seeds> seeds = listed_seeds(scattered_seeds(8, geometry)).value();
  const std::unique_ptr<Tracker> tracker = make_webgpu_tracker(device(), {.lanes = LaneForm::subgroup});
  EXPECT_TRUE(testing::fails_with(tracker->prepare(plan, field, *seeds, nullptr), ErrorKind::unavailable, "32 wide"));
}

// At exactly the threshold of the stopping map a streamline ends; at exactly the greatest angle it goes on.
TEST_P(WebgpuTracking, ends_at_the_threshold_and_goes_on_at_the_greatest_angle) {
  const Vec3d turned{0.8, 0.5, -0.3};
  const float cosine = numerics::normalise(Vec3{static_cast<float>(turned.x), static_cast<float>(turned.y),
                                                static_cast<float>(turned.z)})
                           .x;
  for (const float limit : {cosine, std::nextafter(cosine, 1.0f)}) {
    for (const float number : {0.25f, std::nextafter(0.25f, 1.0f)}) {
      const Field field = test::peak_field(
          test::grid(9, 9, 9), 1,
          [&](Vec3d p, Vec3d* list) {
            list[0] = p.x < 3.5 ? Vec3d{1, 0, 0} : turned;
          },
          [&](Vec3d p) { return p.x > 2.5 && p.x < 3.5 && p.y < 2.5 ? number : 1.0f; });
      TrackingPlan plan = plan_for({.getter = Getter::closest, .stop_threshold = 0.25}, field);
      plan.cos_max_angle = limit;
      const std::vector<Vec3> seeds = {{1, 1, 4}, {1, 4, 4}, {3, 1, 4}, {2, 6, 6}};
      expect_the_cpus(plan, field, seeds);
      const std::unique_ptr<Seeds> listed = listed_seeds(seeds).value();
      const StreamlineBatch batch =
          track_all(*make_webgpu_tracker(device(), WebgpuTrackerOptions{}), plan, field, *listed);
      EXPECT_EQ(batch.seeds_outside, number > 0.25f ? 0u : 1u);
      ASSERT_EQ(batch.streamline_count(), number > 0.25f ? 4u : 3u);
      EXPECT_EQ(batch.end_reason[1],
                static_cast<std::uint8_t>(number > 0.25f
                                              ? (limit > cosine ? EndReason::no_direction : EndReason::outside_image)
                                              : EndReason::stop_map));
      EXPECT_EQ(batch.end_reason[3],
                static_cast<std::uint8_t>(limit > cosine ? EndReason::no_direction : EndReason::outside_image));
    }
  }
}

// Ties, which random plans do not meet: equal peaks at the seed, peaks at equal angles, in records and on the sphere.
// What is right is said by getters.test.cpp.
TEST_P(WebgpuTracking, takes_the_cpus_choice_among_equals) {
  const std::vector<Vec3> seeds = {{1, 1, 4}, {1, 4, 4}, {3, 1, 4}, {2, 6, 6}};
  GivenDirections along_x;
  along_x.directions.assign(seeds.size(), {1, 0, 0});
  for (const double side : {1.0, -1.0}) {
    const Field stored = test::peak_field(test::grid(9, 9, 9), 3, [&](Vec3d p, Vec3d* list) {
      if (p.x < 3.5) {
        list[0] = {0, side, 0};
        list[1] = {1, 0, 0};
        list[2] = {0, 0, side};
      } else {
        list[0] = {0.8, 0.6 * side, 0};
        list[2] = {0.8, -0.6 * side, 0};
      }
    });
    TrackingPlan plan = plan_for({.getter = Getter::closest}, stored);
    for (const std::uint32_t directions : {1u, 2u, 3u}) {
      plan.max_directions = directions;
      expect_the_cpus(plan, stored, seeds);
    }
    expect_the_cpus(plan, stored, seeds, {}, &along_x);
  }
  // Two mirror images among the directions of the sphere.
  const Sphere sphere = named_sphere("mirror321").value();
  Vec3d image{0, 0, 0};
  for (const Vec3d v : sphere.directions) {
    if (v.x > 0.75 && v.x < 0.9 && v.y > 0.3 && v.z > 0) image = v;
  }
  ASSERT_GT(image.x, 0);
  const Field on_sphere = test::amplitude_field(test::grid(9, 9, 9), sphere, [&](Vec3d, Vec3d v) {
    return v.x == image.x && std::abs(v.y) == image.y && v.z == image.z ? 1.0 : 0.0;
  });
  expect_the_cpus(plan_for({.getter = Getter::closest}, on_sphere), on_sphere, seeds, {}, &along_x);
  expect_the_cpus(plan_for({.getter = Getter::det}, on_sphere), on_sphere, seeds, {}, &along_x);
}

// Along a saddle the greatest value in the cone lies on the cone's edge, where there is no hill to climb.
TEST_P(WebgpuTracking, refines_as_the_cpu_does_where_the_surface_is_no_hill) {
  const Vec3d ridge = test::unit({0.1, 0.9, 0.3}), valley = test::unit(numerics::cross(ridge, {0.2, -0.3, 0.8}));
  const Vec3d saddle = numerics::cross(ridge, valley);
  const Field field =
      test::harmonic_field(test::grid(9, 9, 9), named_sphere("mirror321").value(), 2, [&](Vec3d, double* c) {
        std::fill_n(c, 6, 0.0);
        c[0] = 5;
        test::add_lobe(2, ridge, 1, c);
        test::add_lobe(2, valley, -0.7, c);
      });
  for (const double angle : {10.0, 25.0, 40.0}) {
    for (const Vec3d start : {saddle, valley, test::unit(saddle + valley)}) {
      GivenDirections directions;
      directions.directions.assign(
          2, {static_cast<float>(start.x), static_cast<float>(start.y), static_cast<float>(start.z)});
      expect_the_cpus(plan_for({.getter = Getter::det, .max_angle_deg = angle}, field), field,
                      {{4, 4, 4}, {3, 5, 4.5f}}, {}, &directions);
    }
  }
}

TEST_P(WebgpuTracking, starts_along_given_directions) {
  const Field field = amplitudes("mirror321");
  const std::vector<Vec3> seeds = scattered_seeds(10, geometry);
  GivenDirections directions;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const Vec3d v = test::unit({0.2, static_cast<double>(i) - 4.5, 1});
    directions.directions.push_back({static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)});
  }
  expect_the_cpus(plan_for({.getter = Getter::closest}, field), field, seeds, {}, &directions);
}

TEST_P(WebgpuTracking, is_the_same_from_two_threads_and_in_ranges) {
  const Field field = peaks();
  const TrackingPlan plan = plan_for({.getter = Getter::closest}, field);
  const std::unique_ptr<Seeds> seeds = listed_seeds(scattered_seeds(400, geometry)).value();
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(1).value();
  const std::unique_ptr<Tracker> cpu = make_cpu_tracker(*pool);
  const std::unique_ptr<Tracker> tracker = make_webgpu_tracker(device(), WebgpuTrackerOptions{});
  ASSERT_OK(cpu->prepare(plan, field, *seeds, nullptr));
  ASSERT_OK(tracker->prepare(plan, field, *seeds, nullptr));
  const std::vector<SeedRange> ranges = {{0, 100}, {100, 1}, {101, 0}, {101, 299}};
  std::vector<StreamlineBatch> batches(ranges.size());
  std::vector<Status> done(ranges.size());
  const auto work = [&](std::size_t first) {
    for (std::size_t i = first; i < ranges.size(); i += 2) done[i] = tracker->track(ranges[i], batches[i]);
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_OK(done[i]);
    StreamlineBatch expected;
    ASSERT_OK(cpu->track(ranges[i], expected));
    EXPECT_TRUE(test::same_batch(batches[i], expected));
  }
}

TEST_P(WebgpuTracking, refuses_what_does_not_fit_with_need_and_have) {
  const Field field = amplitudes("repulsion724");
  const TrackingPlan plan = plan_for({.getter = Getter::prob}, field);
  const std::unique_ptr<Tracker> tracker = make_webgpu_tracker(device(), {.largest_binding_bytes = 1024});
  EXPECT_TRUE(testing::fails_with(tracker->supports(plan, field), ErrorKind::unavailable, "bindings of 1.0 KiB"));
  Field many = bootstrap("mirror321", 64, false, 4);
  many.bootstrap.gradients = 100'000;
  many.channels = 15 + 1 + 100'000;
  many.stride = many.channels + 1;
  many.record_of_voxel.assign(many.record_of_voxel.size(), 0);
  many.records.assign(many.stride + Field::record_padding, 0);
  EXPECT_TRUE(testing::fails_with(
      make_webgpu_tracker(device(), WebgpuTrackerOptions{})->supports(plan_for({.getter = Getter::boot}, many), many),
      ErrorKind::unavailable, "workgroup memory"));
  EXPECT_FALSE(make_webgpu_tracker(device(), WebgpuTrackerOptions{})
                   ->supports(plan_for({.getter = Getter::tensor}, field), field));
}

// A third of the field is within reach at a time; in half precision, which is read by words.
TEST_P(WebgpuTracking, of_a_field_beyond_all_bindings_is_in_bricks_and_has_the_cpus_bits) {
  test::RandomPlan plan = test::tall_plan(Getter::prob, false, 1);
  ASSERT_TRUE(plan.field.is_float16());
  plan.options.max_length_mm = 20;
  plan.seeds.resize(6);
  // As few bindings as every adapter has: with many more everything would be within reach.
  constexpr std::uint32_t bindings = 8, besides_field = 3;
  const std::uint64_t record_bytes = plan.field.stride * plan.field.number_bytes();
  const std::uint64_t binding = plan.field.stored_bytes().size() / (3 * (bindings - besides_field));
  ASSERT_GE(binding, 4 * record_bytes);
  expect_the_cpus(plan_for(plan.options, plan.field), plan.field, plan.seeds,
                  {.largest_binding_bytes = binding, .bindings = bindings});
}

// 596 MB in bindings of 128 MiB, the specification's default: five of them, which streamlines along z cross.
TEST_P(WebgpuTracking, of_a_field_beyond_one_binding_has_the_cpus_bits) {
  constexpr std::uint64_t default_binding_bytes = std::uint64_t{128} << 20;
  Field field;
  field.geometry = test::grid(74, 74, 74);
  field.sphere = named_sphere("repulsion724").value();
  field.channels = static_cast<std::uint32_t>(field.sphere.size());
  field.stride = 368;
  const std::size_t voxels = 74 * 74 * 74;
  field.record_of_voxel.resize(voxels);
  field.records.assign(voxels * field.stride + Field::record_padding, 0.0f);
  // Seven fields of lobes, by turns; the first record is not zero here, which no reader minds.
  for (std::size_t pattern = 0; pattern < 7; ++pattern) {
    const Vec3d axis = test::unit({0.1 * static_cast<double>(pattern), 0.2, 1});
    float* const record = &field.records[pattern * field.stride];
    for (std::size_t i = 0; i < field.channels; ++i) {
      record[i] = static_cast<float>(std::pow(numerics::dot(field.sphere.directions[i], axis), 10));
    }
    record[field.channels] = 1;
  }
  for (std::size_t voxel = 0; voxel < voxels; ++voxel) {
    field.record_of_voxel[voxel] = static_cast<std::uint32_t>(voxel);
    if (voxel >= 7) {
      std::memcpy(&field.records[voxel * field.stride], &field.records[voxel % 7 * field.stride],
                  field.stride * sizeof(float));
    }
  }
  TrackingOptions options{.getter = Getter::prob, .step_mm = 0.9};
  std::vector<Vec3> seeds;
  for (int i = 0; i < 7; ++i) seeds.push_back({37.0f, 30.0f, 4.0f + 11.0f * static_cast<float>(i)});
  expect_the_cpus(make_tracking_plan(options, field.geometry).value(), field, seeds,
                  {.largest_binding_bytes = default_binding_bytes});
}

}  // namespace
}  // namespace cingulum
