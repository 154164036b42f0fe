// Models fitted on CUDA equal those of the CPU, bit for bit: tensors, OPDT, CSA, the bootstrap's preparation, CSD and
// amplitudes, over options, sizes and voxels that no brain has. A device that cannot fit says why. Where two numbers
// are NaN they count as equal (contract, section 1).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dmri/models/bootstrap.hpp"
#include "dmri/models/csd.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/response.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/sphere/sphere.hpp"
#include "numerics/classify.hpp"
#include "support/each_device.hpp"
#include "support/spiral.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;
using test::spiral;

// A series of `directions` weighted volumes among `b0` others, and voxels of crossing fibres with noise. Every 13th
// voxel is one that a scanner does not deliver.
struct Series {
  DwiSignals signals;
  std::vector<double> b_values;
  std::vector<Vec3d> directions;
  std::vector<Vec3d> weighted_directions;
  std::vector<std::uint32_t> weighted, b0;

  Series(int direction_count, int b0_count, std::size_t voxels, std::uint32_t seed, double b_value = 2000) {
    const auto all = spiral(direction_count);
    // b0 volumes are spread among the others.
    for (int i = 0, next = 0, b0_left = b0_count; i < direction_count + b0_count; ++i) {
      if (b0_left > 0 && (i % 7 == 0 || next == direction_count)) {
        b0.push_back(static_cast<std::uint32_t>(i));
        b_values.push_back(i % 2 == 0 ? 0 : 5);
        directions.push_back({0, 0, 0});
        --b0_left;
        continue;
      }
      weighted.push_back(static_cast<std::uint32_t>(i));
      b_values.push_back(b_value + 10 * (next % 3));
      directions.push_back(all[static_cast<std::size_t>(next)]);
      weighted_directions.push_back(directions.back());
      ++next;
    }
    signals.volumes = directions.size();
    signals.geometry.size = {static_cast<std::int64_t>(voxels), 1, 1};
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const auto direction = [&] { return normalise(Vec3d{normal(random), normal(random), normal(random)}); };
    for (std::size_t v = 0; v < voxels; ++v) {
      signals.voxels.push_back(static_cast<std::uint32_t>(v));
      const Vec3d first = direction(), second = direction();
      const double share = uniform(random);
      const double noise = v % 3 == 0 ? 0 : 40 * uniform(random);
      for (std::size_t i = 0; i < directions.size(); ++i) {
        const auto fibre = [&](Vec3d f) {
          const double cosine = dot(directions[i], f);
          return std::exp(-b_values[i] * (0.3e-3 + 1.4e-3 * cosine * cosine));
        };
        const double signal = 800 * (share * fibre(first) + (1 - share) * fibre(second));
        signals.values.push_back(static_cast<float>(std::abs(signal + noise * normal(random))));
      }
      if (v % 13 == 12) spoil(v, static_cast<std::uint32_t>(v / 13), random);
    }
  }

  void spoil(std::size_t voxel, std::uint32_t kind, std::mt19937& random) {
    const std::span<float> record(signals.values.data() + voxel * signals.volumes, signals.volumes);
    const auto any = [&] { return record.begin() + static_cast<std::ptrdiff_t>(random() % record.size()); };
    switch (kind % 9) {
      case 0: std::fill(record.begin(), record.end(), 0.0f); break;
      case 1: std::fill(record.begin(), record.end(), -5.0f); break;
      case 2: *any() = std::numeric_limits<float>::quiet_NaN(); break;
      case 3: *any() = std::numeric_limits<float>::infinity(); break;
      case 4: std::fill(record.begin(), record.end(), 65535.0f); break;  // saturated
      case 5: std::fill(record.begin(), record.end(), 1e-42f); break;    // subnormal
      case 6: *any() = 3e38f; break;
      case 7: std::fill(record.begin(), record.begin() + 3, 0.0f); break;
      default:
        for (float& value : record) value = -value;
        break;
    }
  }
  [[nodiscard]] FitRecords records() const { return {signals.values, signals.volumes}; }
};

bool same(float a, float b) {
  const auto is_nan = [](float x) { return (numerics::float_bits(x) & 0x7fffffffu) > 0x7f800000u; };
  return numerics::float_bits(a) == numerics::float_bits(b) || (is_nan(a) && is_nan(b));
}

::testing::AssertionResult same_bits(std::span<const float> device, std::span<const float> cpu, std::size_t per_voxel) {
  if (device.size() != cpu.size()) return ::testing::AssertionFailure() << device.size() << " and " << cpu.size();
  std::size_t different = 0, first = 0;
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    if (same(device[i], cpu[i])) continue;
    if (different++ == 0) first = i;
  }
  if (different == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << different << " of " << cpu.size() << " differ, first in voxel "
                                       << first / per_voxel << " number " << first % per_voxel << ": " << device[first]
                                       << " and " << cpu[first];
}

class DeviceModels : public testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pool_ = ThreadPool::create(3).value();
    auto made = make_fit_device(device());
    ASSERT_TRUE(made) << made.error().message();
    device_ = std::move(*made);
  }
  [[nodiscard]] FitMachine on_device() { return {*pool_, device_.get()}; }
  [[nodiscard]] FitMachine on_cpu() { return {*pool_}; }
  // More than one piece of staging, and not a multiple of anything; fewer for a slow run under a sanitizer.
  [[nodiscard]] std::size_t voxels(std::size_t usual) const {
    const char* const text = std::getenv("CINGULUM_TEST_VOXELS");
    return text == nullptr ? usual : std::min<std::size_t>(usual, std::strtoul(text, nullptr, 10));
  }

 private:
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<FitDevice> device_;
};

TEST_P(DeviceModels, tensors_have_the_bits_of_the_cpu) {
  for (const auto& [directions, b0, count] :
       {std::tuple{6, 1, 5003u}, {30, 3, 20011u}, {64, 1, 70001u}, {300, 12, 3001u}}) {
    const Series series(directions, b0, voxels(count), 1);
    for (const TensorMethod method : {TensorMethod::ols, TensorMethod::wls}) {
      for (const double min_signal : {1e-4, 1.0}) {
        SCOPED_TRACE(
            fmt::format("{} directions, method {}, at least {}", directions, static_cast<int>(method), min_signal));
        TensorFitOptions options;
        options.method = method;
        options.min_signal = min_signal;
        ASSERT_OK_AND_ASSIGN(const TensorFit ours,
                             fit_tensors(series.signals, series.b_values, series.directions, options, on_device()));
        ASSERT_OK_AND_ASSIGN(const TensorFit cpu,
                             fit_tensors(series.signals, series.b_values, series.directions, options, on_cpu()));
        EXPECT_TRUE(same_bits(ours.tensor, cpu.tensor, 6));
        EXPECT_TRUE(same_bits(ours.eigenvalues, cpu.eigenvalues, 3));
        EXPECT_TRUE(same_bits(ours.v1, cpu.v1, 3));
        EXPECT_TRUE(same_bits(ours.fa, cpu.fa, 1));
        EXPECT_TRUE(same_bits(ours.md, cpu.md, 1));
        EXPECT_TRUE(same_bits(ours.rd, cpu.rd, 1));
        EXPECT_TRUE(same_bits(ours.s0, cpu.s0, 1));
        EXPECT_EQ(ours.unsolvable, cpu.unsolvable);
      }
    }
  }
}

TEST_P(DeviceModels, opdt_and_csa_have_the_bits_of_the_cpu) {
  for (const auto& [directions, b0, degree, count] :
       {std::tuple{7, 1, 2, 4001u}, {64, 1, 4, 50021u}, {64, 3, 8, 9001u}, {150, 6, 6, 5003u}, {2000, 1, 4, 259u}}) {
    const Series series(directions, b0, voxels(count), 2);
    for (const QBallModelKind kind : {QBallModelKind::opdt, QBallModelKind::csa}) {
      for (const double min_signal : {1e-5, 1.0}) {
        SCOPED_TRACE(fmt::format("{} directions, degree {}, kind {}, at least {}", directions, degree,
                                 static_cast<int>(kind), min_signal));
        QBallOptions options;
        options.kind = kind;
        options.degree = degree;
        options.min_signal = min_signal;
        if (min_signal == 1.0) options.convention = numerics::HarmonicConvention::tournier07;
        ASSERT_OK_AND_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(series.weighted_directions, options));
        const auto fit = [&](const FitMachine& machine) {
          return fit_q_ball(matrices, options, series.signals.values, series.signals.volumes, series.weighted,
                            series.b0, machine);
        };
        ASSERT_OK_AND_ASSIGN(const QBallFit ours, fit(on_device()));
        ASSERT_OK_AND_ASSIGN(const QBallFit cpu, fit(on_cpu()));
        EXPECT_TRUE(same_bits(ours.coefficients, cpu.coefficients, matrices.linear.rows));
        EXPECT_TRUE(same_bits(ours.gfa, cpu.gfa, 1));
      }
    }
  }
}

TEST_P(DeviceModels, the_preparation_of_the_bootstrap_has_the_bits_of_the_cpu) {
  for (const auto& [directions, b0, degree, count] :
       {std::tuple{16, 2, 2, 4001u}, {64, 1, 4, 50021u}, {150, 6, 8, 5003u}}) {
    const Series series(directions, b0, voxels(count), 3);
    SCOPED_TRACE(fmt::format("{} directions, degree {}", directions, degree));
    QBallOptions options;
    options.degree = degree;
    ASSERT_OK_AND_ASSIGN(const BootstrapMatrices matrices,
                         make_bootstrap_matrices(series.weighted_directions, options));
    const auto fit = [&](const FitMachine& machine) {
      return prepare_bootstrap(matrices, series.signals.values, series.signals.volumes, series.weighted, series.b0,
                               machine);
    };
    ASSERT_OK_AND_ASSIGN(const BootstrapVoxels ours, fit(on_device()));
    ASSERT_OK_AND_ASSIGN(const BootstrapVoxels cpu, fit(on_cpu()));
    EXPECT_TRUE(same_bits(ours.coefficients, cpu.coefficients, cpu.coefficient_count));
    EXPECT_TRUE(same_bits(ours.residuals, cpu.residuals, cpu.direction_count));
    EXPECT_TRUE(same_bits(ours.b0, cpu.b0, 1));
  }
}

struct CsdCase {
  int directions;
  int degree;
  const char* sphere;
  double lambda = 1, tau = 0.1;
  int iterations = 50;
  std::size_t voxels = 3001;
};

TEST_P(DeviceModels, csd_has_the_bits_and_the_iterations_of_the_cpu) {
  const std::vector<CsdCase> cases = {
      {.directions = 64, .degree = 8, .sphere = "repulsion362", .voxels = 36007},
      {.directions = 64, .degree = 8, .sphere = "repulsion362", .lambda = 0.1, .tau = 0.3},
      {.directions = 64, .degree = 8, .sphere = "repulsion724", .iterations = 2},
      {.directions = 64,
       .degree = 8,
       .sphere = "mirror321",
       .lambda = 0},  // no constraint: singular where few directions
      {.directions = 7, .degree = 0, .sphere = "repulsion362"},
      {.directions = 20, .degree = 2, .sphere = "repulsion362"},
      {.directions = 32, .degree = 4, .sphere = "mirror501"},
      {.directions = 40, .degree = 6, .sphere = "repulsion362", .tau = 0},
      {.directions = 30, .degree = 8, .sphere = "repulsion362"},  // fewer directions than coefficients
      {.directions = 90, .degree = 10, .sphere = "repulsion362", .voxels = 1501},
      {.directions = 120, .degree = 12, .sphere = "repulsion724", .voxels = 701},
  };
  std::uint32_t seed = 10;
  for (const CsdCase& test : cases) {
    SCOPED_TRACE(fmt::format("{} directions, degree {}, {}", test.directions, test.degree, test.sphere));
    const Series series(test.directions, 2, voxels(test.voxels), seed++, 3000);
    FibreResponse response;
    response.eigenvalues = {1.7e-3, 0.3e-3, 0.3e-3};
    response.s0 = 800;
    const std::vector<double> b(series.weighted_directions.size(), 3000);
    ASSERT_OK_AND_ASSIGN(const std::vector<double> zonal,
                         zonal_response(response, b, series.weighted_directions, test.degree));
    ASSERT_OK_AND_ASSIGN(const Sphere sphere, named_sphere(test.sphere));
    CsdOptions options;
    options.degree = test.degree;
    options.lambda = test.lambda;
    options.tau = test.tau;
    options.iterations = test.iterations;
    ASSERT_OK_AND_ASSIGN(const CsdModel model,
                         CsdModel::create(series.weighted_directions, zonal, sphere.directions, options));
    std::size_t reported = 0;
    const auto fit = [&](const FitMachine& machine) {
      reported = 0;
      return fit_csd(model, series.signals.values, series.signals.volumes, series.weighted, machine,
                     [&](std::size_t voxels) { __atomic_fetch_add(&reported, voxels, __ATOMIC_RELAXED); });
    };
    ASSERT_OK_AND_ASSIGN(const CsdFit cpu, fit(on_cpu()));
    ASSERT_OK_AND_ASSIGN(const CsdFit ours, fit(on_device()));
    EXPECT_TRUE(same_bits(ours.coefficients, cpu.coefficients, model.coefficient_count()));
    EXPECT_EQ(ours.unconstrained, cpu.unconstrained);
    EXPECT_EQ(ours.not_converged, cpu.not_converged);
    EXPECT_EQ(ours.not_solvable, cpu.not_solvable);
    EXPECT_EQ(ours.iterations, cpu.iterations);
    EXPECT_EQ(reported, series.signals.voxels.size());
  }
}

TEST_P(DeviceModels, amplitudes_have_the_bits_of_the_cpu) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const auto& [degree, name, count] : {std::tuple{8, "repulsion724", 9001u},
                                            {4, "mirror321", 20011u},
                                            {12, "repulsion362", 501u},
                                            {0, "mirror501", 17u}}) {
    ASSERT_OK_AND_ASSIGN(const Sphere sphere, named_sphere(name));
    const numerics::HarmonicBasis basis = {numerics::HarmonicConvention::descoteaux07_legacy, degree, false};
    const auto numbers = static_cast<std::size_t>(numerics::coefficient_count(degree, false));
    std::vector<float> coefficients(numbers * voxels(count));
    for (float& value : coefficients) value = normal(random);
    for (std::size_t i = 0; i < numbers; ++i) coefficients[i] = 0;
    coefficients[coefficients.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    coefficients.back() = std::numeric_limits<float>::infinity();
    for (const bool clip : {false, true}) {
      SCOPED_TRACE(fmt::format("degree {}, {}, clipped {}", degree, name, clip));
      ASSERT_OK_AND_ASSIGN(const auto ours,
                           sample_harmonics(basis, coefficients, sphere.directions, clip, on_device()));
      ASSERT_OK_AND_ASSIGN(const auto cpu, sample_harmonics(basis, coefficients, sphere.directions, clip, on_cpu()));
      EXPECT_TRUE(same_bits(ours, cpu, sphere.size()));
    }
  }
}

class EveryDeviceModels : public DeviceModels {};

TEST_P(EveryDeviceModels, nothing_is_fitted_where_there_are_no_voxels) {
  const Series series(30, 1, 0, 1);
  ASSERT_OK_AND_ASSIGN(const TensorFit fit,
                       fit_tensors(series.signals, series.b_values, series.directions, {}, on_device()));
  EXPECT_EQ(fit.size(), 0u);
}

CGL_FOR_DEVICES(DeviceModels, "cuda");
CGL_FOR_DEVICES(EveryDeviceModels, "cpu", "cuda");

class DeviceWithoutModels : public testing::EachDevice {};

TEST_P(DeviceWithoutModels, says_why_and_what_to_do) {
  EXPECT_TRUE(testing::fails_with(make_fit_device(device()), ErrorKind::unavailable, "no float64"));
}

CGL_FOR_DEVICES(DeviceWithoutModels, "webgpu");

}  // namespace
}  // namespace cingulum
