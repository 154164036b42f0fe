// What each getter draws or finds at one point, against closed forms and independent implementations: prob's
// draws, boot's mean and covariance, the peaks of dmri/models/peaks.hpp, refinement, eigenvectors, curvatures of ptt.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "dmri/models/bootstrap.hpp"
#include "dmri/models/peaks.hpp"
#include "dmri/models/q_ball.hpp"
#include "numerics/lanes_portable.hpp"
#include "support/analytic_field.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/kernel/track.hpp"

namespace cingulum::getters_tests {
namespace {

using numerics::Vec3;
using numerics::Vec3d;
using Lanes = numerics::PortableLanes;

Sphere sphere(const char* name) {
  return named_sphere(name).value();
}

// Plan, tables and slab for one field.
struct Bench {
  Bench(Field field_, const TrackingOptions& options)
      : field(std::move(field_)),
        plan(make_tracking_plan(options, field.geometry).value()),
        tables(make_kernel_tables(plan, field).value()),
        input(make_tracking_input(plan, field, tables)),
        memory(input) {}
  [[nodiscard]] const Slab& slab() const { return memory.slab(); }

  Field field;
  TrackingPlan plan;
  KernelTables tables;
  TrackingInput input;
  SlabMemory memory;
};

// Chi-square over bins that are expected to hold at least 20; the bins below are joined to one.
struct ChiSquare {
  double value = 0;
  double degrees = -1;
  // Wilson and Hilferty's approximation: about normal.
  [[nodiscard]] double z() const {
    const double v = 2 / (9 * degrees);
    return (std::cbrt(value / degrees) - (1 - v)) / std::sqrt(v);
  }
};

ChiSquare chi_square(const std::vector<double>& expected, const std::vector<double>& found) {
  ChiSquare result;
  double pooled_expected = 0, pooled_found = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] < 20) {
      pooled_expected += expected[i];
      pooled_found += found[i];
      continue;
    }
    result.value += (found[i] - expected[i]) * (found[i] - expected[i]) / expected[i];
    result.degrees += 1;
  }
  if (pooled_expected >= 20) {
    result.value += (pooled_found - pooled_expected) * (pooled_found - pooled_expected) / pooled_expected;
    result.degrees += 1;
  }
  return result;
}

// Check (d). `amplitude` is the function that the field holds at the point.
void expect_draws_follow(const Bench& bench, Vec3d ahead, const std::function<double(Vec3d)>& amplitude) {
  const Sphere& directions = bench.field.sphere;
  std::vector<double> weight(directions.size());
  double largest = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    weight[i] = std::max(0.0, amplitude(directions.directions[i]));
    largest = std::max(largest, weight[i]);
  }
  double total = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double cosine = std::fabs(numerics::dot(directions.directions[i], ahead));
    if (weight[i] < 0.1 * largest || cosine < std::cos(60 * M_PI / 180)) weight[i] = 0;
    total += weight[i];
  }
  std::map<std::array<float, 3>, std::size_t> vertex_of;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const Vec3d v = directions.directions[i];
    const Vec3d along = numerics::dot(v, ahead) < 0 ? -v : v;
    vertex_of[{static_cast<float>(along.x), static_cast<float>(along.y), static_cast<float>(along.z)}] = i;
  }
  constexpr std::uint32_t draws = 1'000'000;
  std::vector<double> found(weight.size()), expected(weight.size());
  const float position[3] = {2.3f, 2.6f, 1.8f};
  const float way[3] = {static_cast<float>(ahead.x), static_cast<float>(ahead.y), static_cast<float>(ahead.z)};
  for (std::uint32_t i = 0; i < draws; ++i) {
    float direction[3];
    ASSERT_TRUE(
        best_cpu_kernels().next_direction(bench.input, bench.slab(), i / 1000, i % 1000, position, way, direction));
    const auto at = vertex_of.find({direction[0], direction[1], direction[2]});
    ASSERT_NE(at, vertex_of.end()) << "not a direction of the sphere, or on the wrong side";
    ASSERT_GT(weight[at->second], 0) << "a direction without weight was drawn";
    found[at->second] += 1;
  }
  for (std::size_t i = 0; i < weight.size(); ++i) expected[i] = draws * weight[i] / total;
  const ChiSquare test = chi_square(expected, found);
  EXPECT_GT(test.degrees, 20);
  EXPECT_LT(test.z(), 4) << test.value << " with " << test.degrees << " degrees of freedom";
}

const Vec3d axis_1 = test::unit({0.9, 0.2, 0.4});
const Vec3d axis_2 = test::unit({0.4, 0.8, -0.5});

TEST(Prob, draws_directions_in_proportion_to_their_amplitudes) {
  const auto amplitude = [](Vec3d v) {
    return std::pow(numerics::dot(v, axis_1), 6) + 0.6 * std::pow(numerics::dot(v, axis_2), 8) - 0.05;
  };
  for (const char* name : {"repulsion724", "mirror321"}) {
    const Bench bench(
        test::amplitude_field(test::grid(5, 5, 5), sphere(name), [&](Vec3d, Vec3d v) { return amplitude(v); }),
        {.getter = Getter::prob});
    expect_draws_follow(bench, test::unit({0.7, 0.5, 0.1}), amplitude);
  }
}

TEST(Prob, draws_from_a_series_in_proportion_to_it) {
  constexpr int degree = 8;
  std::vector<double> c(45);
  test::add_lobe(degree, axis_1, 1, c.data());
  test::add_lobe(degree, axis_2, 0.6, c.data());
  const auto amplitude = [&](Vec3d v) {
    double values[45], sum = 0;
    numerics::evaluate_harmonics({numerics::HarmonicConvention::descoteaux07_legacy, degree, false}, v, values);
    for (std::size_t j = 0; j < 45; ++j) sum += c[j] * values[j];
    return sum;
  };
  for (const char* name : {"mirror321", "repulsion362"}) {
    const Bench bench(test::harmonic_field(test::grid(5, 5, 5), sphere(name), degree,
                                           [&](Vec3d, double* to) { std::copy(c.begin(), c.end(), to); }),
                      {.getter = Getter::prob});
    expect_draws_follow(bench, test::unit({0.7, 0.5, 0.1}), amplitude);
  }
}

TEST(Prob, finds_no_direction_where_nothing_lies_in_the_cone) {
  const Sphere directions = sphere("repulsion724");
  const Bench bench(
      test::amplitude_field(test::grid(3, 3, 3), directions, [&](Vec3d, Vec3d v) { return v.z > 0.99 ? 1.0 : 0.0; }),
      {.getter = Getter::prob, .max_angle_deg = 45});
  const float position[3] = {1, 1, 1}, ahead[3] = {1, 0, 0}, up[3] = {0, 0, 1};
  float direction[3];
  for (const CpuKernels* kernels : {portable_kernels(), avx2_kernels(), avx512_kernels()}) {
    if (kernels == nullptr) continue;
    EXPECT_FALSE(kernels->next_direction(bench.input, bench.slab(), 1, 1, position, ahead, direction));
    EXPECT_TRUE(kernels->next_direction(bench.input, bench.slab(), 1, 1, position, up, direction));
  }
}

TEST(Prob, on_a_full_sphere_tells_a_direction_from_its_opposite) {
  const Bench bench(test::amplitude_field(test::grid(3, 3, 3), sphere("repulsion362-full"),
                                          [&](Vec3d, Vec3d v) { return v.x > 0.95 ? 1.0 : 0.0; }),
                    {.getter = Getter::prob});
  const float position[3] = {1, 1, 1}, ahead[3] = {1, 0, 0}, back[3] = {-1, 0, 0};
  float direction[3];
  EXPECT_TRUE(best_cpu_kernels().next_direction(bench.input, bench.slab(), 1, 1, position, ahead, direction));
  EXPECT_GT(direction[0], 0.9f);
  EXPECT_FALSE(best_cpu_kernels().next_direction(bench.input, bench.slab(), 1, 1, position, back, direction));
}

// The weight (1 - w) + w |cos| at w = 1 takes all from directions at right angles.
TEST(Prob, weights_amplitudes_by_the_angle_to_the_direction_of_travel) {
  const Sphere directions = sphere("repulsion724");
  Bench bench(test::amplitude_field(test::grid(3, 3, 3), directions, [&](Vec3d, Vec3d) { return 1.0; }),
              {.getter = Getter::prob, .max_angle_deg = 90, .relative_threshold = 0, .angular_weight = 1});
  const float position[3] = {1, 1, 1}, ahead[3] = {0, 0, 1};
  double mean = 0;
  constexpr int draws = 40000;
  for (int i = 0; i < draws; ++i) {
    float direction[3];
    ASSERT_TRUE(best_cpu_kernels().next_direction(bench.input, bench.slab(), 0, static_cast<std::uint32_t>(i), position,
                                                  ahead, direction));
    mean += static_cast<double>(direction[2]) / draws;
  }
  // Density cos over the hemisphere: the mean cosine is 2/3; without weights it is 1/2.
  EXPECT_NEAR(mean, 2.0 / 3, 0.01);
}

// The greatest angle is taken, one above it is not: at a cosine exactly equal to the limit, and with a limit that is
// the next number above it. For every instruction set.
struct ConeCase {
  const char* name;
  Bench bench;
  Vec3 ahead;
  Vec3 expected;  // exactly at the limit
};

void expect_the_limit_is_taken(ConeCase c) {
  SCOPED_TRACE(c.name);
  const float position[3] = {1, 1, 1}, ahead[3] = {c.ahead.x, c.ahead.y, c.ahead.z};
  const float cosine = numerics::absolute(numerics::dot(c.expected, c.ahead));
  int sets = 0;
  for (const CpuKernels* kernels : {portable_kernels(), avx2_kernels(), avx512_kernels()}) {
    if (kernels == nullptr) continue;
    ++sets;
    SCOPED_TRACE(kernels->name);
    float direction[3];
    const auto found = [&](float limit) {
      c.bench.input.plan.cos_max_angle = limit;
      return kernels->next_direction(c.bench.input, c.bench.slab(), 1, 1, position, ahead, direction);
    };
    ASSERT_TRUE(found(cosine));
    EXPECT_EQ(direction[0], c.expected.x);
    EXPECT_EQ(direction[1], c.expected.y);
    EXPECT_EQ(direction[2], c.expected.z);
    EXPECT_TRUE(found(std::nextafter(cosine, 0.0f)));
    EXPECT_FALSE(found(std::nextafter(cosine, 1.0f)));
  }
  EXPECT_GT(sets, 0);
}

TEST(Cone, of_every_getter_includes_the_greatest_angle) {
  const auto turned = [](Vec3d v) {
    return numerics::normalise(Vec3{static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)});
  };
  const Vec3d peak{0.8, 0.5, -0.3};
  expect_the_limit_is_taken(
      {"closest of stored peaks",
       Bench(test::peak_field(test::grid(3, 3, 3), 1, [&](Vec3d, Vec3d* list) { list[0] = peak; }),
             {.getter = Getter::closest}),
       {1, 0, 0},
       turned(peak)});
  // One direction of the sphere has all the weight.
  const Sphere directions = sphere("repulsion724");
  const auto float_of = [](Vec3d v) {
    return Vec3{static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
  };
  std::size_t other = 1;
  while (!(numerics::dot(directions.directions[0], directions.directions[other]) > 0.5 &&
           numerics::dot(directions.directions[0], directions.directions[other]) < 0.8)) {
    ++other;
    ASSERT_LT(other, directions.size());
  }
  const Vec3d wanted = directions.directions[other];
  for (const Getter getter : {Getter::closest, Getter::det, Getter::prob}) {
    expect_the_limit_is_taken(
        {getter_name(getter).data(),
         Bench(test::amplitude_field(test::grid(3, 3, 3), directions,
                                     [&](Vec3d, Vec3d v) { return v.x == wanted.x && v.y == wanted.y ? 1.0 : 0.0; }),
               {.getter = getter}),
         float_of(directions.directions[0]), float_of(wanted)});
  }
}

// The first of peaks at equal angles is taken, and the lower slot of equal amplitudes (contract, section 3).
TEST(Closest, of_two_peaks_at_the_same_angle_takes_the_first) {
  const float position[3] = {1, 1, 1}, ahead[3] = {1, 0, 0};
  for (const double side : {1.0, -1.0}) {
    const Bench bench(test::peak_field(test::grid(3, 3, 3), 2,
                                       [&](Vec3d, Vec3d* list) {
                                         list[0] = {0.8, 0.6 * side, 0};
                                         list[1] = {0.8, -0.6 * side, 0};
                                       }),
                      {.getter = Getter::closest});
    float direction[3];
    ASSERT_TRUE(best_cpu_kernels().next_direction(bench.input, bench.slab(), 1, 1, position, ahead, direction));
    EXPECT_EQ(direction[1] > 0, side > 0);
  }
}

// The same holds for peaks on the sphere: two mirror images have the same cosine to the bit.
TEST(Closest, of_two_directions_of_the_sphere_at_the_same_angle_takes_the_first_peak) {
  const Bench bench(test::amplitude_field(test::grid(3, 3, 3), sphere("mirror321"), [](Vec3d, Vec3d) { return 1.0; }),
                    {.getter = Getter::closest});
  const SphereView& view = bench.input.sphere;
  const Vec3 ahead{1, 0, 0};
  int pairs = 0;
  for (std::uint32_t i = 0; i < bench.input.field.channels; ++i) {
    for (std::uint32_t j = 0; j < i; ++j) {
      if (view.x[i] != view.x[j] || view.y[i] != -view.y[j] || view.z[i] != view.z[j] || view.y[i] == 0.0f) continue;
      ++pairs;
      for (const auto& [first, second] : {std::pair(i, j), std::pair(j, i)}) {
        const std::uint32_t peaks[2] = {first, second};
        EXPECT_EQ(kernel::nearest_peak(view, peaks, 2, ahead), kernel::aligned_direction(view, first, ahead));
      }
    }
  }
  EXPECT_GT(pairs, 20);
}

// Equal amplitudes keep the order in which they are stored.
TEST(InitialDirections, of_equal_stored_peaks_are_in_their_order) {
  const Vec3d list[4] = {{0, 0, 2}, {-1, 0, 0}, {0, 1, 0}, {0, 2, 0}};
  const int order[4] = {0, 3, 1, 2};
  Bench bench(test::peak_field(test::grid(3, 3, 3), 4, [&](Vec3d, Vec3d* to) { std::copy_n(list, 4, to); }),
              {.getter = Getter::closest});
  const float position[3] = {1, 1, 1};
  for (const std::uint32_t limit : {4u, 3u, 2u, 1u}) {
    bench.input.plan.max_directions = limit;
    for (const CpuKernels* kernels : {portable_kernels(), avx2_kernels(), avx512_kernels()}) {
      if (kernels == nullptr) continue;
      float found[3 * most_initial_directions];
      ASSERT_EQ(kernels->initial_directions(bench.input, bench.slab(), 0, position, found).count, limit);
      for (std::uint32_t i = 0; i < limit; ++i) {
        const Vec3d expected = test::unit(list[order[i]]);
        EXPECT_EQ(static_cast<double>(found[3 * i]), expected.x) << i;
        EXPECT_EQ(static_cast<double>(found[3 * i + 1]), expected.y) << i;
        EXPECT_EQ(static_cast<double>(found[3 * i + 2]), expected.z) << i;
      }
    }
  }
}

TEST(InitialDirections, of_tensors_lie_on_the_kept_hemisphere) {
  const Vec3 kept[] = {{0, 0, 1}, {0, -1, 1}, {-1, 0, 1}, {-1, -1, 0.5f}, {1, 0, 0},
                       {0, 1, 0}, {1, 1, 0},  {-1, 1, 0}, {0, 1, -0.0f},  {1, -0.0f, -0.0f}};
  for (const Vec3 v : kept) {
    EXPECT_EQ(kernel::on_kept_hemisphere(v), v) << v.x << " " << v.y << " " << v.z;
    EXPECT_EQ(kernel::on_kept_hemisphere(-v), v) << v.x << " " << v.y << " " << v.z;
  }
}

// A draw that falls on the end of a share belongs to the next one (contract: the first running sum above it).
TEST(Prob, a_draw_at_the_end_of_a_share_takes_the_next) {
  float ones[32];
  std::fill_n(ones, 32, 1.0f);
  const auto weights = Lanes::load(ones);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const numerics::LaneChoice choice = numerics::choose_lane<Lanes>(weights, static_cast<float>(lane) / 32);
    ASSERT_TRUE(choice.found);
    EXPECT_EQ(choice.lane, lane);
    EXPECT_EQ(choice.reached, static_cast<float>(lane));
    EXPECT_EQ(choice.threshold, static_cast<float>(lane));
  }
  // Within the lane likewise: slots 0 and 32, of one and of three, end at one and at four.
  float rows[64] = {};
  rows[0] = 1;
  rows[32] = 3;
  const auto lane_sums = Lanes::add(Lanes::load(rows), Lanes::load(rows + 32));
  EXPECT_EQ(kernel::choose_stored<Lanes>(lane_sums, rows, 2, std::nextafter(0.25f, 0.0f)), 0u);
  EXPECT_EQ(kernel::choose_stored<Lanes>(lane_sums, rows, 2, 0.25f), 32u);
}

TEST(Peaks, of_the_kernel_are_those_of_the_scalar_finder) {
  std::mt19937 generator(4);
  std::normal_distribution<double> normal;
  for (const char* name : {"mirror321", "repulsion724", "repulsion362", "repulsion362-full", "mirror501"}) {
    const Sphere directions = sphere(name);
    for (int round = 0; round < 60; ++round) {
      const double separation = 5 + 10 * (round % 8);
      const TrackingOptions options{.getter = Getter::closest,
                                    .relative_threshold = 0,
                                    .relative_peak_threshold = 0.1 * (round % 7),
                                    .min_separation_deg = separation};
      // Few different values, so that equal neighbours and plateaus occur; negative ones are cut by the getter.
      const double coarse = round % 3 == 0 ? 0.5 : 1e-6;
      const Bench bench(test::amplitude_field(test::grid(1, 1, 1), directions,
                                              [&](Vec3d, Vec3d) {
                                                return std::max(0.0, std::round(normal(generator) / coarse) * coarse);
                                              }),
                        options);
      const float position[3] = {0, 0, 0};
      float found[3 * most_initial_directions];
      const InitialDirections initial =
          portable_kernels()->initial_directions(bench.input, bench.slab(), 0, position, found);
      const PeakFinder finder = PeakFinder::create(directions, {.relative_threshold = options.relative_peak_threshold,
                                                                .min_separation_deg = separation,
                                                                .max_peaks = most_initial_directions})
                                    .value();
      const float* record = bench.field.records.data() + bench.field.stride;
      const std::vector<float> values(record, record + directions.size());
      std::vector<std::uint32_t> candidates, peaks(most_initial_directions);
      const std::uint32_t count = finder.find(values, candidates, peaks);
      ASSERT_EQ(initial.count, count) << name << " " << round;
      for (std::uint32_t i = 0; i < count; ++i) {
        const Vec3 direction = finder.direction(peaks[i]);
        ASSERT_EQ(found[3 * i], direction.x) << name << " " << round;
        ASSERT_EQ(found[3 * i + 1], direction.y);
        ASSERT_EQ(found[3 * i + 2], direction.z);
      }
    }
  }
}

TEST(Peaks, are_none_of_a_constant_function) {
  const Bench bench(test::amplitude_field(test::grid(2, 2, 2), sphere("mirror321"), [](Vec3d, Vec3d) { return 0.7; }),
                    {.getter = Getter::prob});
  const float position[3] = {0.5f, 0.5f, 0.5f};
  float found[3 * most_initial_directions];
  EXPECT_EQ(portable_kernels()->initial_directions(bench.input, bench.slab(), 0, position, found).count, 0u);
}

TEST(Series, at_a_direction_is_the_sum_of_its_harmonics) {
  std::mt19937 generator(9);
  std::normal_distribution<double> normal;
  for (const int degree : {0, 2, 4, 8, 12}) {
    const numerics::HarmonicBasis basis{numerics::HarmonicConvention::descoteaux07_legacy, degree, false};
    const auto count = static_cast<std::size_t>(numerics::coefficient_count(degree, false));
    std::vector<float> table(kernel::series_table_size(degree)), coefficients(count);
    kernel::fill_series_table(degree, table.data());
    HarmonicView view{};
    view.degree = static_cast<std::uint32_t>(degree);
    view.recurrence = table.data();
    for (float& c : coefficients) c = static_cast<float>(normal(generator));
    float x[32], y[32], z[32];
    for (std::size_t l = 0; l < 32; ++l) {
      const Vec3d v = l == 0 ? Vec3d{0, 0, 1} : test::unit({normal(generator), normal(generator), normal(generator)});
      x[l] = static_cast<float>(v.x);
      y[l] = static_cast<float>(v.y);
      z[l] = static_cast<float>(v.z);
    }
    const auto found = kernel::series_at<Lanes>(view, Lanes::load(x), Lanes::load(y), Lanes::load(z), [&](int i) {
      return Lanes::broadcast(coefficients[static_cast<std::size_t>(i)]);
    });
    for (std::uint32_t l = 0; l < 32; ++l) {
      double values[numerics::largest_coefficient_count], truth = 0, size = 0;
      numerics::evaluate_harmonics(
          basis, Vec3d{static_cast<double>(x[l]), static_cast<double>(y[l]), static_cast<double>(z[l])}, values);
      for (std::size_t j = 0; j < count; ++j) {
        truth += static_cast<double>(coefficients[j]) * values[j];
        size += std::fabs(static_cast<double>(coefficients[j]) * values[j]);
      }
      EXPECT_NEAR(Lanes::get(found, l), truth, 3e-6 * size + 1e-7) << "degree " << degree;
    }
  }
}

TEST(Det, refines_the_direction_to_a_tenth_of_a_degree_and_better) {
  std::mt19937 generator(12);
  std::normal_distribution<double> normal;
  double worst = 0, vertex_error = 0;
  for (const char* name : {"mirror321", "repulsion362"}) {
    const Sphere directions = sphere(name);
    for (const int degree : {4, 8, 12}) {
      for (int round = 0; round < 100; ++round) {
        const Vec3d axis = test::unit({normal(generator), normal(generator), normal(generator)});
        const auto write = [&](Vec3d, double* c) {
          std::fill_n(c, numerics::coefficient_count(degree, false), 0.0);
          test::add_lobe(degree, axis, 1, c);
        };
        const Field field = test::harmonic_field(test::grid(2, 2, 2), directions, degree, write);
        for (const bool refine : {false, true}) {
          const Bench bench(field, {.getter = Getter::det, .refine = refine});
          const float position[3] = {0.4f, 0.6f, 0.5f};
          const float ahead[3] = {static_cast<float>(axis.x), static_cast<float>(axis.y), static_cast<float>(axis.z)};
          float found[3];
          ASSERT_TRUE(portable_kernels()->next_direction(bench.input, bench.slab(), 0, 0, position, ahead, found));
          const Vec3d v{static_cast<double>(found[0]), static_cast<double>(found[1]), static_cast<double>(found[2])};
          const double error = std::asin(std::min(1.0, numerics::length(numerics::cross(v, axis)))) * 180 / M_PI;
          (refine ? worst : vertex_error) = std::max(refine ? worst : vertex_error, error);
        }
      }
    }
  }
  EXPECT_LT(worst, 0.05);
  EXPECT_GT(vertex_error, 2);  // what there was to refine
}

// f(v) = sum of the curvatures k_i (v . a_i)^2 / 2 has at a_0 the second derivatives k_i in the tangent plane. Where
// one of them is not negative there is no hill to climb: the direction stays, to the bit, however the axes lie.
TEST(Det, does_not_refine_at_a_saddle_a_valley_or_a_ridge) {
  const numerics::HarmonicBasis basis{numerics::HarmonicConvention::descoteaux07_legacy, 2, false};
  const Sphere directions = sphere("mirror321");
  const Vec3d start = test::unit({0.3, -0.5, 0.8});
  const auto float_of = [](Vec3d v) {
    return Vec3{static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
  };
  const Vec3 e1_float = numerics::any_perpendicular(float_of(start));
  const Vec3d e1{static_cast<double>(e1_float.x), static_cast<double>(e1_float.y), static_cast<double>(e1_float.z)};
  const Vec3d e2 = numerics::cross(start, e1);
  Eigen::MatrixXd values(static_cast<Eigen::Index>(directions.size()), 6);
  for (std::size_t i = 0; i < directions.size(); ++i) {
    double row[6];
    numerics::evaluate_harmonics(basis, directions.directions[i], row);
    for (Eigen::Index j = 0; j < 6; ++j) values(static_cast<Eigen::Index>(i), j) = row[j];
  }
  struct Surface {
    double k1, k2;
    bool hill;
  };
  for (const Surface& surface : {Surface{-3, 1, false}, Surface{1, -3, false}, Surface{2, 1, false},
                                 Surface{-1, 3, false}, Surface{3, -1, false}, Surface{-3, -1, true}}) {
    for (const double turn_deg : {0.0, 30.0, 45.0, 135.0}) {
      const double turn = turn_deg * M_PI / 180;
      const Vec3d a1 = e1 * std::cos(turn) + e2 * std::sin(turn), a2 = e2 * std::cos(turn) - e1 * std::sin(turn);
      // The point where the surface is level lies a little beside the start.
      const auto f = [&](Vec3d v) {
        const double c1 = numerics::dot(v, a1), c2 = numerics::dot(v, a2), c0 = numerics::dot(v, start);
        return 5 + 0.5 * surface.k1 * c1 * c1 + 0.5 * surface.k2 * c2 * c2 + 0.05 * c0 * (c1 + 0.7 * c2);
      };
      Eigen::VectorXd at(static_cast<Eigen::Index>(directions.size()));
      for (std::size_t i = 0; i < directions.size(); ++i)
        at[static_cast<Eigen::Index>(i)] = f(directions.directions[i]);
      const Eigen::VectorXd fitted = values.colPivHouseholderQr().solve(at);
      const Bench bench(test::harmonic_field(test::grid(2, 2, 2), directions, 2,
                                             [&](Vec3d, double* c) { std::copy_n(fitted.data(), 6, c); }),
                        {.getter = Getter::det});
      kernel::read_record<Lanes>(bench.input, bench.slab(), {0.5f, 0.5f, 0.5f});
      const Vec3 found = kernel::refine_maximum<Lanes>(bench.input.harmonics, bench.slab().record, float_of(start));
      EXPECT_EQ(found == float_of(start), !surface.hill) << surface.k1 << " " << surface.k2 << " " << turn_deg;
    }
  }
}

TEST(Tensor, principal_eigenvector_is_that_of_eigen) {
  std::mt19937 generator(13);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 2000; ++round) {
    Eigen::Matrix3d a;
    for (int i = 0; i < 9; ++i) a(i / 3, i % 3) = normal(generator);
    const Eigen::Matrix3d m = 1e-3 * (a + a.transpose()) * std::pow(10, round % 5 - 2);
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(m);
    const double gap = (solver.eigenvalues()[2] - solver.eigenvalues()[1]) / m.norm();
    if (gap < 1e-3) continue;
    const auto f = [&](int i, int j) { return static_cast<float>(m(i, j)); };
    const Vec3 found = kernel::principal_eigenvector({f(0, 0), f(1, 1), f(2, 2), f(0, 1), f(0, 2), f(1, 2)});
    const Eigen::Vector3d v(static_cast<double>(found.x), static_cast<double>(found.y), static_cast<double>(found.z));
    EXPECT_LT(v.cross(solver.eigenvectors().col(2)).norm(), 1e-6 / gap);
    EXPECT_NEAR(v.norm(), 1, 1e-6);
  }
  EXPECT_EQ(kernel::principal_eigenvector({0, 0, 0, 0, 0, 0}), (Vec3{0, 0, 0}));
  const Vec3 isotropic = kernel::principal_eigenvector({1, 1, 1, 0, 0, 0});
  EXPECT_EQ(isotropic, (Vec3{1, 0, 0}));
}

struct BootCase {
  std::vector<Vec3d> directions;
  std::vector<std::uint8_t> is_b0;
  std::vector<float> signals;
};

// One voxel's signals, noisy, so that there are residuals.
BootCase boot_case(std::size_t gradients) {
  BootCase result;
  std::mt19937 generator(15);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < gradients + 4; ++i) {
    result.is_b0.push_back(i % 10 == 0 && i < 40 ? 1 : 0);
    result.directions.push_back(test::unit({normal(generator), normal(generator), normal(generator)}));
    const double c1 = numerics::dot(result.directions.back(), axis_1),
                 c2 = numerics::dot(result.directions.back(), axis_2);
    const double signal = result.is_b0.back() != 0
                              ? 1
                              : 0.6 * std::exp(-2 * (0.3 + 1.4 * c1 * c1)) + 0.4 * std::exp(-2 * (0.3 + 1.4 * c2 * c2));
    result.signals.push_back(static_cast<float>(200 * signal + 5 * normal(generator)));
  }
  return result;
}

Field boot_field(const BootCase& c, bool csa, ThreadPool& pool) {
  const ImageGeometry geometry = test::grid(2, 2, 2);
  const test::AllVoxels all(
      geometry, c.signals.size(), [&](Vec3d, float* s) { std::copy(c.signals.begin(), c.signals.end(), s); },
      test::everywhere());
  return make_bootstrap_field(geometry, all.stop, all.records(), c.directions, c.is_b0, {.csa = csa},
                              sphere("mirror321"), pool)
      .value();
}

// The seed's ODF is the model's own, from the signal without resampling: the record gives it back.
TEST(Boot, recovers_the_fit_of_the_signal_itself_at_the_seed) {
  const auto pool = ThreadPool::create(1).value();
  for (const bool csa : {false, true}) {
    const BootCase c = boot_case(60);
    const Bench bench(boot_field(c, csa, *pool), {.getter = Getter::boot});
    kernel::read_record<Lanes>(bench.input, bench.slab(), {0.3f, 0.8f, 0.5f});
    kernel::fit_odf<Lanes>(bench.input, bench.slab(), {0, numerics::DrawPurpose::step, 0, 0, 0, 0}, false);
    std::vector<std::uint32_t> weighted, b0;
    std::vector<Vec3d> directions;
    for (std::uint32_t i = 0; i < c.is_b0.size(); ++i) {
      (c.is_b0[i] != 0 ? b0 : weighted).push_back(i);
      if (c.is_b0[i] == 0) directions.push_back(c.directions[i]);
    }
    const QBallOptions options{.kind = csa ? QBallModelKind::csa : QBallModelKind::opdt, .min_signal = 1};
    const QBallMatrices matrices = make_q_ball_matrices(directions, options).value();
    const QBallFit fit = fit_q_ball(matrices, options, c.signals, c.signals.size(), weighted, b0, *pool).value();
    double largest = 0;
    for (const float value : fit.coefficients) largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (std::size_t i = 0; i < 15; ++i) {
      EXPECT_NEAR(bench.slab().coefficients[bench.tables.record_index[i]], fit.coefficients[i], 2e-5 * largest) << i;
    }
  }
}

// Check (e): the drawn signals have the mean B c and independent deviations with the variance of the residuals, so that
// a linear fit of them has the covariance B+ B+' times that variance.
TEST(Boot, drawn_signals_have_the_mean_and_covariance_of_the_closed_form) {
  const auto pool = ThreadPool::create(1).value();
  for (const std::size_t gradients : std::initializer_list<std::size_t>{33, 64, 161}) {
    const BootCase c = boot_case(gradients);
    const Bench bench(boot_field(c, false, *pool), {.getter = Getter::boot});
    const std::size_t count = bench.field.bootstrap.gradients, coefficients = 15;
    kernel::read_record<Lanes>(bench.input, bench.slab(), {0.3f, 0.8f, 0.5f});
    const float* record = bench.slab().record;
    Eigen::MatrixXd b(count, coefficients);
    Eigen::VectorXd fitted(coefficients);
    double variance = 0, sum = 0;
    for (std::size_t g = 0; g < count; ++g) {
      for (std::size_t j = 0; j < coefficients; ++j) {
        b(static_cast<Eigen::Index>(g), static_cast<Eigen::Index>(j)) =
            static_cast<double>(bench.field.bootstrap.basis[g * coefficients + j]);
      }
      const auto residual = static_cast<double>(record[coefficients + 1 + g]);
      variance += residual * residual / static_cast<double>(count);
      sum += residual;
    }
    EXPECT_NEAR(sum, 0, 1e-3) << "residuals are centred";
    for (std::size_t j = 0; j < coefficients; ++j)
      fitted[static_cast<Eigen::Index>(j)] = static_cast<double>(record[j]);
    const auto b0 = static_cast<double>(record[coefficients]);
    const Eigen::MatrixXd inverse = b.completeOrthogonalDecomposition().pseudoInverse();
    constexpr int draws = 20000;
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(15);
    Eigen::MatrixXd square = Eigen::MatrixXd::Zero(15, 15);
    const std::size_t padded = 32 * bench.input.bootstrap.rows;
    for (std::uint32_t i = 0; i < draws; ++i) {
      kernel::fit_odf<Lanes>(bench.input, bench.slab(), {i, numerics::DrawPurpose::step, 0, 0, 7, 2}, true);
      Eigen::VectorXd signal(count);
      for (std::size_t g = 0; g < count; ++g) {
        // u_2 - u_0 = 6 s
        const float* u = bench.slab().signal;
        signal[static_cast<Eigen::Index>(g)] =
            (static_cast<double>(u[padded + g]) - static_cast<double>(u[g])) / 6 * b0;
      }
      const Eigen::VectorXd drawn = inverse * signal - fitted;
      mean += drawn / draws;
      square += drawn * drawn.transpose() / draws;
    }
    const Eigen::MatrixXd expected = inverse * inverse.transpose() * variance;
    for (Eigen::Index i = 0; i < 15; ++i) {
      EXPECT_NEAR(mean[i], 0, 5 * std::sqrt(expected(i, i) / draws)) << i;
      for (Eigen::Index j = 0; j < 15; ++j) {
        const double spread = std::sqrt((expected(i, i) * expected(j, j) + expected(i, j) * expected(i, j)) / draws);
        EXPECT_NEAR(square(i, j), expected(i, j), 5.5 * spread) << i << " " << j;
      }
    }
  }
}

// Attempts draw other samples, and each is a function of the counter alone.
TEST(Boot, retries_only_as_the_rule_says) {
  const auto pool = ThreadPool::create(1).value();
  const Field field = boot_field(boot_case(60), false, *pool);
  const float position[3] = {0.3f, 0.8f, 0.5f};
  // Most samples have their nearest peak outside of the cone.
  const Vec3d across = test::unit(axis_1 + numerics::cross(axis_1, axis_2) * 0.35);
  const float ahead[3] = {static_cast<float>(across.x), static_cast<float>(across.y), static_cast<float>(across.z)};
  int found[2] = {0, 0};
  for (const bool angle : {false, true}) {
    const Bench bench(field, {.getter = Getter::boot,
                              .max_angle_deg = 15,
                              .boot_attempts = 40,
                              .boot_retry = angle ? BootRetry::no_peak_or_angle : BootRetry::no_peak});
    for (std::uint32_t i = 0; i < 300; ++i) {
      float direction[3];
      found[angle ? 1 : 0] +=
          best_cpu_kernels().next_direction(bench.input, bench.slab(), i, 0, position, ahead, direction) ? 1 : 0;
    }
  }
  EXPECT_LT(found[0], found[1]);
  EXPECT_GT(found[1], 0);
}

// The rule by hand: the samples of attempts 0, 1, ... below their number, and the cone includes its edge.
TEST(Boot, makes_as_many_attempts_as_asked_and_takes_a_peak_at_the_greatest_angle) {
  const auto pool = ThreadPool::create(1).value();
  Bench bench(boot_field(boot_case(60), false, *pool),
              {.getter = Getter::boot, .max_angle_deg = 15, .boot_retry = BootRetry::no_peak_or_angle});
  const float position[3] = {0.3f, 0.8f, 0.5f};
  const Vec3d across = test::unit(axis_1 + numerics::cross(axis_1, axis_2) * 0.35);
  const Vec3 ahead{static_cast<float>(across.x), static_cast<float>(across.y), static_cast<float>(across.z)};
  const float way[3] = {ahead.x, ahead.y, ahead.z};
  const float limit = bench.input.plan.cos_max_angle;
  int found_by[4] = {};
  int on_the_edge = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    float cosines[3];
    Vec3 nearest[3];
    for (std::uint32_t attempt = 0; attempt < 3; ++attempt) {
      kernel::read_record<Lanes>(bench.input, bench.slab(), {position[0], position[1], position[2]});
      const std::uint32_t count = kernel::sample_peaks<Lanes>(
          bench.input, bench.slab(), {i, numerics::DrawPurpose::step, 0, 0, 5, attempt}, true, &ahead, 10);
      nearest[attempt] =
          count > 0 ? kernel::nearest_peak(bench.input.sphere, bench.slab().peaks, count, ahead) : Vec3{};
      cosines[attempt] = count > 0 ? numerics::dot(nearest[attempt], ahead) : -2.0f;
    }
    for (std::uint32_t attempts = 1; attempts <= 3; ++attempts) {
      bench.input.plan.boot_attempts = attempts;
      bench.input.plan.cos_max_angle = limit;
      const float* const first = std::find_if(cosines, cosines + attempts, [&](float c) { return c >= limit; });
      float direction[3];
      const bool found = portable_kernels()->next_direction(bench.input, bench.slab(), i, 5, position, way, direction);
      ASSERT_EQ(found, first != cosines + attempts) << i << ": " << attempts;
      if (!found) continue;
      ++found_by[attempts];
      const Vec3 expected = nearest[first - cosines];
      EXPECT_EQ((Vec3{direction[0], direction[1], direction[2]}), expected);
    }
    if (!(cosines[0] > 0.5f)) continue;
    ++on_the_edge;
    bench.input.plan.boot_attempts = 1;
    float direction[3];
    bench.input.plan.cos_max_angle = cosines[0];
    EXPECT_TRUE(portable_kernels()->next_direction(bench.input, bench.slab(), i, 5, position, way, direction));
    bench.input.plan.cos_max_angle = std::nextafter(cosines[0], 1.0f);
    EXPECT_FALSE(portable_kernels()->next_direction(bench.input, bench.slab(), i, 5, position, way, direction));
  }
  EXPECT_GT(found_by[1], 0);
  EXPECT_GT(found_by[2], found_by[1]);
  EXPECT_GT(found_by[3], found_by[2]);
  EXPECT_GT(on_the_edge, 10);
}

// The density of the drawn curvatures over the disc is the support, integrated here in float64 by other code.
TEST(Ptt, draws_curvatures_in_proportion_to_their_support) {
  const Sphere directions = sphere("mirror501");
  const Vec3d axis = test::unit({0.3, 0.2, 0.9});
  const auto amplitude = [&](Vec3d v) { return 0.05 + std::pow(numerics::dot(v, axis), 8); };
  // Estimated at the arc; carried along, about right; and so high that nothing is accepted before another estimate.
  struct {
    double exponent;
    std::uint32_t interval;
    float bound;
  } const cases[] = {{1, 1, 0}, {2, 1, 0}, {1, 7, 1.15f}, {1, 7, 1e6f}};
  for (const auto& [exponent, interval, bound_before] : cases) {
    const Bench bench(
        test::amplitude_field(test::grid(9, 9, 9), directions, [&](Vec3d, Vec3d v) { return amplitude(v); }),
        {.getter = Getter::ptt,
         .step_mm = 0.5,
         .max_angle_deg = 30,
         .relative_threshold = 0,
         .ptt_exponent = exponent,
         .ptt_weak_links = true,
         .ptt_tries = 1000,
         .ptt_bound_interval = interval});
    const Vec3 position{4, 4, 4};
    const numerics::Frame frame =
        numerics::straighten(numerics::normalise(Vec3{0.35f, 0.1f, 0.9f}), Vec3{1, 0.2f, 0.1f});
    const auto limit = static_cast<double>(bench.plan.ptt_max_curvature);
    const auto support = [&](double k1, double k2) {
      // A circle in the plane of the tangent and n = (k1 N + k2 B) / k; the nearest vertex as DIPY and cuslines take
      // it.
      const auto wide = [](Vec3 v) {
        return Vec3d{static_cast<double>(v.x), static_cast<double>(v.y), static_cast<double>(v.z)};
      };
      const double k = std::hypot(k1, k2);
      const Vec3d n = k > 0 ? (wide(frame.normal) * k1 + wide(frame.binormal) * k2) * (1 / k) : wide(frame.normal);
      double sum = 0;
      for (std::uint32_t q = 0; q < bench.plan.ptt_probe_quality; ++q) {
        const double angle = k * q * static_cast<double>(bench.plan.ptt_probe_step_mm);
        const Vec3d tangent = wide(frame.tangent) * std::cos(angle) + n * std::sin(angle);
        std::size_t nearest = 0;
        for (std::size_t i = 1; i < directions.size(); ++i) {
          if (std::fabs(numerics::dot(directions.directions[i], tangent)) >
              std::fabs(numerics::dot(directions.directions[nearest], tangent))) {
            nearest = i;
          }
        }
        sum += amplitude(directions.directions[nearest]);
      }
      return std::pow(sum / bench.plan.ptt_probe_quality, exponent);
    };
    // Bins: 6 rings of equal area by 12 sectors.
    constexpr int rings = 6, sectors = 12, fine = 6;
    std::vector<double> expected(rings * sectors), found(rings * sectors);
    double total = 0, largest = 0;
    for (int ring = 0; ring < rings * fine; ++ring) {
      for (int sector = 0; sector < sectors * fine; ++sector) {
        const double radius = limit * std::sqrt((ring + 0.5) / (rings * fine));
        const double angle = 2 * M_PI * (sector + 0.5) / (sectors * fine);
        const double value = support(radius * std::cos(angle), radius * std::sin(angle));
        expected[static_cast<std::size_t>(ring / fine * sectors + sector / fine)] += value;
        total += value;
        largest = std::max(largest, value);
      }
    }
    constexpr std::uint32_t draws = 30000;
    kernel::read_record<Lanes>(bench.input, bench.slab(), position);
    for (std::uint32_t i = 0; i < draws; ++i) {
      float bound = bound_before;
      const kernel::Curvature drawn = kernel::draw_curvature<Lanes>(
          bench.input, bench.slab(), {i, numerics::DrawPurpose::step, 0, 0, 3, 0}, position, frame, bound);
      ASSERT_LT(bound, 2.0f);
      ASSERT_TRUE(drawn.found);
      const double k1 = static_cast<double>(drawn.k1), k2 = static_cast<double>(drawn.k2);
      const double ring = (k1 * k1 + k2 * k2) / (limit * limit) * rings;
      double angle = std::atan2(k2, k1) / (2 * M_PI);
      angle = angle < 0 ? angle + 1 : angle;
      found[static_cast<std::size_t>(std::min(ring, rings - 1.0)) * sectors +
            static_cast<std::size_t>(std::min(angle * sectors, sectors - 1.0))] += 1;
    }
    for (double& value : expected) value *= draws / total;
    const ChiSquare test = chi_square(expected, found);
    EXPECT_GT(test.degrees, 30);
    EXPECT_LT(test.z(), 4) << test.value << " with " << test.degrees << " degrees of freedom, exponent " << exponent;
  }
}

// A bound that is too low does not stay: an accepted support raises it, and it is estimated anew in time.
TEST(Ptt, raises_a_bound_that_was_carried_along_and_is_exceeded) {
  const Bench bench(
      test::amplitude_field(test::grid(9, 9, 9), sphere("repulsion724"), [](Vec3d, Vec3d v) { return v.x * v.x; }),
      {.getter = Getter::ptt, .relative_threshold = 0, .ptt_weak_links = true, .ptt_bound_interval = 4});
  const numerics::Frame frame = numerics::straighten(Vec3{1, 0, 0}, Vec3{0, 1, 0});
  const auto bound_after = [&](std::uint32_t arc, float before) {
    float bound = before;
    EXPECT_TRUE(kernel::draw_curvature<Lanes>(bench.input, bench.slab(), {1, numerics::DrawPurpose::step, 0, 0, arc, 0},
                                              {4, 4, 4}, frame, bound)
                    .found);
    return bound;
  };
  const float estimated = bound_after(4, 0.001f);
  EXPECT_GT(estimated, 0.5f);
  EXPECT_EQ(bound_after(8, 0.5f), estimated);
  EXPECT_EQ(bound_after(5, estimated), estimated);
  const float raised = bound_after(5, 0.001f);
  EXPECT_GT(raised, 0.01f);
  EXPECT_LT(raised, estimated);
  EXPECT_EQ(bound_after(5, 1e6f), estimated);
}

// One streamline per seed, along a direction that is drawn as often as its amplitude says.
TEST(Ptt, draws_its_start_in_proportion_to_the_amplitudes) {
  const Sphere directions = sphere("repulsion724");
  const auto amplitude = [](Vec3d v) { return v.z * v.z; };
  const Bench bench(
      test::amplitude_field(test::grid(5, 5, 5), directions, [&](Vec3d, Vec3d v) { return amplitude(v); }),
      {.getter = Getter::ptt, .relative_threshold = 0, .absolute_threshold = 0.3, .draw_start = true});
  constexpr int bins = 8;
  std::vector<double> expected(bins), found(bins);
  double total = 0;
  for (const Vec3d& v : directions.directions) {
    const double weight = amplitude(v) >= 0.3 ? amplitude(v) : 0;
    expected[static_cast<std::size_t>(std::min(bins - 1.0, bins * std::fabs(v.z)))] += weight;
    total += weight;
  }
  constexpr std::uint32_t draws = 20000;
  for (std::uint32_t seed = 0; seed < draws; ++seed) {
    float along[3 * most_initial_directions];
    const InitialDirections initial =
        kernel::find_initial_directions<Lanes>(bench.input, bench.slab(), seed, {2, 2, 2}, along);
    ASSERT_EQ(initial.count, 1u);
    found[static_cast<std::size_t>(std::min(bins - 1.0, bins * std::fabs(static_cast<double>(along[2]))))] += 1;
  }
  for (double& value : expected) value *= draws / total;
  const ChiSquare test = chi_square(expected, found);
  EXPECT_GE(test.degrees, 3);
  EXPECT_LT(test.z(), 4) << test.value << " with " << test.degrees << " degrees of freedom";
}

TEST(Ptt, finds_the_nearest_direction_that_a_search_through_all_finds) {
  std::mt19937 generator(17);
  std::normal_distribution<double> normal;
  for (const char* name : {"repulsion724", "mirror321", "repulsion362-full", "repulsion362"}) {
    const Bench bench(
        test::amplitude_field(test::grid(2, 2, 2), sphere(name), [](Vec3d, Vec3d v) { return v.x * v.x; }),
        {.getter = Getter::ptt});
    EXPECT_LE(bench.tables.nearest_capacity, 8u) << name;
    using Group = Lanes::Narrow;
    for (int round = 0; round < 3000; ++round) {
      float x[8], y[8], z[8];
      for (std::size_t l = 0; l < 8; ++l) {
        // Some on the edges of cells and faces.
        Vec3d v{normal(generator), normal(generator), normal(generator)};
        if (l == 1) v.x = v.y;
        if (l == 2) v.z = -v.y;
        if (l == 3) v = {v.x, v.x * (2 * std::floor(16 * std::tanh(v.y)) / 32), v.x / 8};
        if (l == 4) v = {0, 0, v.z};
        v = test::unit(v);
        x[l] = static_cast<float>(v.x);
        y[l] = static_cast<float>(v.y);
        z[l] = static_cast<float>(v.z);
      }
      const auto slots = kernel::nearest_slots<Group>(bench.input, {Group::load(x), Group::load(y), Group::load(z)});
      for (std::uint32_t l = 0; l < 8; ++l) {
        std::uint32_t best = 0;
        float best_cosine = -2;
        for (std::uint32_t slot = 0; slot < bench.field.sphere.size(); ++slot) {
          float cosine = numerics::dot(Vec3{bench.tables.x[slot], bench.tables.y[slot], bench.tables.z[slot]},
                                       Vec3{x[l], y[l], z[l]});
          if (bench.field.sphere.is_hemisphere) cosine = numerics::absolute(cosine);
          if (cosine > best_cosine) {
            best = slot;
            best_cosine = cosine;
          }
        }
        ASSERT_EQ(Group::get(slots, l), best) << name;
      }
    }
  }
}

// A direction's amplitudes near the faces are those of its own volume in the nearest voxels, never of another direction
// or of the opposite face; beyond the image they are zero.
TEST(Ptt, reads_at_the_faces_of_the_image_what_its_own_direction_has_there) {
  const Sphere directions = sphere("repulsion362");
  // Every direction and voxel has a number of its own.
  const auto value = [&](Vec3d at, std::size_t slot) {
    return 1.0 + static_cast<double>(slot) + 1000 * (at.x + 5 * at.y + 25 * at.z);
  };
  const Field field = test::amplitude_field(test::grid(5, 5, 5), directions, [&](Vec3d at, Vec3d v) {
    std::size_t slot = 0;
    for (std::size_t i = 1; i < directions.size(); ++i) {
      if (std::fabs(numerics::dot(directions.directions[i], v)) >
          std::fabs(numerics::dot(directions.directions[slot], v))) {
        slot = i;
      }
    }
    return value(at, slot);
  });
  const Bench bench(field, {.getter = Getter::ptt});
  using Group = Lanes::Narrow;
  for (const std::size_t slot : {std::size_t{0}, directions.size() / 2, directions.size() - 1}) {
    const Vec3d v = directions.directions[slot];
    const numerics::LaneVec3<Group> tangent =
        numerics::spread<Group>(Vec3{static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)});
    for (const double x : {-0.75, -0.5, -0.25, 0.0, 0.4, 3.9, 4.0, 4.25, 4.75}) {
      for (const double z : {-0.3, 2.5, 4.4}) {
        const Vec3 position{static_cast<float>(x), 1.25f, static_cast<float>(z)};
        const float found = Group::get(
            kernel::amplitudes_along<Group>(bench.input, bench.slab(), numerics::spread<Group>(position), tangent), 0);
        const bool inside = x >= -0.5 && x < 4.5;
        // Linear in space, so that interpolation between clamped places is exact.
        const Vec3d nearest{std::clamp(x, 0.0, 4.0), 1.25, std::clamp(z, 0.0, 4.0)};
        EXPECT_NEAR(found, inside ? value(nearest, slot) : 0, 0.1) << x << " " << z << " slot " << slot;
      }
    }
  }
}

// At the default angle the arcs reach down to a radius of one step, around which a probe of two edges winds more than
// half: all but a few hundredths of the disc have no support. That is no reason to end.
TEST(Ptt, finds_an_arc_with_default_options_though_few_of_the_disc_have_support) {
  const Sphere directions = sphere("repulsion724");
  const Field field =
      test::amplitude_field(test::grid(21, 21, 21), directions, [&](Vec3d, Vec3d v) { return std::pow(v.x, 40); });
  const numerics::Frame frame = numerics::straighten(Vec3{1, 0, 0}, Vec3{0, 1, 0});
  const Vec3 position{10, 10, 10};
  const auto found = [&](TrackingOptions options) {
    const Bench bench(field, options);
    kernel::read_record<Lanes>(bench.input, bench.slab(), position);
    int count = 0;
    for (std::uint32_t i = 0; i < 200; ++i) {
      float bound = 0;
      count += kernel::draw_curvature<Lanes>(bench.input, bench.slab(), {i, numerics::DrawPurpose::step, 0, 0, 1, 0},
                                             position, frame, bound)
                       .found
                   ? 1
                   : 0;
    }
    return count;
  };
  EXPECT_GE(found({.getter = Getter::ptt}), 198);
  EXPECT_LT(found({.getter = Getter::ptt, .ptt_tries = 100}), 180);
}

// Two populations that cross: the streamline goes on along the one it came on, and its first tangent is the peak.
TEST(Ptt, goes_straight_through_a_crossing_from_the_frame_at_the_seed) {
  const Sphere directions = sphere("repulsion724");
  const Field field = test::amplitude_field(test::grid(60, 21, 21), directions,
                                            [&](Vec3d, Vec3d v) { return std::pow(v.x, 40) + std::pow(v.y, 40); });
  const Bench bench(field, {.getter = Getter::ptt, .step_mm = 0.5, .max_angle_deg = 15});
  std::vector<float> points(3 * std::size_t{bench.plan.max_steps});
  double deviation = 0, mean = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const float position[3] = {30, 10, 10}, ahead[3] = {1, 0, 0};
    const HalfEnd end =
        best_cpu_kernels().track_half(bench.input, bench.slab(), seed, 0, 0, position, ahead, points.data());
    ASSERT_GT(end.points, 0u);
    EXPECT_GT(points[0], 30.45f);  // the first arc bends by less than 15 degrees from the peak
    mean += end.points / 50.0;
    const std::size_t last = std::min<std::size_t>(end.points, 20) - 1;
    deviation = std::max(deviation, static_cast<double>(std::fabs(points[3 * last + 1] - 10)));
  }
  // It ends where its probes, 2 mm long, would leave the image: weak links are not allowed here.
  EXPECT_GT(mean, 50);
  EXPECT_LT(mean, 59);
  EXPECT_LT(deviation, 2);
}

}  // namespace
}  // namespace cingulum::getters_tests
