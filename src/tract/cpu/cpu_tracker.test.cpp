// Streamlines whose course is known: the edge of a stopping map between voxels, straight tubes, circles, borders,
// voxels that are not cubes; and that the result depends neither on threads nor on ranges nor on the CPU's
// instructions.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "support/analytic_field.hpp"
#include "support/independent_philox.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {
namespace {

using numerics::Vec3;
using numerics::Vec3d;
using test::grid;
using test::unit;

TrackingPlan plan_for(TrackingOptions options, const Field& field) {
  return make_tracking_plan(options, field.geometry).value();
}

StreamlineBatch track(const TrackingPlan& plan, const Field& field, std::vector<Vec3> positions,
                      const GivenDirections* directions = nullptr, int threads = 1,
                      const std::vector<std::uint64_t>& pieces = {}) {
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).value();
  const std::uint64_t count = positions.size();
  const std::unique_ptr<Seeds> seeds = listed_seeds(std::move(positions)).value();
  const std::unique_ptr<Tracker> tracker = make_cpu_tracker(*pool);
  EXPECT_TRUE(tracker->supports(plan, field));
  EXPECT_TRUE(tracker->prepare(plan, field, *seeds, directions));
  StreamlineBatch all, piece;
  std::vector<std::uint64_t> sizes = pieces.empty() ? std::vector{count} : pieces;
  std::uint64_t first = 0;
  for (const std::uint64_t size : sizes) {
    EXPECT_TRUE(tracker->track({first, size}, piece));
    first += size;
    all.points.insert(all.points.end(), piece.points.begin(), piece.points.end());
    for (std::size_t i = 0; i < piece.streamline_count(); ++i) {
      all.offsets.push_back(all.offsets.back() + piece.offsets[i + 1] - piece.offsets[i]);
    }
    all.seed_index.insert(all.seed_index.end(), piece.seed_index.begin(), piece.seed_index.end());
    all.seed_point.insert(all.seed_point.end(), piece.seed_point.begin(), piece.seed_point.end());
    all.end_reason.insert(all.end_reason.end(), piece.end_reason.begin(), piece.end_reason.end());
    all.steps += piece.steps;
    all.seeds_outside += piece.seeds_outside;
    all.seeds_without_direction += piece.seeds_without_direction;
  }
  return all;
}

Vec3d point(const StreamlineBatch& batch, std::size_t line, std::size_t index) {
  const float* p = &batch.points[3 * (batch.offsets[line] + index)];
  return {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])};
}

std::size_t size_of(const StreamlineBatch& batch, std::size_t line) {
  return batch.offsets[line + 1] - batch.offsets[line];
}

EndReason reason(const StreamlineBatch& batch, std::size_t line, std::size_t end) {
  return static_cast<EndReason>(batch.end_reason[2 * line + end]);
}

Sphere sphere(const char* name) {
  return named_sphere(name).value();
}

// Check (b): a straight field, followed from one face to the other, in voxels that are not cubes.
void expect_straight(const Field& field, Getter getter, Vec3d direction_mm) {
  const TrackingPlan plan = plan_for({.getter = getter, .step_mm = 0.4}, field);
  const StreamlineBatch batch = track(plan, field, {{10.2f, 9.7f, 4.1f}});
  ASSERT_EQ(batch.streamline_count(), 1u);
  const std::size_t points = size_of(batch, 0);
  const std::size_t seed = batch.seed_point[0];
  EXPECT_EQ(reason(batch, 0, 0), EndReason::outside_image);
  EXPECT_EQ(reason(batch, 0, 1), EndReason::outside_image);
  EXPECT_GT(points, 30u);
  EXPECT_EQ(batch.steps, points + 1);
  const Vec3d edges{field.geometry.voxel_mm()[0], field.geometry.voxel_mm()[1], field.geometry.voxel_mm()[2]};
  const Vec3d first = point(batch, 0, seed), last = point(batch, 0, points - 1);
  const double sign =
      numerics::dot(Vec3d{(last - first).x * edges.x, (last - first).y * edges.y, (last - first).z * edges.z},
                    direction_mm) > 0
          ? 1
          : -1;
  for (std::size_t i = 0; i < points; ++i) {
    const double length = sign * 0.4 * (static_cast<double>(i) - static_cast<double>(seed));
    const Vec3d p = point(batch, 0, i);
    ASSERT_NEAR(p.x, 10.2f + length * direction_mm.x / edges.x, 1e-4 * std::max(1.0, std::fabs(length))) << i;
    ASSERT_NEAR(p.y, 9.7f + length * direction_mm.y / edges.y, 1e-4 * std::max(1.0, std::fabs(length))) << i;
    ASSERT_NEAR(p.z, 4.1f + length * direction_mm.z / edges.z, 1e-4 * std::max(1.0, std::fabs(length))) << i;
  }
}

TEST(CpuTracker, follows_a_straight_field_in_voxels_that_are_not_cubes) {
  const ImageGeometry geometry = grid(20, 20, 8, {1.5, 1.5, 3});
  const Vec3d axis = unit({0.3, -0.8, 0.52});
  {
    SCOPED_TRACE("tensor");
    expect_straight(test::tensor_field(geometry, [&](Vec3d) { return axis; }), Getter::tensor, axis);
  }
  {
    SCOPED_TRACE("det from SH, refined");
    expect_straight(test::harmonic_field(geometry, sphere("mirror321"), 8,
                                         [&](Vec3d, double* c) {
                                           std::fill_n(c, 45, 0.0);
                                           test::add_lobe(8, axis, 1, c);
                                         }),
                    Getter::det, axis);
  }
  {
    SCOPED_TRACE("closest of given peaks");
    expect_straight(test::peak_field(geometry, 2, [&](Vec3d, Vec3d* peaks) { peaks[0] = axis; }), Getter::closest,
                    axis);
  }
  for (const char* name : {"repulsion724", "mirror321", "repulsion362"}) {
    SCOPED_TRACE(name);
    const Sphere directions = sphere(name);
    const Vec3d vertex = directions.directions[directions.size() / 3];
    const Field field = test::amplitude_field(geometry, directions,
                                              [&](Vec3d, Vec3d v) { return std::pow(numerics::dot(v, vertex), 10); });
    expect_straight(field, Getter::det, vertex);
    expect_straight(field, Getter::closest, vertex);
  }
}

// Check (a): the map falls linearly, so that interpolation has it exactly; its edge lies between voxels.
TEST(CpuTracker, ends_where_the_stopping_map_falls_to_its_threshold) {
  for (const double edge : {12.31, 7.5, 11.999}) {
    const Field field = test::peak_field(
        grid(20, 6, 6), 1,
        [](Vec3d, Vec3d* peaks) {
          peaks[0] = {1, 0, 0};
        },
        [&](Vec3d p) { return static_cast<float>(edge - p.x); });
    const TrackingPlan plan = plan_for({.getter = Getter::closest, .step_mm = 0.1, .stop_threshold = 0}, field);
    const StreamlineBatch batch = track(plan, field, {{3.02f, 2.4f, 3.3f}});
    ASSERT_EQ(batch.streamline_count(), 1u);
    EXPECT_EQ(reason(batch, 0, 0), EndReason::outside_image);
    EXPECT_EQ(reason(batch, 0, 1), EndReason::stop_map);
    const double last = point(batch, 0, size_of(batch, 0) - 1).x;
    const double first = point(batch, 0, 0).x;
    EXPECT_NEAR(last, 3.02 + 0.1 * std::floor((edge - 3.02) / 0.1), 1e-3);
    EXPECT_LT(last, edge);
    EXPECT_GE(first, -0.5);
    EXPECT_LT(first, -0.4);
  }
}

// The map has to be above its threshold: at the threshold itself a streamline ends, and none starts. Places and numbers
// are exact: voxels of 1 mm, steps of half a voxel, equal numbers around each place.
TEST(CpuTracker, ends_where_the_stopping_map_is_exactly_at_its_threshold) {
  const auto threshold = static_cast<float>(0.1);
  const float numbers[] = {threshold, std::nextafter(threshold, 0.0f), std::nextafter(threshold, 1.0f)};
  for (const float number : numbers) {
    const Field field = test::peak_field(
        grid(9, 3, 3), 1,
        [](Vec3d, Vec3d* peaks) {
          peaks[0] = {1, 0, 0};
        },
        [&](Vec3d p) { return p.x < 4.5 ? 1.0f : number; });
    const TrackingPlan plan = plan_for({.getter = Getter::closest, .stop_threshold = 0.1}, field);
    ASSERT_EQ(plan.stop_threshold, threshold);
    const bool passes = number > threshold;
    const StreamlineBatch batch = track(plan, field, {{3, 1, 1}, {6, 1, 1}});
    ASSERT_EQ(batch.streamline_count(), passes ? 2u : 1u);
    EXPECT_EQ(batch.seeds_outside, passes ? 0u : 1u);
    EXPECT_EQ(reason(batch, 0, 1), passes ? EndReason::outside_image : EndReason::stop_map);
    // Half way between a voxel of 1 and one of 0.1 it is above; in the next voxel's centre it is not.
    EXPECT_EQ(point(batch, 0, size_of(batch, 0) - 1).x, passes ? 8.0 : 4.5);
  }
}

// A mask is no map to interpolate: a point counts by the voxel that contains it, [4.5, 5.5) to the voxel at 5.
TEST(CpuTracker, ends_at_the_border_of_the_voxels_of_a_mask) {
  const Field field = test::peak_field(
      grid(9, 3, 3), 1,
      [](Vec3d, Vec3d* peaks) {
        peaks[0] = {1, 0, 0};
      },
      [&](Vec3d p) { return p.x < 4.5 ? 1.0f : 0.0f; });
  TrackingOptions options{.getter = Getter::closest, .stop_threshold = 0.1};
  const std::vector<Vec3> seeds = {{3, 1, 1}, {4.5f, 1, 1}, {4.4375f, 1, 1}, {1, 1, 2.5f}};
  const StreamlineBatch interpolated = track(plan_for(options, field), field, seeds);
  ASSERT_EQ(interpolated.streamline_count(), 3u);
  EXPECT_EQ(point(interpolated, 0, size_of(interpolated, 0) - 1).x, 4.5);
  EXPECT_EQ(reason(interpolated, 0, 1), EndReason::stop_map);
  options.stop_rule = StopRule::nearest;
  const StreamlineBatch batch = track(plan_for(options, field), field, seeds);
  ASSERT_EQ(batch.streamline_count(), 2u);
  EXPECT_EQ(batch.seeds_outside, 2u);
  EXPECT_EQ(batch.seed_index, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(point(batch, 0, size_of(batch, 0) - 1).x, 4.0);
  EXPECT_EQ(reason(batch, 0, 0), EndReason::outside_image);
  EXPECT_EQ(reason(batch, 0, 1), EndReason::outside_mask);
  EXPECT_EQ(point(batch, 1, size_of(batch, 1) - 1).x, 4.4375);
}

// At the seed, too, a streamline turns by the largest angle at most, though its halves are tracked by themselves: the
// second starts against what the first draws. The first half is the same by either rule.
TEST(CpuTracker, turns_at_the_seed_by_the_largest_angle_at_most) {
  const Field field = test::amplitude_field(grid(14, 14, 14), sphere("repulsion724"), [](Vec3d, Vec3d) { return 1.0; });
  constexpr std::size_t count = 200;
  GivenDirections given;
  given.directions.assign(count, {1, 0, 0});
  TrackingOptions options{
      .getter = Getter::prob, .max_angle_deg = 20, .min_length_mm = 0, .max_length_mm = 1, .random_key = 3};
  const auto largest_turn = [&](const StreamlineBatch& batch) {
    double largest = 0;
    for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
      const auto seed = static_cast<std::size_t>(batch.seed_point[line]);
      const Vec3d before = numerics::normalise(point(batch, line, seed) - point(batch, line, seed - 1));
      const Vec3d after = numerics::normalise(point(batch, line, seed + 1) - point(batch, line, seed));
      largest = std::max(largest, std::acos(std::min(1.0, numerics::dot(before, after))) * 57.295779513082320877);
    }
    return largest;
  };
  const std::vector<Vec3> seeds(count, Vec3{7, 7, 7});
  const StreamlineBatch turned = track(plan_for(options, field), field, seeds, &given);
  ASSERT_EQ(turned.streamline_count(), count);
  EXPECT_LE(largest_turn(turned), 20.001);
  EXPECT_GT(largest_turn(turned), 15);
  options.second_half = SecondHalf::initial_direction;
  const StreamlineBatch straight = track(plan_for(options, field), field, seeds, &given);
  EXPECT_GT(largest_turn(straight), 25);
  ASSERT_EQ(turned.steps, straight.steps);
  for (std::size_t line = 0; line < count; ++line) {
    for (std::size_t i = turned.seed_point[line]; i < size_of(turned, line); ++i) {
      ASSERT_EQ(point(turned, line, i), point(straight, line, i)) << line;
    }
  }
}

// Which draw serves which step is the contract's (section 4): the words are drawn a second time here. Two directions
// have all the weight, one half each, and lie in different lanes: the lower lane is chosen below one half.
TEST(CpuTracker, draws_steps_and_frames_by_the_counters_of_the_contract) {
  const Sphere directions = sphere("repulsion724");
  std::size_t other = 1;
  while (other % 32 == 0 || numerics::dot(directions.directions[0], directions.directions[other]) < 0.9) ++other;
  const Vec3d low = directions.directions[0], high = directions.directions[other];
  const Field field = test::amplitude_field(grid(14, 14, 14), directions, [&](Vec3d, Vec3d v) {
    return (v.x == low.x && v.y == low.y) || (v.x == high.x && v.y == high.y) ? 1.0 : 0.0;
  });
  constexpr std::uint64_t key = 0x0f1e2d3c4b5a6978u;
  const TrackingPlan plan = plan_for({.getter = Getter::prob, .max_length_mm = 5, .random_key = key}, field);
  GivenDirections given;
  given.directions.assign(6, {static_cast<float>(low.x), static_cast<float>(low.y), static_cast<float>(low.z)});
  const StreamlineBatch batch = track(plan, field, std::vector<Vec3>(6, Vec3{7, 7, 7}), &given);
  ASSERT_EQ(batch.streamline_count(), 6u);
  std::size_t checked = 0, of_high = 0;
  for (std::uint32_t line = 0; line < 6; ++line) {
    const auto seed_point = static_cast<std::size_t>(batch.seed_point[line]);
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::size_t steps = half == 0 ? size_of(batch, line) - 1 - seed_point : seed_point;
      EXPECT_EQ(steps, 10u);
      for (std::uint32_t step = 0; step < steps; ++step) {
        const auto at = [&](std::uint32_t n) {
          return point(batch, line, half == 0 ? seed_point + n : seed_point - n);
        };
        const Vec3d moved = (at(step + 1) - at(step)) * (half == 0 ? 2 : -2);
        const double u = test::contract_uniform(
            test::contract_block(key, {.index = line, .purpose = test::contract_step, .half = half, .step = step})[0]);
        const Vec3d expected = u < 0.5 ? low : high;
        EXPECT_NEAR(numerics::dot(moved, expected), 1, 1e-5)
            << "line " << line << ", half " << half << ", step " << step;
        of_high += u < 0.5 ? 0 : 1;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 120u);
  EXPECT_GT(of_high, 20u);
  // The frame of ptt at a seed is turned by purpose 1.
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Vec3 tangent{0, 0.6f, 0.8f};
    const numerics::Frame frame = kernel::initial_frame(numerics::philox_key(key), seed, seed % 3, seed % 2, tangent);
    const double angle = 2 * M_PI *
                         test::contract_uniform(test::contract_block(key, {.index = seed,
                                                                           .purpose = test::contract_initial_direction,
                                                                           .initial_direction = seed % 3,
                                                                           .half = seed % 2})[0]);
    const numerics::Frame plain = numerics::frame_with_tangent(tangent);
    EXPECT_NEAR(numerics::dot(frame.normal, plain.normal), std::cos(angle), 1e-5) << seed;
    EXPECT_NEAR(numerics::dot(frame.normal, plain.binormal), std::sin(angle), 1e-5) << seed;
  }
}

// Check (c): on a circle Euler's steps go along tangents, so that the radius grows as r^2 + n h^2; Runge and Kutta's
// method stays on it.
TEST(CpuTracker, drifts_from_a_circle_by_the_order_of_its_method) {
  const Vec3d centre{32, 32, 3};
  const Field field = test::tensor_field(grid(64, 64, 7), [&](Vec3d p) {
    const Vec3d radius = p - centre;
    return radius.x == 0 && radius.y == 0 ? Vec3d{1, 0, 0} : unit({-radius.y, radius.x, 0});
  });
  const auto radius_after = [&](bool rk4, double step, double length) {
    const TrackingPlan plan = plan_for(
        {.getter = Getter::tensor, .step_mm = step, .max_length_mm = length, .one_sided = true, .rk4 = rk4}, field);
    const StreamlineBatch batch = track(plan, field, {{52.0f, 32.0f, 3.0f}});
    EXPECT_EQ(reason(batch, 0, 0), EndReason::none);
    EXPECT_EQ(reason(batch, 0, 1), EndReason::max_length);
    const Vec3d end = point(batch, 0, size_of(batch, 0) - 1) - centre;
    return std::hypot(end.x, end.y);
  };
  for (const double step : {0.25, 0.5, 1.0}) {
    const double drift = std::sqrt(20.0 * 20.0 + 60 * step) - 20;  // 60 / step steps of step^2
    EXPECT_NEAR(radius_after(false, step, 60) - 20, drift, 0.03 * drift + 0.003) << step;
    EXPECT_NEAR(radius_after(true, step, 60), 20, 0.02) << step;
  }
}

TEST(CpuTracker, does_not_start_outside_of_image_or_map_and_counts_why) {
  const Field field = test::peak_field(
      grid(8, 8, 8), 1,
      [](Vec3d p, Vec3d* peaks) {
        peaks[0] = p.z < 4 ? Vec3d{0, 1, 0} : Vec3d{0, 0, 0};
      },
      [](Vec3d p) { return p.x < 4 ? 1.0f : 0.0f; });
  const TrackingPlan plan = plan_for({.getter = Getter::closest, .step_mm = 0.5}, field);
  const StreamlineBatch batch = track(
      plan, field, {{-0.6f, 1, 1}, {7.5f, 1, 1}, {6, 1, 1}, {1, 1, 1}, {1, 1, 6}, {-0.5f, -0.5f, -0.5f}, {1, 7.6f, 1}});
  EXPECT_EQ(batch.seeds_outside, 4u);
  EXPECT_EQ(batch.seeds_without_direction, 1u);
  ASSERT_EQ(batch.streamline_count(), 2u);
  EXPECT_EQ(batch.seed_index[0], 3u);
  EXPECT_EQ(batch.seed_index[1], 5u);
}

TEST(CpuTracker, ends_after_the_largest_number_of_steps) {
  const Field field = test::peak_field(grid(40, 5, 5), 1, [](Vec3d, Vec3d* peaks) { peaks[0] = {-2, 0, 0}; });
  const TrackingPlan plan = plan_for({.getter = Getter::closest, .step_mm = 0.5, .max_length_mm = 5}, field);
  const StreamlineBatch batch = track(plan, field, {{20, 2, 2}});
  ASSERT_EQ(batch.streamline_count(), 1u);
  EXPECT_EQ(size_of(batch, 0), 21u);
  EXPECT_EQ(batch.seed_point[0], 10u);
  EXPECT_EQ(reason(batch, 0, 0), EndReason::max_length);
  // The half against the initial direction comes first.
  EXPECT_FLOAT_EQ(static_cast<float>(point(batch, 0, 0).x), 25.0f);
  EXPECT_FLOAT_EQ(static_cast<float>(point(batch, 0, 20).x), 15.0f);
}

TEST(CpuTracker, ends_where_the_field_turns_by_more_than_the_largest_angle) {
  const double angle = 50 * M_PI / 180;
  const Field field = test::peak_field(grid(20, 20, 5), 1, [&](Vec3d p, Vec3d* peaks) {
    peaks[0] = p.x < 10 ? Vec3d{1, 0, 0} : Vec3d{std::cos(angle), std::sin(angle), 0};
  });
  for (const double limit : {49.9, 50.1}) {
    const TrackingPlan plan =
        plan_for({.getter = Getter::closest, .step_mm = 0.5, .max_angle_deg = limit, .one_sided = true}, field);
    const StreamlineBatch batch = track(plan, field, {{5, 5, 2}});
    EXPECT_EQ(reason(batch, 0, 1), limit < 50 ? EndReason::no_direction : EndReason::outside_image);
    const double last = point(batch, 0, size_of(batch, 0) - 1).x;
    EXPECT_NEAR(last, limit < 50 ? 9.5 : 19.2, 0.3);
  }
}

TEST(CpuTracker, orders_initial_directions_by_amplitude_and_keeps_the_strongest) {
  const Field field = test::peak_field(grid(9, 9, 9), 4, [](Vec3d, Vec3d* peaks) {
    peaks[0] = {0, 0.5, 0};
    peaks[1] = {0, 0, 0.9};
    peaks[3] = {0.5, 0, 0};
  });
  TrackingOptions options{.getter = Getter::closest, .step_mm = 0.5};
  const auto axis_of = [](const StreamlineBatch& batch, std::size_t line) {
    const Vec3d way = point(batch, line, size_of(batch, line) - 1) - point(batch, line, 0);
    return std::fabs(way.x) > 1 ? 'x' : (std::fabs(way.y) > 1 ? 'y' : 'z');
  };
  const StreamlineBatch all = track(plan_for(options, field), field, {{4, 4, 4}});
  ASSERT_EQ(all.streamline_count(), 3u);
  EXPECT_EQ(axis_of(all, 0), 'z');
  EXPECT_EQ(axis_of(all, 1), 'y');  // as strong as x, but before it
  EXPECT_EQ(axis_of(all, 2), 'x');
  options.max_directions = 1;
  const StreamlineBatch one = track(plan_for(options, field), field, {{4, 4, 4}});
  ASSERT_EQ(one.streamline_count(), 1u);
  EXPECT_EQ(axis_of(one, 0), 'z');
}

TEST(CpuTracker, starts_in_given_directions) {
  const Field field = test::peak_field(grid(9, 9, 9), 2, [](Vec3d, Vec3d* peaks) {
    peaks[0] = {0, 0.5, 0};
    peaks[1] = {0, 0, 0.9};
  });
  const GivenDirections given{{{0, 0.8f, 0.6f}, {0, 0.6f, -0.8f}}};
  const TrackingPlan plan = plan_for({.getter = Getter::closest, .step_mm = 0.5, .one_sided = true}, field);
  const StreamlineBatch batch = track(plan, field, {{4, 4, 4}, {4, 4, 4}}, &given);
  ASSERT_EQ(batch.streamline_count(), 2u);
  EXPECT_GT(point(batch, 0, size_of(batch, 0) - 1).y, 7.5);
  EXPECT_LT(point(batch, 1, size_of(batch, 1) - 1).z, 0.5);
}

TEST(CpuTracker, refuses_a_field_that_the_getter_cannot_use) {
  const Field peaks = test::peak_field(grid(4, 4, 4), 1, [](Vec3d, Vec3d* p) { p[0] = {1, 0, 0}; });
  const auto pool = ThreadPool::create(1).value();
  for (const Getter getter : {Getter::boot, Getter::prob, Getter::ptt, Getter::det, Getter::tensor}) {
    const Status status = make_cpu_tracker(*pool)->supports(plan_for({.getter = getter}, peaks), peaks);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message().find(getter_name(getter)), std::string::npos) << status.error().message();
  }
  TrackingPlan other = plan_for({.getter = Getter::closest}, peaks);
  other.size.x = 5;
  EXPECT_FALSE(make_cpu_tracker(*pool)->supports(other, peaks));
}

}  // namespace
}  // namespace cingulum
