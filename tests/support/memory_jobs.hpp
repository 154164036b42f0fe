// What the tests of short memory track, on any device: a plan with what the CPU says, and fields that are long along z,
// so that a brick is a small part of one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "support/random_plan.hpp"

namespace cingulum::test {

// A plan made ready for a tracker, and what the CPU says.
struct Job {
  RandomPlan plan;
  TrackingPlan numbers;
  std::unique_ptr<Seeds> seeds;
  const GivenDirections* directions;
  StreamlineBatch truth;

  Job(RandomPlan given, ThreadPool& pool)
      : plan(std::move(given)),
        numbers(make_tracking_plan(plan.options, plan.field.geometry).value()),
        seeds(listed_seeds(plan.seeds).value()),
        directions(plan.directions.directions.empty() ? nullptr : &plan.directions) {
    const auto cpu = make_cpu_tracker(pool);
    EXPECT_TRUE(cpu->prepare(numbers, plan.field, *seeds, directions));
    EXPECT_TRUE(cpu->track({0, plan.seeds.size()}, truth));
  }
  [[nodiscard]] Status prepare(Tracker& tracker) const {
    return tracker.prepare(numbers, plan.field, *seeds, directions);
  }
  [[nodiscard]] ::testing::AssertionResult tracks_the_same(Tracker& tracker) const {
    StreamlineBatch batch;
    const Status tracked = tracker.track({0, plan.seeds.size()}, batch);
    if (!tracked) return ::testing::AssertionFailure() << plan.name << ": " << tracked.error().message();
    return same_batch(batch, truth);
  }
};

// Along z, so that bricks are a small part of it.
inline RandomPlan tall_plan(Getter getter, bool series, std::uint32_t number) {
  RandomPlan plan;
  plan.name = fmt::format("{} on a tall {}", getter_name(getter), series ? "series" : "sphere");
  const ImageGeometry geometry = grid(6, 6, 96, {1.5, 1.2, 1});
  std::mt19937 generator(number);
  const auto noise = [&](double size) { return std::normal_distribution<double>(0, size)(generator); };
  const auto axis = [](numerics::Vec3d p) { return unit({std::sin(0.2 * p.z), 0.3 * std::cos(0.1 * p.z), 1}); };
  const auto stop = [](numerics::Vec3d) { return 1.0f; };
  plan.options.getter = getter;
  plan.options.max_directions = 2;
  plan.options.random_key = number;
  plan.options.rk4 = getter == Getter::tensor;
  if (getter == Getter::tensor) {
    plan.field = tensor_field(geometry, axis, stop);
  } else if (series) {
    plan.field = harmonic_field(
        geometry, named_sphere("mirror321").value(), 8,
        [&](numerics::Vec3d p, double* c) {
          for (int j = 0; j < 45; ++j) c[j] = noise(0.02);
          add_lobe(8, axis(p), 1, c);
        },
        stop);
  } else {
    plan.field = amplitude_field(
        geometry, named_sphere("repulsion724").value(),
        [&](numerics::Vec3d p, numerics::Vec3d v) { return std::pow(numerics::dot(v, axis(p)), 10) + noise(0.02); },
        stop);
    if (number % 2 == 1) static_cast<void>(store_as_float16(plan.field));
  }
  for (std::uint32_t i = 0; i < 12; ++i) {
    plan.seeds.push_back({2.0f + 0.1f * static_cast<float>(i), 2.5f, 7.8f * static_cast<float>(i)});
  }
  return plan;
}

}  // namespace cingulum::test
