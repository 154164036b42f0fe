// Random plans of tractography, the same for every backend (contract, section 7): a number gives a recipe (PlanRecipe),
// and a recipe gives a field, options, seeds, perhaps initial directions, and pieces into which the seeds are cut.
// Small, so that thousands run; every getter, kind of field, sphere and option comes up, seeds lie on faces, edges and
// outside as well, and a quarter of the plans has ties: values exactly at the stopping threshold, directions exactly at
// the greatest angle, peaks of equal amplitude and equal angle, draws exactly between two directions. Some plans are
// also tracked as a whole run with regions, whose seeds several devices share. The tests of each backend compare its
// streamlines with the CPU's (expect_same_as_cpu); plan_shrinker.hpp makes a recipe that fails small.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "numerics/random.hpp"
#include "support/analytic_field.hpp"
#include "support/analytic_tracker.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/run/tracker.hpp"
#include "tract/run/tracking_run.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::test {

enum class PlanField { amplitudes, series, bootstrap, peaks, tensors };
enum class PlanStop { everywhere, noise, ball };
enum class PlanTie {
  none,
  threshold,  // many voxels have the threshold itself, the number above it or the one below; places on a lattice
  angle,      // from the middle of the image on, directions turn by exactly the greatest angle
  amplitude,  // two directions of equal amplitude; of stored peaks also of equal angle
  draw,       // the first draw of seed 0 lies exactly between two of 64 directions of equal weight
};

// A ball in voxel coordinates, and what happens to streamlines that meet it.
struct PlanRegion {
  enum class Rule { include, include_ordered, exclude, stop };
  Rule rule = Rule::include;
  bool is_mask = false;  // as voxels; else as a sphere of the world
  numerics::Vec3d centre = {};
  double radius = 1;
};

// Members at their defaults are the simplest that there are: the shrinker goes there.
struct PlanRecipe {
  std::uint32_t number = 0;  // of which it was made; the noise follows from it
  PlanField field = PlanField::amplitudes;
  std::array<std::int64_t, 3> size = {3, 1, 1};
  std::array<double, 3> edges_mm = {1, 1, 1};
  std::array<double, 5> phase = {};  // of the fibres' directions
  std::string sphere = "mirror321";
  int degree = 2;             // series, bootstrap
  std::size_t peaks = 1;      // of a voxel
  std::size_t gradients = 7;  // bootstrap
  bool csa = false;           // bootstrap
  bool is_lopsided = false;   // amplitudes: opposite directions differ
  bool is_float16 = false;    // amplitudes, series
  bool has_gaps = false;      // peaks: some are missing
  double noise = 0;           // of the field's values
  PlanStop stop = PlanStop::everywhere;
  PlanTie tie = PlanTie::none;
  std::array<std::size_t, 2> tie_vertices = {};  // of the sphere
  numerics::Vec3d tie_peak = {1, 0, 0};
  TrackingOptions options = {};
  std::vector<numerics::Vec3> seeds = {};
  std::vector<numerics::Vec3> directions = {};  // empty: none are given
  std::vector<std::uint64_t> pieces = {};       // of the seeds, in order
  std::vector<PlanRegion> regions = {};
  std::uint64_t chunk = 0;  // seeds taken at a time in a run that devices share; 0: there is no such run
};

struct RandomPlan {
  std::string name;
  Field field;
  TrackingOptions options;
  std::vector<numerics::Vec3> seeds;
  GivenDirections directions;         // empty: none are given
  std::vector<std::uint64_t> pieces;  // of the seeds, in order
};

inline numerics::Vec3 to_float(Vec3d v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
}

inline bool on_sphere(PlanField field) {
  return field != PlanField::peaks && field != PlanField::tensors;
}

// From a recipe to a plan. A voxel's numbers follow from the recipe and the voxel alone, so that an image that is cut
// down keeps those that are left.
class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanRecipe& recipe) : recipe_(recipe) {}

  RandomPlan build(ThreadPool& pool) {
    RandomPlan plan;
    plan.name = name();
    plan.options = recipe_.options;
    plan.field = make_field(pool);
    plan.seeds = recipe_.seeds;
    plan.directions.directions = recipe_.directions;
    plan.pieces = recipe_.pieces;
    if (recipe_.is_float16) static_cast<void>(store_as_float16(plan.field));
    return plan;
  }

  [[nodiscard]] std::string name() const {
    constexpr const char* ties[] = {"", ", values at the threshold", ", turns at the greatest angle",
                                    ", equal amplitudes", ", a draw between two directions"};
    std::string name(getter_name(recipe_.options.getter));
    switch (recipe_.field) {
      case PlanField::amplitudes: name += " on " + recipe_.sphere; break;
      case PlanField::series:
        name += fmt::format(" on series of degree {} on {}", recipe_.degree, recipe_.sphere);
        break;
      case PlanField::bootstrap:
        name += fmt::format(" {} of degree {} with {} gradients on {}", recipe_.csa ? "csa" : "opdt", recipe_.degree,
                            recipe_.gradients, recipe_.sphere);
        break;
      case PlanField::peaks: name += " on peaks"; break;
      case PlanField::tensors: break;
    }
    if (recipe_.is_float16) name += " in half precision";
    return name + ties[static_cast<std::size_t>(recipe_.tie)];
  }

  [[nodiscard]] ImageGeometry geometry() const {
    return grid(recipe_.size[0], recipe_.size[1], recipe_.size[2],
                {recipe_.edges_mm[0], recipe_.edges_mm[1], recipe_.edges_mm[2]});
  }

 private:
  // A number in [0, 1) of this voxel, channel and use.
  [[nodiscard]] double hashed(Vec3d p, std::uint64_t channel, std::uint64_t use) const {
    std::uint64_t x = (static_cast<std::uint64_t>(recipe_.number) << 32) + use;
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(p.x), static_cast<std::uint64_t>(p.y), static_cast<std::uint64_t>(p.z), channel}) {
      x = (x ^ part) * 0x9e3779b97f4a7c15ull;  // splitmix64's steps
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
      x ^= x >> 27;
    }
    return static_cast<double>(x >> 11) * 0x1p-53;
  }
  [[nodiscard]] double noise(Vec3d p, std::uint64_t channel, double size) const {
    if (size == 0) return 0;
    return size * (2 * hashed(p, channel, 1) + 2 * hashed(p, channel, 2) - 2);
  }

  [[nodiscard]] Vec3d first(Vec3d p) const {
    const auto& a = recipe_.phase;
    return unit({1, a[0] * std::sin(0.4 * p.y + a[1]), a[2] * std::cos(0.3 * p.x)});
  }
  [[nodiscard]] Vec3d second(Vec3d p) const {
    const auto& a = recipe_.phase;
    return unit({a[3] * std::sin(0.5 * p.z), 1, a[4] * std::cos(0.2 * p.x + a[1])});
  }
  [[nodiscard]] bool is_behind(Vec3d p) const { return 2 * p.x >= static_cast<double>(recipe_.size[0]); }

  [[nodiscard]] float stop_value(Vec3d p) const {
    if (recipe_.tie == PlanTie::threshold) {
      const auto threshold = static_cast<float>(recipe_.options.stop_threshold);
      switch (static_cast<int>(hashed(p, 0, 3) * 8)) {
        case 0:
        case 1: return threshold;
        case 2: return std::nextafter(threshold, 2.0f);
        case 3: return std::nextafter(threshold, -2.0f);
        default: return 1.0f;
      }
    }
    if (recipe_.stop == PlanStop::everywhere) return 1.0f;
    if (recipe_.stop == PlanStop::noise) return static_cast<float>(0.4 + noise(p, 1, 0.3));
    const double r =
        std::hypot(p.x - 0.5 * static_cast<double>(recipe_.size[0]), p.y - 0.5 * static_cast<double>(recipe_.size[1]),
                   p.z - 0.5 * static_cast<double>(recipe_.size[2]));
    return static_cast<float>(1.1 - r / 7);
  }

  Field make_field(ThreadPool& pool) {
    const StopMap stop = [this](Vec3d p) { return stop_value(p); };
    if (on_sphere(recipe_.field)) sphere_ = named_sphere(recipe_.sphere).value();
    switch (recipe_.field) {
      case PlanField::amplitudes: return spherical_field(stop);
      case PlanField::series: return series_field(stop);
      case PlanField::bootstrap: return bootstrap_field(stop, pool);
      case PlanField::tensors:
        return tensor_field(
            geometry(), [&](Vec3d p) { return recipe_.tie == PlanTie::none ? first(p) : axis(p); }, stop);
      case PlanField::peaks: break;
    }
    return peak_field(
        geometry(), recipe_.peaks, [&](Vec3d p, Vec3d* list) { write_peaks(p, list); }, stop);
  }

  // One of the image's axes.
  [[nodiscard]] Vec3d axis(Vec3d p) const {
    const int which = static_cast<int>(hashed(p, 0, 4) * 4);
    return which == 1 ? Vec3d{0, 1, 0} : which == 2 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
  }

  void write_peaks(Vec3d p, Vec3d* list) const {
    for (std::size_t i = 0; i < recipe_.peaks; ++i) {
      if (recipe_.has_gaps && hashed(p, i, 5) < 0.25) continue;
      const Vec3d turned = recipe_.tie_peak;
      switch (recipe_.tie) {
        case PlanTie::threshold: list[i] = i == 0 ? axis(p) : Vec3d{0, 1, 0}; break;
        // Every second is the mirror image of the one before: as long, and as far from the x axis.
        case PlanTie::angle:
          list[i] = !is_behind(p) ? Vec3d{1, 0, 0} : i % 2 == 0 ? turned : Vec3d{turned.x, -turned.y, turned.z};
          break;
        case PlanTie::amplitude: list[i] = i % 2 == 0 ? turned : Vec3d{turned.x, -turned.y, turned.z}; break;
        default: list[i] = (i % 2 == 0 ? first(p) : second(p)) * (0.2 + 0.9 * hashed(p, i, 6)); break;
      }
    }
  }

  [[nodiscard]] Vec3d vertex(std::size_t which) const {
    return sphere_.directions[recipe_.tie_vertices[which] % sphere_.size()];
  }
  // Whether the direction is this vertex of the sphere.
  [[nodiscard]] bool is_vertex(Vec3d v, std::size_t which) const {
    const Vec3d other = vertex(which);
    return v.x == other.x && v.y == other.y && v.z == other.z;
  }

  [[nodiscard]] double amplitude(Vec3d p, Vec3d v) const {
    const auto lobe = [&](std::size_t which) {
      return is_vertex(v, which) ? 1.0 : 0.98 * std::pow(numerics::dot(v, vertex(which)), 20);
    };
    switch (recipe_.tie) {
      case PlanTie::angle: return lobe(is_behind(p) ? 1 : 0);
      case PlanTie::amplitude: return std::max(lobe(0), lobe(1));
      case PlanTie::draw: return is_among_nearest(v) ? 1.0 : 0.0;
      default: break;
    }
    const double a = numerics::dot(v, first(p)), b = numerics::dot(v, second(p));
    const auto channel = static_cast<std::uint64_t>(1e6 * (v.x + 2 * v.y + 4 * v.z + 8));
    return std::pow(recipe_.is_lopsided && a < 0 ? 0.8 * a : a, 10) + 0.7 * std::pow(b, 10) +
           noise(p, channel, recipe_.noise);
  }

  Field spherical_field(const StopMap& stop) {
    if (recipe_.tie == PlanTie::draw) find_nearest_64();
    return amplitude_field(
        geometry(), sphere_, [&](Vec3d p, Vec3d v) { return amplitude(p, v); }, stop);
  }

  // The 64 vertices nearest to the first vertex of the tie; of those as near as each other the first.
  void find_nearest_64() {
    std::vector<std::size_t> order(sphere_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto cosine = [&](std::size_t i) { return numerics::dot(sphere_.directions[i], vertex(0)); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return cosine(i) > cosine(j); });
    for (std::size_t i = 0; i < 64; ++i) nearest_.push_back(sphere_.directions[order[i]]);
  }
  [[nodiscard]] bool is_among_nearest(Vec3d v) const {
    return std::any_of(nearest_.begin(), nearest_.end(),
                       [&](Vec3d other) { return v.x == other.x && v.y == other.y && v.z == other.z; });
  }

  Field series_field(const StopMap& stop) {
    return harmonic_field(
        geometry(), sphere_, recipe_.degree,
        [&](Vec3d p, double* c) {
          for (int j = 0; j < numerics::coefficient_count(recipe_.degree, false); ++j) {
            c[j] = noise(p, static_cast<std::uint64_t>(j), recipe_.noise);
          }
          if (recipe_.tie == PlanTie::angle) {
            add_lobe(recipe_.degree, vertex(is_behind(p) ? 1 : 0), 1, c);
            return;
          }
          add_lobe(recipe_.degree, first(p), 1, c);
          add_lobe(recipe_.degree, second(p), 0.7, c);
        },
        stop);
  }

  Field bootstrap_field(const StopMap& stop, ThreadPool& pool) {
    std::vector<Vec3d> directions;
    std::vector<std::uint8_t> is_b0;
    for (std::size_t i = 0; i < recipe_.gradients + 3; ++i) {
      is_b0.push_back(i % 2 == 0 && i < 6 ? 1 : 0);
      const Vec3d nowhere = {0, 0, 0};
      directions.push_back(
          unit({noise(nowhere, 3 * i + 7, 1), noise(nowhere, 3 * i + 8, 1), 0.01 + noise(nowhere, 3 * i + 9, 1)}));
    }
    const AllVoxels signals(
        geometry(), directions.size(),
        [&](Vec3d p, float* s) {
          const Vec3d a = recipe_.tie == PlanTie::angle ? vertex(is_behind(p) ? 1 : 0) : first(p);
          const Vec3d b = recipe_.tie == PlanTie::angle ? a : second(p);
          for (std::size_t i = 0; i < directions.size(); ++i) {
            const auto fibre = [&](Vec3d along) {
              const double c = numerics::dot(along, directions[i]);
              return std::exp(-2 * (0.3 + 1.4 * c * c));
            };
            const double signal = is_b0[i] != 0 ? 1 : 0.6 * fibre(a) + 0.4 * fibre(b);
            s[i] = static_cast<float>(100 * signal + noise(p, i + 1000, 100 * recipe_.noise));
          }
        },
        stop);
    return make_bootstrap_field(geometry(), signals.stop, signals.records(), directions, is_b0,
                                {.csa = recipe_.csa, .degree = recipe_.degree}, sphere_, pool)
        .value();
  }

  const PlanRecipe& recipe_;
  Sphere sphere_;
  std::vector<Vec3d> nearest_;
};

inline RandomPlan build_plan(const PlanRecipe& recipe, ThreadPool& pool) {
  return PlanBuilder(recipe).build(pool);
}

// From a number to a recipe.
class RecipeMaker {
 public:
  explicit RecipeMaker(std::uint32_t number) : generator_(number) { recipe_.number = number; }

  PlanRecipe make() {
    make_options();
    make_geometry();
    make_field();
    recipe_.stop = static_cast<PlanStop>(below(3));
    make_seeds();
    if (chance(4)) make_tie();
    const bool may_be_float16 = recipe_.field == PlanField::amplitudes || recipe_.field == PlanField::series;
    recipe_.is_float16 = may_be_float16 && recipe_.tie == PlanTie::none && chance(4);
    if (chance(8)) make_shared_run();
    if (chance(4)) recipe_.options.stop_rule = StopRule::nearest;
    if (chance(4)) recipe_.options.second_half = SecondHalf::initial_direction;
    return recipe_;
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(generator_()) % end; }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  double real(double from, double to) { return from + (to - from) * (static_cast<double>(below(1u << 24)) / 0x1p24); }
  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& list) {
    return list[below(n)];
  }

  void make_options() {
    TrackingOptions& options = recipe_.options;
    options.getter = static_cast<Getter>(below(6));
    options.step_mm = chance(3) ? 0 : real(0.2, 1.2);
    options.max_angle_deg = chance(3) ? 60 : real(10, 90);
    options.max_length_mm = chance(4) ? real(3, 20) : 100;
    options.stop_threshold = chance(4) ? real(-0.1, 0.5) : 0.1;
    if (options.stop_threshold < 0) options.stop_threshold = 0;
    if (chance(3)) options.relative_threshold = chance(3) ? 0 : real(0, 0.6);
    if (chance(5)) options.absolute_threshold = real(0, 0.2);
    if (chance(3)) options.relative_peak_threshold = real(0, 0.9);
    if (chance(3)) options.min_separation_deg = real(5, 80);
    if (chance(3)) options.max_directions = 1 + below(4);
    options.draw_start = chance(4);
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
    if (chance(2)) options.ptt_bound_interval = 1 + below(6);
    if (chance(4)) options.ptt_substeps = 1 + below(4);
    if (options.getter == Getter::ptt) options.max_length_mm = std::min(options.max_length_mm, 40.0);
    options.random_key = (static_cast<std::uint64_t>(generator_()) << 32) | generator_();
  }

  void make_geometry() {
    const double edge = real(0.7, 2.5);
    recipe_.edges_mm = {edge, chance(2) ? edge : real(0.7, 3), chance(2) ? edge : real(0.7, 3)};
    for (auto& side : recipe_.size) side = static_cast<std::int64_t>(chance(12) ? 1 + below(2) : 4 + below(9));
    for (double& a : recipe_.phase) a = real(-2, 2);
  }

  void make_field() {
    const Getter getter = recipe_.options.getter;
    if (getter == Getter::tensor) {
      recipe_.field = PlanField::tensors;
    } else if (getter == Getter::boot) {
      make_bootstrap();
    } else if (getter == Getter::closest && chance(3)) {
      recipe_.field = PlanField::peaks;
      recipe_.peaks = 1 + below(5);
      recipe_.has_gaps = true;
    } else if (chance(2)) {
      recipe_.field = PlanField::series;
      recipe_.sphere =
          one_of(std::array<const char*, 5>{"mirror321", "mirror321", "repulsion362", "mirror406", "repulsion724"});
      recipe_.degree = 2 * static_cast<int>(1 + below(6));
      recipe_.noise = chance(4) ? 0.1 : 0.02;
    } else {
      recipe_.sphere = one_of(std::array<const char*, 6>{"repulsion724", "mirror321", "repulsion362",
                                                         "repulsion724-full", "mirror406", "mirror501"});
      recipe_.is_lopsided = recipe_.sphere.ends_with("full") && chance(2);
      recipe_.noise = chance(4) ? 0.3 : 0.03;
    }
  }

  void make_bootstrap() {
    recipe_.field = PlanField::bootstrap;
    recipe_.sphere =
        one_of(std::array<const char*, 5>{"mirror321", "mirror321", "mirror321", "repulsion362", "repulsion724"});
    recipe_.gradients = chance(3) ? 64 : (chance(3) ? 150 : 7 + below(chance(3) ? 294 : 60));
    while (recipe_.degree < 8 &&
           numerics::coefficient_count(recipe_.degree + 2, false) + 2 <= static_cast<int>(recipe_.gradients) &&
           (recipe_.degree < 4 || chance(3))) {
      recipe_.degree += 2;
    }
    recipe_.csa = chance(3);
    recipe_.noise = chance(4) ? 0.1 : 0.03;
  }

  float coordinate(std::int64_t size) {
    const auto end = static_cast<double>(size);
    switch (below(9)) {
      case 0: return static_cast<float>(below(static_cast<std::uint32_t>(size)));
      case 1: return -0.5f;
      case 2: return static_cast<float>(end - 0.5);
      case 3: return static_cast<float>(real(-1, end));
      case 4: return static_cast<float>(below(static_cast<std::uint32_t>(size))) + 0.5f;  // between two voxels
      default: return static_cast<float>(real(-0.5, end - 0.5));
    }
  }

  void make_seeds() {
    const std::uint32_t count = 1 + below(40);
    for (std::uint32_t i = 0; i < count; ++i) {
      recipe_.seeds.push_back({coordinate(recipe_.size[0]), coordinate(recipe_.size[1]), coordinate(recipe_.size[2])});
    }
    if (chance(6)) {
      const auto part = [&] { return real(-1, 1) + real(-1, 1); };
      for (std::uint32_t i = 0; i < count; ++i) {
        recipe_.directions.push_back(to_float(unit({part(), part(), 0.01 + part()})));
      }
    }
    for (std::uint64_t left = count; left > 0;) {
      const std::uint64_t piece = chance(2) ? left : 1 + below(static_cast<std::uint32_t>(left));
      recipe_.pieces.push_back(piece);
      left -= piece;
    }
  }

  // Edges are powers of two and steps half of them, so that places on a lattice of half voxels are met exactly, and
  // what is interpolated there between equal numbers is that number.
  void make_tie() {
    recipe_.tie = static_cast<PlanTie>(1 + below(3));
    if (recipe_.field == PlanField::amplitudes && recipe_.options.getter == Getter::prob && chance(2)) {
      recipe_.tie = PlanTie::draw;
    }
    if (recipe_.field == PlanField::tensors) recipe_.tie = PlanTie::threshold;
    if (recipe_.tie == PlanTie::amplitude && recipe_.field != PlanField::amplitudes &&
        recipe_.field != PlanField::peaks) {
      recipe_.tie = PlanTie::angle;
    }
    const double edge = one_of(std::array<double, 3>{0.5, 1, 2});
    recipe_.edges_mm = {edge, edge, edge};
    recipe_.size = {4 + below(4), 3 + below(4), 3 + below(4)};
    recipe_.options.step_mm = 0;
    recipe_.options.stop_threshold = one_of(std::array<double, 3>{0.1, 0.25, 0.4});
    recipe_.stop = PlanStop::everywhere;
    recipe_.noise = 0;
    recipe_.has_gaps = false;
    recipe_.is_lopsided = false;
    recipe_.options.refine = false;
    for (auto& seed : recipe_.seeds) seed = {on_lattice(0), on_lattice(1), on_lattice(2)};
    if (recipe_.tie == PlanTie::angle || recipe_.tie == PlanTie::amplitude) {
      recipe_.directions.clear();
      // In the front half, so that streamlines come to the middle.
      for (auto& seed : recipe_.seeds) seed.x = static_cast<float>(below(2));
      if (recipe_.field == PlanField::peaks) {
        tie_of_peaks();
      } else {
        tie_of_vertices();
      }
    } else if (recipe_.tie == PlanTie::draw) {
      tie_of_a_draw();
    }
  }

  float on_lattice(std::size_t axis) {
    const auto size = static_cast<std::uint32_t>(recipe_.size[axis]);
    return static_cast<float>(below(size)) + (chance(3) ? 0.5f : 0.0f);
  }

  // The angle whose cosine, as the plan has it, is exactly this number.
  bool set_angle(float cosine) {
    TrackingOptions& options = recipe_.options;
    const double angle = std::acos(static_cast<double>(cosine)) * 57.295779513082320877;
    if (!(angle > 1 && angle <= 90)) return false;
    options.max_angle_deg = angle;
    const auto plan = make_tracking_plan(options, PlanBuilder(recipe_).geometry());
    return plan && plan->cos_max_angle == cosine;
  }

  void tie_of_peaks() {
    recipe_.peaks = 1 + below(3);
    for (int attempt = 0; attempt < 100; ++attempt) {
      recipe_.tie_peak = unit({real(0.3, 1), real(0.1, 1), real(-0.5, 0.5)});
      const numerics::Vec3 turned = numerics::normalise(to_float(recipe_.tie_peak));
      if (recipe_.tie == PlanTie::amplitude || set_angle(turned.x)) return;
    }
    recipe_.tie = PlanTie::none;
  }

  void tie_of_vertices() {
    const Sphere sphere = named_sphere(recipe_.sphere).value();
    const auto count = static_cast<std::uint32_t>(sphere.size());
    for (int attempt = 0; attempt < 1000; ++attempt) {
      recipe_.tie_vertices = {below(count), below(count)};
      const Vec3d a = sphere.directions[recipe_.tie_vertices[0]], b = sphere.directions[recipe_.tie_vertices[1]];
      const double angle = std::acos(std::abs(numerics::dot(a, b))) * 57.295779513082320877;
      // Streamlines run along x mostly.
      if (!(std::abs(a.x) > 0.8) || !(angle > 20 && angle < 70)) continue;
      if (recipe_.tie == PlanTie::amplitude) {
        recipe_.options.max_angle_deg = 90;
        recipe_.options.min_separation_deg = 15;
        return;
      }
      const float cosine = numerics::dot(to_float(a), to_float(b));
      if (set_angle(sphere.is_hemisphere ? std::abs(cosine) : cosine)) return;
    }
    recipe_.tie = PlanTie::none;
  }

  void tie_of_a_draw() {
    const Sphere sphere = named_sphere(recipe_.sphere).value();
    recipe_.tie_vertices[0] = below(static_cast<std::uint32_t>(sphere.size()));
    const Vec3d along = sphere.directions[recipe_.tie_vertices[0]];
    TrackingOptions& options = recipe_.options;
    options.max_angle_deg = 90;
    options.angular_weight = 0;
    options.relative_threshold = 0.1;
    options.absolute_threshold = 0;
    for (auto& seed : recipe_.seeds) seed = {1, 1, 1};
    recipe_.directions.assign(recipe_.seeds.size(), to_float(along));
    // 64 weights of one: the threshold of the choice is whole where the draw is a multiple of 2^-6.
    const numerics::DrawCounter first_step{0u, numerics::DrawPurpose::step, 0u, 0u, 0u, 0u};
    for (;; ++options.random_key) {
      const std::uint32_t word = numerics::random_word(numerics::philox_key(options.random_key), first_step, 0u) >> 8;
      if (word != 0u && word % (1u << 18) == 0u) return;
    }
  }

  void make_shared_run() {
    recipe_.chunk = 1 + below(static_cast<std::uint32_t>(recipe_.seeds.size()));
    const std::uint32_t regions = below(4);
    for (std::uint32_t i = 0; i < regions; ++i) {
      PlanRegion region;
      region.rule = static_cast<PlanRegion::Rule>(below(4));
      region.is_mask = chance(2);
      // Whole numbers and halves: places on faces, and the image's border.
      const auto place = [&](std::size_t axis) {
        return 0.5 * below(static_cast<std::uint32_t>(2 * recipe_.size[axis] + 1)) - 0.5;
      };
      region.centre = {place(0), place(1), place(2)};
      region.radius = 0.5 * (1 + below(8));
      recipe_.regions.push_back(region);
    }
  }

  std::mt19937 generator_;
  PlanRecipe recipe_;
};

inline PlanRecipe random_recipe(std::uint32_t number) {
  return RecipeMaker(number).make();
}

inline RandomPlan random_plan(std::uint32_t number, ThreadPool& pool) {
  return build_plan(random_recipe(number), pool);
}

// What an adapter that a CPU emulates does in the time of a test: few seeds, short streamlines.
template <class Plan>
void cut_down(Plan& plan) {
  const std::size_t seeds = std::min<std::size_t>(plan.seeds.size(), plan.options.getter == Getter::ptt ? 3 : 5);
  plan.seeds.resize(seeds);
  if constexpr (requires { plan.directions.directions; }) {
    plan.directions.directions.resize(std::min(plan.directions.directions.size(), seeds));
  } else {
    plan.directions.resize(std::min(plan.directions.size(), seeds));
    plan.chunk = std::min<std::uint64_t>(plan.chunk, 2);
  }
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

// What is different, nothing where all is the same; and the points that were the same.
struct PlanComparison {
  std::string difference;
  std::uint64_t points = 0;
};

using MakeTracker = std::function<std::unique_ptr<Tracker>()>;

// The plan on both, in the same pieces.
inline PlanComparison compare_with_cpu(Tracker& tracker, const RandomPlan& plan, ThreadPool& pool) {
  PlanComparison result;
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const std::unique_ptr<Seeds> seeds = listed_seeds(plan.seeds).value();
  const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool);
  const GivenDirections* const directions = plan.directions.directions.empty() ? nullptr : &plan.directions;
  const auto failed = [&](const Status& status) {
    if (!status) result.difference = status.error().message();
    return !status;
  };
  if (failed(tracker.supports(numbers, plan.field)) ||
      failed(tracker.prepare(numbers, plan.field, *seeds, directions)) ||
      failed(cpu->prepare(numbers, plan.field, *seeds, directions))) {
    return result;
  }
  std::uint64_t first = 0;
  StreamlineBatch batch, truth;
  for (const std::uint64_t piece : plan.pieces) {
    if (failed(tracker.track({first, piece}, batch)) || failed(cpu->track({first, piece}, truth))) return result;
    const ::testing::AssertionResult same = same_batch(batch, truth);
    if (!same) {
      result.difference = fmt::format("seeds {} to {}: {}", first, first + piece, same.message());
      return result;
    }
    result.points += truth.points.size() / 3;
    first += piece;
  }
  return result;
}

inline RegionRules region_rules(const PlanRecipe& recipe) {
  const ImageGeometry geometry = PlanBuilder(recipe).geometry();
  RegionRules rules;
  for (const PlanRegion& given : recipe.regions) {
    const Vec3d world = geometry.voxel_to_world.apply(given.centre);
    const auto sphere = [&](double radius) { return Region::of_sphere("ball", world, radius, geometry).value(); };
    const double radius_mm = given.radius * recipe.edges_mm[0];
    std::vector<std::uint8_t> mask;
    if (given.is_mask) {
      const Region inside = sphere(radius_mm);
      mask = over_voxels<std::uint8_t>(geometry, 1,
                                       [&](Vec3d p, std::uint8_t* set) { *set = inside.contains(p) ? 1 : 0; });
    }
    // A ball between all voxels has none of them.
    const bool has_voxels = std::find(mask.begin(), mask.end(), 1) != mask.end();
    const Region region = has_voxels ? Region::of_mask("ball", geometry, mask, geometry).value() : sphere(radius_mm);
    switch (given.rule) {
      case PlanRegion::Rule::include: rules.include.push_back(region); break;
      case PlanRegion::Rule::include_ordered: rules.include_ordered.push_back(region); break;
      case PlanRegion::Rule::exclude: rules.exclude.push_back(region); break;
      case PlanRegion::Rule::stop: rules.stop.push_back(region); break;
    }
  }
  return rules;
}

// A whole run with the plan's regions, whose seeds these trackers share in chunks, beside one by the CPU alone.
inline PlanComparison compare_shared_run(std::span<Tracker* const> trackers, const PlanRecipe& recipe,
                                         const RandomPlan& plan, ThreadPool& pool) {
  PlanComparison result;
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const std::unique_ptr<Seeds> seeds = listed_seeds(plan.seeds).value();
  const GivenDirections* const directions = plan.directions.directions.empty() ? nullptr : &plan.directions;
  TrackingRunOptions options;
  options.save_seeds = true;
  options.selection.regions = region_rules(recipe);
  const auto run = [&](std::span<Tracker* const> among, std::uint64_t chunk, MemoryWriter& writer) -> Status {
    for (Tracker* const tracker : among) CGL_TRY(tracker->prepare(numbers, plan.field, *seeds, directions));
    options.chunk_seeds = chunk;
    options.fixed_chunks = true;
    return run_tracking(among, *seeds, plan.field.geometry, options, writer, nullptr).map([](const auto&) {});
  };
  const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool);
  Tracker* const alone[] = {cpu.get()};
  MemoryWriter truth, shared;
  const Status expected = run(alone, plan.seeds.size(), truth);
  const Status found = run(trackers, recipe.chunk, shared);
  if (!expected || !found) {
    result.difference = (!expected ? expected : found).error().message();
  } else if (shared.offsets != truth.offsets) {
    result.difference = fmt::format("a shared run kept {} streamlines, the CPU alone {}, or of other lengths",
                                    shared.offsets.size() - 1, truth.offsets.size() - 1);
  } else if (shared.positions.size() != truth.positions.size() ||
             std::memcmp(shared.positions.data(), truth.positions.data(), 4 * truth.positions.size()) != 0) {
    result.difference = "a shared run has other points than the CPU alone";
  } else if (shared.data != truth.data) {
    result.difference = "a shared run has other seeds or reasons to end than the CPU alone";
  }
  result.points = truth.positions.size() / 3;
  return result;
}

// All that a recipe asks for: the plan in its pieces, and the run that the tracker shares with the CPU.
inline PlanComparison compare_with_cpu(const MakeTracker& make, const PlanRecipe& recipe, ThreadPool& pool) {
  const RandomPlan plan = build_plan(recipe, pool);
  PlanComparison result = compare_with_cpu(*make(), plan, pool);
  if (!result.difference.empty() || recipe.chunk == 0 || plan.seeds.empty()) return result;
  const std::unique_ptr<Tracker> one = make(), cpu = make_cpu_tracker(pool);
  Tracker* const trackers[] = {one.get(), cpu.get()};
  result.difference = compare_shared_run(trackers, recipe, plan, pool).difference;
  return result;
}

// The plan on both, in the same pieces; points that were compared.
inline std::uint64_t expect_same_as_cpu(Tracker& tracker, const RandomPlan& plan, ThreadPool& pool) {
  const PlanComparison result = compare_with_cpu(tracker, plan, pool);
  EXPECT_EQ(result.difference, "") << plan.name;
  return result.points;
}

}  // namespace cingulum::test
