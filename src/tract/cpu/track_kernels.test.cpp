// The kernels of every instruction set on random fields, getter after getter: the same bits from each, and from any
// number of threads and any ranges.
#include "tract/cpu/track_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "support/analytic_field.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::track_kernels_tests {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

Sphere sphere(const char* name) {
  return named_sphere(name).value();
}

// Two smooth populations of directions, and some noise so that nothing is symmetric by accident.
struct Smooth {
  explicit Smooth(unsigned seed) : generator(seed) {}
  static Vec3d first(Vec3d p) { return test::unit({1, 0.4 * std::sin(0.4 * p.y), 0.3 * std::cos(0.3 * p.x)}); }
  static Vec3d second(Vec3d p) { return test::unit({0.2 * std::sin(0.5 * p.z), 1, 0.5 * std::cos(0.2 * p.x)}); }
  double noise(double size) { return std::normal_distribution<double>(0, size)(generator); }
  std::mt19937 generator;
};

float ball(Vec3d p) {
  const double r = std::hypot(p.x - 7.2, p.y - 6.6, 1.5 * (p.z - 4.9));
  return static_cast<float>(1.2 - r / 7);
}

const ImageGeometry geometry = test::grid(15, 14, 11, {1.2, 1.3, 2.1});

Field amplitudes(const char* name) {
  Smooth smooth(1);
  return test::amplitude_field(
      geometry, sphere(name),
      [&](Vec3d p, Vec3d v) {
        return std::pow(numerics::dot(v, Smooth::first(p)), 10) +
               0.7 * std::pow(numerics::dot(v, Smooth::second(p)), 10) + smooth.noise(0.03);
      },
      ball);
}

Field harmonics(const char* name, int degree) {
  Smooth smooth(2);
  return test::harmonic_field(
      geometry, sphere(name), degree,
      [&](Vec3d p, double* c) {
        const int count = numerics::coefficient_count(degree, false);
        for (int j = 0; j < count; ++j) c[j] = smooth.noise(0.02);
        test::add_lobe(degree, Smooth::first(p), 1, c);
        test::add_lobe(degree, Smooth::second(p), 0.7, c);
      },
      ball);
}

Field bootstrap(const char* name, bool csa, int degree, std::size_t gradients, ThreadPool& pool) {
  Smooth smooth(3);
  std::vector<Vec3d> directions;
  std::vector<std::uint8_t> is_b0;
  for (std::size_t i = 0; i < gradients + 3; ++i) {
    is_b0.push_back(i % 17 == 0 && i < 51 ? 1 : 0);
    directions.push_back(test::unit({smooth.noise(1), smooth.noise(1), smooth.noise(1)}));
  }
  const test::AllVoxels signals(
      geometry, directions.size(),
      [&](Vec3d p, float* s) {
        for (std::size_t i = 0; i < directions.size(); ++i) {
          const auto fibre = [&](Vec3d axis) {
            const double c = numerics::dot(axis, directions[i]);
            return std::exp(-2 * (0.3 + 1.4 * c * c));
          };
          const double signal = is_b0[i] != 0 ? 1 : 0.6 * fibre(Smooth::first(p)) + 0.4 * fibre(Smooth::second(p));
          s[i] = static_cast<float>(100 * signal + smooth.noise(3));
        }
      },
      ball);
  return make_bootstrap_field(geometry, signals.stop, signals.records(), directions, is_b0,
                              {.csa = csa, .degree = degree}, sphere(name), pool)
      .value();
}

struct Case {
  std::string name;
  Field field;
  TrackingOptions options;
};

std::vector<Case> make_cases() {
  const auto pool = ThreadPool::create(2).value();
  std::vector<Case> all;
  const auto add = [&](std::string name, const Field& field, const TrackingOptions& options) {
    all.push_back({std::move(name), field, options});
    all.back().options.random_key = 0x0123456789abcdefull + all.size();
  };
  for (const char* name : {"repulsion724", "mirror321", "repulsion362", "repulsion724-full"}) {
    const Field field = amplitudes(name);
    add(std::string("prob on ") + name, field, {.getter = Getter::prob});
    add(std::string("det on ") + name, field, {.getter = Getter::det, .angular_weight = 0.4});
    add(std::string("closest on ") + name, field, {.getter = Getter::closest, .max_angle_deg = 30});
    add(std::string("ptt on ") + name, field, {.getter = Getter::ptt, .max_angle_deg = 30});
  }
  for (const char* name : {"mirror321", "repulsion362", "mirror501"}) {
    const Field field = harmonics(name, 8);
    add(std::string("prob from SH on ") + name, field,
        {.getter = Getter::prob, .absolute_threshold = 0.05, .angular_weight = 0.7});
    add(std::string("det from SH on ") + name, field, {.getter = Getter::det});
    add(std::string("closest from SH on ") + name, field, {.getter = Getter::closest});
  }
  add("prob from SH of degree 2", harmonics("mirror321", 2), {.getter = Getter::prob});
  add("det from SH of degree 12", harmonics("mirror406", 12), {.getter = Getter::det});
  add("ptt from SH", harmonics("mirror321", 6), {.getter = Getter::ptt, .ptt_weak_links = true});
  add("ptt with many probes and short arcs", amplitudes("repulsion362"),
      {.getter = Getter::ptt,
       .ptt_probe_radius_mm = 0.4,
       .ptt_probe_quality = 4,
       .ptt_probe_count = 4,
       .ptt_exponent = 2.5,
       .ptt_weak_links = true,
       .ptt_tries = 137,
       .ptt_substeps = 3});
  add("ptt with a bound that is carried along", amplitudes("repulsion362"),
      {.getter = Getter::ptt,
       .relative_threshold = 0,
       .absolute_threshold = 0.05,
       .draw_start = true,
       .ptt_probe_length_mm = 0.5,
       .ptt_probe_quality = 4,
       .ptt_min_radius_mm = 1,
       .ptt_weak_links = true,
       .ptt_bound_interval = 5,
       .ptt_substeps = 4});
  for (const std::size_t gradients : std::initializer_list<std::size_t>{31, 64, 150, 200}) {
    add(fmt::format("boot with {} gradients", gradients), bootstrap("mirror321", false, 4, gradients, *pool),
        {.getter = Getter::boot});
  }
  add("boot on another sphere", bootstrap("repulsion724", false, 6, 64, *pool),
      {.getter = Getter::boot, .boot_retry = BootRetry::no_peak_or_angle, .boot_seed = true});
  add("boot with CSA", bootstrap("mirror321", true, 4, 64, *pool), {.getter = Getter::boot, .max_angle_deg = 35});
  const Field tensors = test::tensor_field(geometry, Smooth::first, ball);
  add("tensor", tensors, {.getter = Getter::tensor});
  add("tensor by RK4", tensors, {.getter = Getter::tensor, .rk4 = true});
  add("closest of given peaks",
      test::peak_field(
          geometry, 3,
          [](Vec3d p, Vec3d* peaks) {
            peaks[0] = Smooth::second(p) * 0.7;
            peaks[2] = Smooth::first(p);
          },
          ball),
      {.getter = Getter::closest});
  return all;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

// All streamlines of some seeds, in plain numbers.
std::vector<float> run(const CpuKernels& kernels, const TrackingInput& input) {
  std::vector<float> result;
  const SlabMemory memory(input);
  std::vector<float> points(3 * std::size_t{input.plan.max_steps});
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> share(-0.05f, 1.05f);
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const float position[3] = {14 * share(generator), 13 * share(generator), 10 * share(generator)};
    float directions[3 * most_initial_directions];
    const InitialDirections initial = kernels.initial_directions(input, memory.slab(), seed, position, directions);
    result.push_back(static_cast<float>(initial.count));
    result.push_back(static_cast<float>(initial.seed_reason));
    for (std::uint32_t d = 0; d < initial.count; ++d) {
      result.insert(result.end(), directions + 3 * d, directions + 3 * d + 3);
      for (std::uint32_t half = 0; half < 2; ++half) {
        float ahead[3];
        for (int i = 0; i < 3; ++i)
          ahead[i] =
              half == 0 ? directions[3 * d + static_cast<unsigned>(i)] : -directions[3 * d + static_cast<unsigned>(i)];
        const HalfEnd end = kernels.track_half(input, memory.slab(), seed, d, half, position, ahead, points.data());
        result.push_back(static_cast<float>(end.points));
        result.push_back(static_cast<float>(end.reason));
        result.insert(result.end(), points.begin(), points.begin() + 3 * static_cast<std::ptrdiff_t>(end.points));
      }
    }
  }
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(TrackKernels, give_the_same_bits_with_all_instructions_of_this_cpu) {
  int compared = 0;
  for (const Case& c : cases()) {
    const TrackingPlan plan = make_tracking_plan(c.options, c.field.geometry).value();
    const KernelTables tables = make_kernel_tables(plan, c.field).value();
    const TrackingInput input = make_tracking_input(plan, c.field, tables);
    const std::vector<float> truth = run(*portable_kernels(), input);
    EXPECT_GT(truth.size(), 400u) << c.name << ": too little was tracked to compare";
    for (const CpuKernels* kernels : {avx2_kernels(), avx512_kernels()}) {
      if (kernels == nullptr) continue;
      ++compared;
      EXPECT_TRUE(same_bits(run(*kernels, input), truth)) << c.name << " on " << kernels->name;
    }
  }
  if (compared == 0) GTEST_SKIP() << "this CPU has neither AVX2 nor AVX-512";
}

TEST(TrackKernels, give_the_same_bits_for_any_threads_and_ranges) {
  for (const Case& c : cases()) {
    const TrackingPlan plan = make_tracking_plan(c.options, c.field.geometry).value();
    std::vector<Vec3> positions;
    std::mt19937 generator(6);
    std::uniform_real_distribution<float> share(0.0f, 1.0f);
    for (int i = 0; i < 24; ++i) {
      positions.push_back({14 * share(generator), 13 * share(generator), 10 * share(generator)});
    }
    const auto seeds = listed_seeds(positions).value();
    const auto track = [&](int threads, std::uint64_t piece) {
      const auto pool = ThreadPool::create(threads).value();
      const auto tracker = make_cpu_tracker(*pool);
      EXPECT_TRUE(tracker->prepare(plan, c.field, *seeds, nullptr));
      std::vector<float> points, facts;
      StreamlineBatch batch;
      for (std::uint64_t first = 0; first < 24; first += piece) {
        EXPECT_TRUE(tracker->track({first, std::min<std::uint64_t>(piece, 24 - first)}, batch));
        points.insert(points.end(), batch.points.begin(), batch.points.end());
        for (std::size_t i = 0; i < batch.streamline_count(); ++i) {
          facts.push_back(static_cast<float>(batch.seed_index[i]));
          facts.push_back(static_cast<float>(batch.offsets[i + 1] - batch.offsets[i]));
          facts.push_back(static_cast<float>(batch.end_reason[2 * i] * 10 + batch.end_reason[2 * i + 1]));
          facts.push_back(static_cast<float>(batch.seed_point[i]));
        }
      }
      points.insert(points.end(), facts.begin(), facts.end());
      return points;
    };
    const std::vector<float> truth = track(1, 24);
    EXPECT_TRUE(same_bits(track(4, 24), truth)) << c.name;
    EXPECT_TRUE(same_bits(track(2, 7), truth)) << c.name;
    EXPECT_TRUE(same_bits(track(3, 2), truth)) << c.name;
  }
}

}  // namespace
}  // namespace cingulum::track_kernels_tests
