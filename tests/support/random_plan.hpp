// Random plans of tractography, the same for every backend (contract, section 7): a number gives a field, options,
// seeds, perhaps initial directions, and pieces into which the seeds are cut. Small, so that thousands run; every
// getter, kind of field, sphere and option comes up, and seeds lie on faces, edges and outside as well. The tests of
// each backend compare its batches with the CPU's (expect_same_as_cpu); a failure names the number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/analytic_field.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::test {

struct RandomPlan {
  std::string name;
  Field field;
  TrackingOptions options;
  std::vector<numerics::Vec3> seeds;
  GivenDirections directions;         // empty: none are given
  std::vector<std::uint64_t> pieces;  // of the seeds, in order
};

class RandomPlanMaker {
 public:
  explicit RandomPlanMaker(std::uint32_t number) : generator_(number) {}

  RandomPlan make(ThreadPool& pool) {
    RandomPlan plan;
    make_geometry();
    make_options(plan.options);
    plan.field = make_field(plan.options, plan.name, pool);
    make_seeds(plan);
    // Last, so that plans without it are what they were before there was float16.
    const bool may_be_float16 = plan.field.kind == FieldKind::amplitudes || plan.field.kind == FieldKind::harmonics;
    if (may_be_float16 && chance(4) && store_as_float16(plan.field)) plan.name += " in half precision";
    return plan;
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(generator_()) % end; }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  double real(double from, double to) { return from + (to - from) * (static_cast<double>(below(1u << 24)) / 0x1p24); }
  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& list) {
    return list[below(n)];
  }

  void make_geometry() {
    const auto side = [&] { return static_cast<std::int64_t>(chance(12) ? 1 + below(2) : 4 + below(9)); };
    const double edge = real(0.7, 2.5);
    geometry_ = grid(side(), side(), side(), {edge, chance(2) ? edge : real(0.7, 3), chance(2) ? edge : real(0.7, 3)});
    for (double& a : phase_) a = real(-2, 2);
  }

  Vec3d first(Vec3d p) const {
    return unit({1, phase_[0] * std::sin(0.4 * p.y + phase_[1]), phase_[2] * std::cos(0.3 * p.x)});
  }
  Vec3d second(Vec3d p) const {
    return unit({phase_[3] * std::sin(0.5 * p.z), 1, phase_[4] * std::cos(0.2 * p.x + phase_[1])});
  }
  double noise(double size) { return size * (real(-1, 1) + real(-1, 1)); }

  // In some plans a ball with soft borders, in others noise, in others everywhere.
  StopMap make_stop_map() {
    const std::uint32_t kind = below(3);
    return [this, kind](Vec3d p) {
      if (kind == 0) return 1.0f;
      if (kind == 1) return static_cast<float>(0.4 + noise(0.3));
      const double r = std::hypot(p.x - 0.5 * static_cast<double>(geometry_.size[0]),
                                  p.y - 0.5 * static_cast<double>(geometry_.size[1]),
                                  p.z - 0.5 * static_cast<double>(geometry_.size[2]));
      return static_cast<float>(1.1 - r / 7);
    };
  }

  void make_options(TrackingOptions& options) {
    options.getter = static_cast<Getter>(below(6));
    options.step_mm = chance(3) ? 0 : real(0.2, 1.2);
    options.max_angle_deg = chance(3) ? 60 : real(10, 90);
    options.max_length_mm = chance(4) ? real(3, 20) : 100;
    options.stop_threshold = chance(4) ? real(-0.1, 0.5) : 0.1;
    if (options.stop_threshold < 0) options.stop_threshold = 0;
    if (chance(3)) options.relative_threshold = real(0, 0.6);
    if (chance(5)) options.absolute_threshold = real(0, 0.2);
    if (chance(3)) options.relative_peak_threshold = real(0, 0.9);
    if (chance(3)) options.min_separation_deg = real(5, 80);
    if (chance(3)) options.max_directions = 1 + below(4);
    if (chance(4)) options.angular_weight = real(0, 1);
    options.one_sided = chance(6);
    options.refine = !chance(3);
    options.rk4 = chance(2);
    if (chance(4)) options.boot_attempts = 1 + below(9);
    if (chance(3)) options.boot_retry = BootRetry::no_peak_or_angle;
    options.boot_seed = chance(3);
    if (chance(4)) options.boot_min_signal = real(0.5, 20);
    if (chance(3)) options.ptt_probe_length_mm = real(0.5, 5);
    if (chance(3)) {
      options.ptt_probe_radius_mm = real(0.1, 1);
      options.ptt_probe_count = 1 + below(5);
    }
    if (chance(2)) options.ptt_probe_quality = 2 + below(8);
    if (chance(4)) options.ptt_exponent = real(0.5, 3);
    if (chance(4)) options.ptt_min_radius_mm = real(0.5, 5);
    options.ptt_weak_links = chance(2);
    options.ptt_tries = chance(8) ? 1000 : 1 + below(150);
    if (chance(4)) options.ptt_substeps = 1 + below(4);
    if (options.getter == Getter::ptt) options.max_length_mm = std::min(options.max_length_mm, 40.0);
    options.random_key = (static_cast<std::uint64_t>(generator_()) << 32) | generator_();
  }

  Field make_field(const TrackingOptions& options, std::string& name, ThreadPool& pool) {
    const StopMap stop = make_stop_map();
    name = getter_name(options.getter);
    switch (options.getter) {
      case Getter::tensor:
        return tensor_field(
            geometry_, [&](Vec3d p) { return first(p); }, stop);
      case Getter::boot: return bootstrap_field(name, stop, pool);
      case Getter::closest:
        if (chance(3)) {
          name += " on peaks";
          const std::size_t peaks = 1 + below(5);
          return peak_field(
              geometry_, peaks,
              [&](Vec3d p, Vec3d* list) {
                for (std::size_t i = 0; i < peaks; ++i) {
                  if (chance(4)) continue;
                  list[i] = (i % 2 == 0 ? first(p) : second(p)) * real(0.2, 1.1);
                }
              },
              stop);
        }
        break;
      default: break;
    }
    return chance(2) ? series_field(name, stop) : spherical_field(name, stop);
  }

  Field spherical_field(std::string& name, const StopMap& stop) {
    const std::string sphere = one_of(std::array<const char*, 6>{"repulsion724", "mirror321", "repulsion362",
                                                                 "repulsion724-full", "mirror406", "mirror501"});
    name += " on " + sphere;
    const bool lopsided = sphere.ends_with("full") && chance(2);
    const double size = chance(4) ? 0.3 : 0.03;
    return amplitude_field(
        geometry_, named_sphere(sphere).value(),
        [&](Vec3d p, Vec3d v) {
          const double a = numerics::dot(v, first(p)), b = numerics::dot(v, second(p));
          return std::pow(lopsided && a < 0 ? 0.8 * a : a, 10) + 0.7 * std::pow(b, 10) + noise(size);
        },
        stop);
  }

  Field series_field(std::string& name, const StopMap& stop) {
    const std::string sphere =
        one_of(std::array<const char*, 5>{"mirror321", "mirror321", "repulsion362", "mirror406", "repulsion724"});
    const int degree = 2 * static_cast<int>(1 + below(6));
    name += " on series of degree " + std::to_string(degree) + " on " + sphere;
    const double size = chance(4) ? 0.1 : 0.02;
    return harmonic_field(
        geometry_, named_sphere(sphere).value(), degree,
        [&](Vec3d p, double* c) {
          for (int j = 0; j < numerics::coefficient_count(degree, false); ++j) c[j] = noise(size);
          add_lobe(degree, first(p), 1, c);
          add_lobe(degree, second(p), 0.7, c);
        },
        stop);
  }

  Field bootstrap_field(std::string& name, const StopMap& stop, ThreadPool& pool) {
    const std::string sphere =
        one_of(std::array<const char*, 5>{"mirror321", "mirror321", "mirror321", "repulsion362", "repulsion724"});
    const std::size_t gradients = chance(3) ? 64 : (chance(3) ? 150 : 7 + below(chance(3) ? 294 : 60));
    int degree = 2;
    while (degree < 8 && numerics::coefficient_count(degree + 2, false) + 2 <= static_cast<int>(gradients) &&
           (degree < 4 || chance(3))) {
      degree += 2;
    }
    const bool csa = chance(3);
    name += fmt::format(" {} of degree {} with {} gradients on {}", csa ? "csa" : "opdt", degree, gradients, sphere);
    std::vector<Vec3d> directions;
    std::vector<std::uint8_t> is_b0;
    for (std::size_t i = 0; i < gradients + 3; ++i) {
      is_b0.push_back(i % 2 == 0 && i < 6 ? 1 : 0);
      directions.push_back(unit({noise(1), noise(1), 0.01 + noise(1)}));
    }
    const double size = chance(4) ? 10 : 3;
    const AllVoxels signals(
        geometry_, directions.size(),
        [&](Vec3d p, float* s) {
          for (std::size_t i = 0; i < directions.size(); ++i) {
            const auto fibre = [&](Vec3d axis) {
              const double c = numerics::dot(axis, directions[i]);
              return std::exp(-2 * (0.3 + 1.4 * c * c));
            };
            const double signal = is_b0[i] != 0 ? 1 : 0.6 * fibre(first(p)) + 0.4 * fibre(second(p));
            s[i] = static_cast<float>(100 * signal + noise(size));
          }
        },
        stop);
    return make_bootstrap_field(geometry_, signals.stop, signals.records(), directions, is_b0,
                                {.csa = csa, .degree = degree}, named_sphere(sphere).value(), pool)
        .value();
  }

  float coordinate(std::int64_t size) {
    const auto end = static_cast<double>(size);
    switch (below(8)) {
      case 0: return static_cast<float>(below(static_cast<std::uint32_t>(size)));
      case 1: return -0.5f;
      case 2: return static_cast<float>(end - 0.5);
      case 3: return static_cast<float>(real(-1, end));
      default: return static_cast<float>(real(-0.5, end - 0.5));
    }
  }

  void make_seeds(RandomPlan& plan) {
    const std::uint32_t count = 1 + below(40);
    for (std::uint32_t i = 0; i < count; ++i) {
      plan.seeds.push_back(
          {coordinate(geometry_.size[0]), coordinate(geometry_.size[1]), coordinate(geometry_.size[2])});
    }
    if (chance(6)) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const Vec3d v = unit({noise(1), noise(1), 0.01 + noise(1)});
        plan.directions.directions.push_back(
            {static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)});
      }
    }
    for (std::uint64_t left = count; left > 0;) {
      const std::uint64_t piece = chance(2) ? left : 1 + below(static_cast<std::uint32_t>(left));
      plan.pieces.push_back(piece);
      left -= piece;
    }
  }

  std::mt19937 generator_;
  ImageGeometry geometry_;
  double phase_[5] = {};
};

inline RandomPlan random_plan(std::uint32_t number, ThreadPool& pool) {
  return RandomPlanMaker(number).make(pool);
}

// What an adapter that a CPU emulates does in the time of a test: few seeds, short streamlines.
inline void cut_down(RandomPlan& plan) {
  const std::size_t seeds = std::min<std::size_t>(plan.seeds.size(), plan.options.getter == Getter::ptt ? 3 : 5);
  plan.seeds.resize(seeds);
  plan.directions.directions.resize(std::min(plan.directions.directions.size(), seeds));
  plan.pieces = {seeds};
  plan.options.max_length_mm = std::min(plan.options.max_length_mm, 12.0);
}

inline ::testing::AssertionResult same_batch(const StreamlineBatch& a, const StreamlineBatch& b) {
  if (a.offsets != b.offsets) {
    return ::testing::AssertionFailure() << a.streamline_count() << " streamlines of " << a.points.size() / 3
                                         << " points, and " << b.streamline_count() << " of " << b.points.size() / 3;
  }
  if (a.points.size() != b.points.size()) return ::testing::AssertionFailure() << "other numbers of points";
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    if (std::memcmp(&a.points[i], &b.points[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "point " << i / 3 << ": " << a.points[i] << " and " << b.points[i];
    }
  }
  if (a.seed_index != b.seed_index) return ::testing::AssertionFailure() << "other seeds";
  if (a.seed_point != b.seed_point) return ::testing::AssertionFailure() << "other places of seeds";
  if (a.end_reason != b.end_reason) return ::testing::AssertionFailure() << "other reasons to end";
  if (a.steps != b.steps) return ::testing::AssertionFailure() << a.steps << " steps and " << b.steps;
  if (a.seeds_outside != b.seeds_outside || a.seeds_without_direction != b.seeds_without_direction) {
    return ::testing::AssertionFailure() << "other counts of seeds that did not start";
  }
  return ::testing::AssertionSuccess();
}

// Runs the plan on both, in the same pieces; points that were compared.
inline std::uint64_t expect_same_as_cpu(Tracker& tracker, const RandomPlan& plan, ThreadPool& pool) {
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const std::unique_ptr<Seeds> seeds = listed_seeds(plan.seeds).value();
  const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool);
  const GivenDirections* const directions = plan.directions.directions.empty() ? nullptr : &plan.directions;
  const Status supported = tracker.supports(numbers, plan.field);
  EXPECT_TRUE(supported) << (supported ? "" : supported.error().message());
  const Status prepared = tracker.prepare(numbers, plan.field, *seeds, directions);
  EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
  EXPECT_TRUE(cpu->prepare(numbers, plan.field, *seeds, directions));
  if (!supported || !prepared) return 0;
  std::uint64_t first = 0, points = 0;
  StreamlineBatch batch, truth;
  for (const std::uint64_t piece : plan.pieces) {
    const Status tracked = tracker.track({first, piece}, batch);
    EXPECT_TRUE(tracked) << (tracked ? "" : tracked.error().message());
    EXPECT_TRUE(cpu->track({first, piece}, truth));
    if (!tracked) return points;
    const ::testing::AssertionResult same = same_batch(batch, truth);
    EXPECT_TRUE(same) << plan.name << ", seeds " << first << " to " << first + piece;
    if (!same) return points;
    points += truth.points.size() / 3;
    first += piece;
  }
  return points;
}

}  // namespace cingulum::test
