#include "dmri/models/q_ball.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "dmri/models/bootstrap.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/sphere/sphere.hpp"
#include "support/each_device.hpp"

namespace cingulum {
namespace {

using numerics::HarmonicConvention;
using numerics::Vec3d;

std::vector<Vec3d> hemisphere() {
  return named_sphere("repulsion362")->directions;
}

TEST(HarmonicFit, a_function_of_the_basis_is_recovered_exactly) {
  for (const auto convention :
       {HarmonicConvention::descoteaux07_legacy, HarmonicConvention::descoteaux07, HarmonicConvention::tournier07}) {
    const numerics::HarmonicBasis basis = {convention, 8, false};
    const auto directions = hemisphere();
    const DenseMatrix matrix = harmonic_matrix(basis, directions);
    const DenseMatrix inverse = regularised_inverse(matrix, basis, 0.0);
    ASSERT_EQ(inverse.rows, 45u);
    for (std::size_t i = 0; i < 45; ++i) {
      for (std::size_t j = 0; j < 45; ++j) {
        double sum = 0;
        for (std::size_t d = 0; d < directions.size(); ++d) sum += inverse.at(i, d) * matrix.at(d, j);
        EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-12);
      }
    }
  }
}

TEST(HarmonicFit, smoothing_follows_the_normal_equations) {
  const numerics::HarmonicBasis basis = {HarmonicConvention::tournier07, 4, false};
  const auto directions = hemisphere();
  const DenseMatrix matrix = harmonic_matrix(basis, directions);
  const double lambda = 0.006;
  const DenseMatrix inverse = regularised_inverse(matrix, basis, lambda);
  // (B'B + lambda L^2) inverse = B'
  for (std::size_t i = 0; i < 15; ++i) {
    const int l = numerics::harmonic_of_coefficient(static_cast<int>(i), false).l;
    for (std::size_t d = 0; d < directions.size(); d += 10) {
      double sum = lambda * l * l * (l + 1) * (l + 1) * inverse.at(i, d);
      for (std::size_t j = 0; j < 15; ++j) {
        double product = 0;
        for (std::size_t e = 0; e < directions.size(); ++e) product += matrix.at(e, i) * matrix.at(e, j);
        sum += product * inverse.at(j, d);
      }
      EXPECT_NEAR(sum, matrix.at(d, i), 1e-12);
    }
  }
}

TEST(HarmonicFit, legendre_polynomials_at_zero_are_known) {
  EXPECT_DOUBLE_EQ(legendre_at_zero(0), 1);
  EXPECT_DOUBLE_EQ(legendre_at_zero(1), 0);
  EXPECT_DOUBLE_EQ(legendre_at_zero(2), -0.5);
  EXPECT_DOUBLE_EQ(legendre_at_zero(4), 0.375);
  EXPECT_DOUBLE_EQ(legendre_at_zero(6), -0.3125);
  EXPECT_DOUBLE_EQ(legendre_at_zero(8), 35.0 / 128);
}

TEST(HarmonicFit, the_degree_is_lowered_to_what_directions_determine) {
  EXPECT_EQ(degree_for_directions(8, 64), 8);
  EXPECT_EQ(degree_for_directions(8, 45), 8);
  EXPECT_EQ(degree_for_directions(8, 44), 6);
  EXPECT_EQ(degree_for_directions(8, 15), 4);
  EXPECT_EQ(degree_for_directions(5, 100), 4);
  EXPECT_EQ(degree_for_directions(4, 3), 0);
}

TEST(HarmonicFit, hat_and_residual_matrices_have_their_properties) {
  const numerics::HarmonicBasis basis = {HarmonicConvention::descoteaux07_legacy, 4, false};
  auto directions = hemisphere();
  directions.resize(64);
  const DenseMatrix matrix = harmonic_matrix(basis, directions);
  const DenseMatrix hat = hat_matrix(matrix);
  double trace = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    trace += hat.at(i, i);
    for (std::size_t j = 0; j < 64; ++j) {
      double square = 0;
      for (std::size_t k = 0; k < 64; ++k) square += hat.at(i, k) * hat.at(k, j);
      EXPECT_NEAR(square, hat.at(i, j), 1e-12);  // a projection
    }
    for (std::size_t j = 0; j < 15; ++j) {
      double kept = 0;
      for (std::size_t k = 0; k < 64; ++k) kept += hat.at(i, k) * matrix.at(k, j);
      EXPECT_NEAR(kept, matrix.at(i, j), 1e-12);
    }
  }
  EXPECT_NEAR(trace, 15, 1e-10);
  ASSERT_OK_AND_ASSIGN(const ResidualMatrix residual, leveraged_residual_matrix(hat));
  EXPECT_EQ(residual.exact_rows, 0u);
  for (std::size_t j = 0; j < 64; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < 64; ++i) sum += residual.matrix.at(i, j);
    EXPECT_NEAR(sum, 0, 1e-12);
    // Up to the mean of the column a row is (I - H) over the leverage.
    const double mean_first = residual.matrix.at(0, j) + hat.at(0, j) / std::sqrt(1 - hat.at(0, 0)) -
                              (j == 0 ? 1 : 0) / std::sqrt(1 - hat.at(0, 0));
    const double mean_second = residual.matrix.at(1, j) + hat.at(1, j) / std::sqrt(1 - hat.at(1, 1)) -
                               (j == 1 ? 1 : 0) / std::sqrt(1 - hat.at(1, 1));
    EXPECT_NEAR(mean_first, mean_second, 1e-12);
  }
}

TEST(HarmonicFit, a_direction_that_is_fitted_exactly_has_no_residual) {
  const numerics::HarmonicBasis basis = {HarmonicConvention::descoteaux07_legacy, 4, false};
  auto directions = hemisphere();
  directions.resize(15);
  EXPECT_TRUE(testing::fails_with(leveraged_residual_matrix(hat_matrix(harmonic_matrix(basis, directions))),
                                  ErrorKind::invalid_argument, "a lower sh_order"));
  // Degree 2 has six coefficients; eleven directions on the equator leave one of the six to the pole alone.
  const numerics::HarmonicBasis low = {HarmonicConvention::descoteaux07_legacy, 2, false};
  std::vector<Vec3d> flat = {{0, 0, 1}};
  for (int i = 0; i < 11; ++i) flat.push_back({std::cos(0.28 * i), std::sin(0.28 * i), 0});
  ASSERT_OK_AND_ASSIGN(const ResidualMatrix residual,
                       leveraged_residual_matrix(hat_matrix(harmonic_matrix(low, flat))));
  EXPECT_EQ(residual.exact_rows, 1u);
  for (const double value : residual.matrix.values) EXPECT_TRUE(std::isfinite(value));
}

struct Data {
  std::vector<Vec3d> directions = hemisphere();
  std::vector<std::uint32_t> volumes;
  std::vector<std::uint32_t> b0 = {0, 70};
  std::vector<float> signals;
  std::size_t stride = 71;
  std::size_t voxels;

  explicit Data(std::size_t count) : voxels(count) {
    directions.resize(69);
    for (std::uint32_t i = 0; i < 69; ++i) volumes.push_back(i + 1);
    std::mt19937 random(9);
    std::uniform_real_distribution<float> uniform(0, 400);
    for (std::size_t i = 0; i < count * stride; ++i) {
      const bool is_b0 = i % stride == 0 || i % stride == 70;
      signals.push_back(is_b0 ? 500 : uniform(random));
    }
    if (count < 8) return;
    signals[5 * stride + 3] = 0;  // raised to min_signal
    for (std::size_t i = 0; i < stride; ++i) signals[7 * stride + i] = 0;
  }
};

TEST(QBall, every_instruction_set_gives_the_bits_of_the_scalar_kernel) {
  const Data data(45);
  const auto pool = *ThreadPool::create(2);
  for (const auto kind : {QBallModelKind::opdt, QBallModelKind::csa}) {
    QBallOptions options;
    options.kind = kind;
    ASSERT_OK_AND_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(data.directions, options));
    const QBallView view = {.kind = kind,
                            .count = 15,
                            .directions = 69,
                            .b0_count = 2,
                            .min_signal = options.min_signal,
                            .volumes = data.volumes.data(),
                            .b0_volumes = data.b0.data(),
                            .linear = matrices.linear.values.data(),
                            .quadratic = matrices.quadratic.values.data()};
    std::vector<float> expected, expected_gfa;
    for (std::size_t v = 0; v < data.voxels; ++v) {
      std::vector<double> signal(data.signals.begin() + static_cast<std::ptrdiff_t>(v * data.stride),
                                 data.signals.begin() + static_cast<std::ptrdiff_t>((v + 1) * data.stride));
      std::vector<double> normalised(69), work(69 + 15), coefficients(15);
      normalise_signal<double>(view, signal.data(), normalised.data());
      fit_q_ball_voxel<double>(view, normalised.data(), work.data(), coefficients.data());
      for (const double c : coefficients) expected.push_back(static_cast<float>(c));
      expected_gfa.push_back(static_cast<float>(generalised_fractional_anisotropy<double>(coefficients.data(), 15)));
    }
    using numerics::SimdLevel;
    for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
      if (level > numerics::best_simd_level()) continue;
      ASSERT_OK_AND_ASSIGN(const QBallFit fit, fit_q_ball(matrices, options, data.signals, data.stride, data.volumes,
                                                          data.b0, *pool, {}, level));
      EXPECT_EQ(std::memcmp(fit.coefficients.data(), expected.data(), expected.size() * 4), 0);
      EXPECT_EQ(std::memcmp(fit.gfa.data(), expected_gfa.data(), expected_gfa.size() * 4), 0);
    }
  }
}

TEST(QBall, an_isotropic_signal_has_no_anisotropy) {
  Data data(1);
  for (const std::uint32_t volume : data.volumes) data.signals[volume] = 200;
  const auto pool = *ThreadPool::create(1);
  for (const auto kind : {QBallModelKind::opdt, QBallModelKind::csa}) {
    QBallOptions options;
    options.kind = kind;
    ASSERT_OK_AND_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(data.directions, options));
    ASSERT_OK_AND_ASSIGN(const QBallFit fit,
                         fit_q_ball(matrices, options, data.signals, data.stride, data.volumes, data.b0, *pool));
    EXPECT_LT(fit.gfa[0], 1e-6);
    if (kind == QBallModelKind::csa) {
      EXPECT_FLOAT_EQ(fit.coefficients[0], 0.28209479f);
    }
  }
}

TEST(QBall, missing_b0_volumes_are_refused) {
  const Data data(1);
  const auto pool = *ThreadPool::create(1);
  ASSERT_OK_AND_ASSIGN(const QBallMatrices matrices, make_q_ball_matrices(data.directions, {}));
  EXPECT_TRUE(testing::fails_with(fit_q_ball(matrices, {}, data.signals, data.stride, data.volumes, {}, *pool),
                                  ErrorKind::invalid_argument, "no b0 volume"));
}

TEST(Bootstrap, coefficients_and_residuals_rebuild_the_hat_and_the_residuals_of_the_signal) {
  const Data data(19);
  const auto pool = *ThreadPool::create(2);
  ASSERT_OK_AND_ASSIGN(const BootstrapMatrices matrices, make_bootstrap_matrices(data.directions, {}));
  ASSERT_OK_AND_ASSIGN(const BootstrapVoxels voxels,
                       prepare_bootstrap(matrices, data.signals, data.stride, data.volumes, data.b0, *pool));
  for (std::size_t v = 0; v < data.voxels; ++v) {
    for (std::size_t i = 0; i < 69; ++i) {
      double hat = 0, residual = 0, rebuilt = 0;
      for (std::size_t j = 0; j < 69; ++j) {
        const auto s = static_cast<double>(data.signals[v * data.stride + data.volumes[j]]);
        hat += matrices.hat.at(i, j) * s;
        residual += matrices.residual.at(i, j) * s;
      }
      for (std::size_t c = 0; c < 15; ++c) {
        rebuilt += matrices.basis_matrix.at(i, c) * static_cast<double>(voxels.coefficients[v * 15 + c]);
      }
      EXPECT_NEAR(rebuilt, hat, 1e-3);
      EXPECT_NEAR(static_cast<double>(voxels.residuals[v * 69 + i]), residual, 1e-4);
    }
  }
  EXPECT_FLOAT_EQ(voxels.b0[0], 500);
  EXPECT_FLOAT_EQ(voxels.b0[7], 0);
  using numerics::SimdLevel;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2}) {
    if (level > numerics::best_simd_level()) continue;
    ASSERT_OK_AND_ASSIGN(const BootstrapVoxels again,
                         prepare_bootstrap(matrices, data.signals, data.stride, data.volumes, data.b0, *pool, level));
    EXPECT_EQ(again.coefficients, voxels.coefficients);
    EXPECT_EQ(again.residuals, voxels.residuals);
  }
}

TEST(SphericalFunction, amplitudes_are_those_of_the_harmonics_and_can_be_clipped) {
  const numerics::HarmonicBasis basis = {HarmonicConvention::tournier07, 2, false};
  const auto pool = *ThreadPool::create(2);
  const std::vector<Vec3d> directions = {{0, 0, 1}, {1, 0, 0}, {0, -1, 0}};
  // Y_20 = sqrt(5 / (16 pi)) (3 z^2 - 1), in two voxels of which the second is its opposite.
  std::vector<float> coefficients(12, 0.0f);
  coefficients[3] = 1;
  coefficients[9] = -1;
  const float at_pole = 0.63078313f;
  const auto kept = *sample_harmonics(basis, coefficients, directions, false, *pool);
  const std::vector<float> expected = {at_pole, -at_pole / 2, -at_pole / 2, -at_pole, at_pole / 2, at_pole / 2};
  const auto clipped = *sample_harmonics(basis, coefficients, directions, true, *pool);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(kept[i], expected[i], 1e-7);
    EXPECT_NEAR(clipped[i], std::max(0.0f, expected[i]), 1e-7);
  }
}

}  // namespace
}  // namespace cingulum
