#include "dmri/models/csd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "dmri/models/csd_team_kernel.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/response.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/sphere/sphere.hpp"
#include "support/each_device.hpp"
#include "support/spiral.hpp"

namespace cingulum::csd_tests {
namespace {

using numerics::Vec3d;
using test::spiral;

constexpr double b_value = 3000;

double fibre_signal(Vec3d gradient, Vec3d fibre) {
  const double cosine = dot(gradient, fibre);
  return std::exp(-b_value * (0.3e-3 + 1.4e-3 * cosine * cosine));
}

struct Deconvolution {
  std::vector<Vec3d> gradients = spiral(64);
  std::vector<std::uint32_t> volumes;
  FibreResponse response;
  CsdOptions options;
  Sphere constraint;
  std::unique_ptr<ThreadPool> pool;

  Deconvolution() {
    for (std::uint32_t i = 0; i < 64; ++i) volumes.push_back(i + 1);
    response.eigenvalues = {1.7e-3, 0.3e-3, 0.3e-3};
    response.s0 = 100;
    constraint = *named_sphere("repulsion362");
    pool = *ThreadPool::create(2);
  }
  Result<CsdModel> model() const {
    const std::vector<double> b(gradients.size(), b_value);
    return zonal_response(response, b, gradients, options.degree).and_then([&](const std::vector<double>& zonal) {
      return CsdModel::create(gradients, zonal, constraint.directions, options);
    });
  }
  std::vector<float> signal(const std::vector<std::pair<double, Vec3d>>& fibres, double noise,
                            std::mt19937& random) const {
    std::normal_distribution<double> normal(0, noise > 0 ? noise : 1);
    std::vector<float> record = {100};
    for (const Vec3d& g : gradients) {
      double sum = 0;
      for (const auto& [share, fibre] : fibres) sum += 100 * share * fibre_signal(g, fibre);
      record.push_back(static_cast<float>(std::abs(sum + (noise > 0 ? normal(random) : 0))));
    }
    return record;
  }
};

Vec3d random_direction(std::mt19937& random) {
  std::normal_distribution<double> normal;
  return normalise(Vec3d{normal(random), normal(random), normal(random)});
}

// Amplitudes on a fine sphere; the local maxima above a third of the greatest.
std::vector<Vec3d> peaks_of(const CsdModel& model, std::span<const float> coefficients, ThreadPool& pool) {
  const Sphere fine = *named_sphere("mirror501");
  const auto values = *sample_harmonics(model.basis(), coefficients, fine.directions, false, pool);
  const float greatest = *std::max_element(values.begin(), values.end());
  std::vector<Vec3d> result;
  for (std::size_t v = 0; v < fine.size(); ++v) {
    bool peak = values[v] > greatest / 3;
    for (std::size_t n = fine.neighbour_offsets[v]; n < fine.neighbour_offsets[v + 1]; ++n) {
      peak = peak && values[v] > values[fine.neighbours[n]];
    }
    if (peak) result.push_back(fine.directions[v]);
  }
  return result;
}

double degrees_between(Vec3d a, Vec3d b) {
  return std::acos(std::min(1.0, std::abs(dot(a, b)))) * 180 / 3.141592653589793;
}

TEST(Csd, a_single_fibre_peaks_along_itself_with_the_same_height_everywhere) {
  const Deconvolution setup;
  ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    const Vec3d fibre = random_direction(random);
    const auto record = setup.signal({{1, fibre}}, 0, random);
    ASSERT_OK_AND_ASSIGN(const CsdFit fit, fit_csd(model, record, record.size(), setup.volumes, *setup.pool));
    const auto peaks = peaks_of(model, fit.coefficients, *setup.pool);
    ASSERT_EQ(peaks.size(), 1u);
    EXPECT_LT(degrees_between(peaks[0], fibre), 5.5);  // half the distance of vertices, and a bit
    // A delta function has c_00 = Y_00.
    EXPECT_NEAR(fit.coefficients[0], 0.2821, 0.01);
  }
}

TEST(Csd, crossings_at_60_and_90_degrees_are_resolved_at_degree_8) {
  const Deconvolution setup;
  ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
  std::mt19937 random(2);
  for (const double angle : {60.0, 90.0}) {
    for (int i = 0; i < 10; ++i) {
      const Vec3d first = random_direction(random);
      const Vec3d normal = normalise(cross(first, random_direction(random)));
      const double radians = angle * 3.141592653589793 / 180;
      const Vec3d second = first * std::cos(radians) + cross(normal, first) * std::sin(radians);
      const auto record = setup.signal({{0.5, first}, {0.5, second}}, 0, random);
      ASSERT_OK_AND_ASSIGN(const CsdFit fit, fit_csd(model, record, record.size(), setup.volumes, *setup.pool));
      const auto peaks = peaks_of(model, fit.coefficients, *setup.pool);
      ASSERT_EQ(peaks.size(), 2u) << angle;
      const double straight = std::max(degrees_between(peaks[0], first), degrees_between(peaks[1], second));
      const double swapped = std::max(degrees_between(peaks[0], second), degrees_between(peaks[1], first));
      EXPECT_LT(std::min(straight, swapped), 9) << angle;
    }
  }
}

TEST(Csd, every_instruction_set_and_thread_count_gives_the_bits_of_the_scalar_kernel) {
  for (const int degree : {8, 6, 4, 2, 0}) {
    Deconvolution setup;
    setup.options.degree = degree;
    ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
    std::mt19937 random(static_cast<unsigned>(degree));
    std::vector<float> signals;
    std::uniform_real_distribution<double> share;
    // More than a piece of work, not a multiple of any width.
    const std::size_t voxels = degree == 8 ? 1237 : 131;
    for (std::size_t v = 0; v < voxels; ++v) {
      const double first = share(random);
      const auto record = setup.signal({{first, random_direction(random)}, {1 - first, random_direction(random)}},
                                       v % 3 == 0 ? 0 : 8, random);
      signals.insert(signals.end(), record.begin(), record.end());
    }
    // A voxel without signal.
    std::fill(signals.begin() + 65 * 17, signals.begin() + 65 * 18, 0.0f);
    std::vector<float> expected;
    std::uint64_t iterations = 0;
    std::size_t unconstrained = 0;  // the voxel without signal at least
    for (std::size_t v = 0; v < voxels; ++v) {
      double coefficients[csd_largest_count];
      int count = 0;
      const CsdEnd end =
          csd_fit_voxel(model.view(), signals.data() + 65 * v, setup.volumes.data(), coefficients, count);
      unconstrained += end == CsdEnd::unconstrained ? 1 : 0;
      iterations += static_cast<std::uint64_t>(count);
      for (std::size_t i = 0; i < model.coefficient_count(); ++i) {
        expected.push_back(static_cast<float>(coefficients[i]));
      }
    }
    EXPECT_GE(unconstrained, 1u);
    using numerics::SimdLevel;
    for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
      if (level > numerics::best_simd_level()) continue;
      for (const int threads : {1, 3}) {
        const auto pool = *ThreadPool::create(threads);
        ASSERT_OK_AND_ASSIGN(const CsdFit fit, fit_csd(model, signals, 65, setup.volumes, *pool, {}, level));
        ASSERT_EQ(fit.coefficients.size(), expected.size());
        EXPECT_EQ(std::memcmp(fit.coefficients.data(), expected.data(), expected.size() * sizeof(float)), 0)
            << "degree " << degree << ", level " << static_cast<int>(level);
        EXPECT_EQ(fit.iterations, iterations);
        EXPECT_EQ(fit.unconstrained, unconstrained);
      }
    }
  }
}

// What a warp of CUDA does, its lanes one after the other.
TEST(Csd, a_team_of_lanes_has_the_bits_of_the_scalar_kernel) {
  struct Case {
    int degree, iterations;
    double tau, lambda;
    const char* sphere;
  };
  for (const Case& test :
       {Case{8, 50, 0.1, 1, "repulsion362"}, Case{8, 2, 0.3, 1, "repulsion724"}, Case{8, 50, 0.1, 0, "repulsion362"},
        Case{0, 50, 0.1, 1, "repulsion362"}, Case{2, 50, 0.1, 1, "mirror321"}, Case{4, 50, 0.0, 1, "mirror501"},
        Case{6, 50, 0.1, 1, "repulsion362"}, Case{10, 50, 0.1, 1, "repulsion362"},
        Case{12, 50, 0.1, 1, "repulsion362"}}) {
    SCOPED_TRACE("degree " + std::to_string(test.degree) + " on " + test.sphere);
    Deconvolution setup;
    setup.options.degree = test.degree;
    setup.options.iterations = test.iterations;
    setup.options.tau = test.tau;
    setup.options.lambda = test.lambda;
    setup.constraint = *named_sphere(test.sphere);
    ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
    const CsdView view = model.view();
    std::mt19937 random(static_cast<unsigned>(test.degree) + 50);
    std::uniform_real_distribution<double> share;
    const std::vector<double> gram = in_panels(view, view.gram), gram_all = in_panels(view, view.gram_all);
    const CsdTeamView tables = {view, gram.data(), gram_all.data()};
    std::vector<double> own_gram(gram.size());
    std::vector<NumberPair> shared(team_bytes(view) / sizeof(NumberPair));
    const CsdTeamMemory memory = team_memory(view, shared.data(), own_gram.data());
    for (int v = 0; v < 41; ++v) {
      const double first = share(random);
      auto record = setup.signal({{first, random_direction(random)}, {1 - first, random_direction(random)}},
                                 v % 3 == 0 ? 0 : 8, random);
      if (v == 17) std::fill(record.begin(), record.end(), 0.0f);
      if (v == 18) std::fill(record.begin(), record.end(), -3.0f);
      double expected[csd_largest_count];
      int iterations = 0, team_iterations = 0;
      const CsdEnd end = csd_fit_voxel(view, record.data(), setup.volumes.data(), expected, iterations);
      const CsdEnd team_end =
          csd_fit_team(SerialTeam{}, tables, record.data(), setup.volumes.data(), memory, team_iterations);
      ASSERT_EQ(end, team_end) << "voxel " << v;
      ASSERT_EQ(iterations, team_iterations) << "voxel " << v;
      if (end == CsdEnd::not_solvable) continue;
      ASSERT_EQ(std::memcmp(memory.solution, expected, model.coefficient_count() * sizeof(double)), 0) << "voxel " << v;
    }
  }
}

// The matrix goes from one set of directions to the next by each of the three ways. The staged directions take the
// place of the factor, which a fit leaves full of numbers.
TEST(Csd, the_gram_matrix_of_a_team_is_the_scalar_one_with_zeros_behind_the_coefficients) {
  for (const int degree : {0, 2, 4, 6, 8, 10, 12}) {
    SCOPED_TRACE("degree " + std::to_string(degree));
    Deconvolution setup;
    setup.options.degree = degree;
    ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
    const CsdView view = model.view();
    const std::vector<double> gram = in_panels(view, view.gram), gram_all = in_panels(view, view.gram_all);
    const CsdTeamView tables = {view, gram.data(), gram_all.data()};
    std::vector<double> own_gram(gram.size());
    std::vector<NumberPair> shared(team_bytes(view) / sizeof(NumberPair));
    const CsdTeamMemory memory = team_memory(view, shared.data(), own_gram.data());
    std::vector<double> expected(static_cast<std::size_t>(padded_row_offset(view.stride)));
    std::vector<std::uint64_t> before, small(static_cast<std::size_t>(view.direction_stride) / 64);
    std::mt19937 random(static_cast<unsigned>(degree) + 70);
    // Few directions, fewer changes, nearly all directions, one change.
    for (const double share : {0.2, 0.25, 0.95, 0.949}) {
      int chosen = 0;
      std::mt19937 same(5);
      for (int d = 0; d < view.directions; ++d) {
        const std::uint64_t bit = std::uint64_t{1} << (d % 64);
        std::uint64_t& word = small[static_cast<std::size_t>(d) / 64];
        word = std::uniform_real_distribution<double>()(same) < share ? word | bit : word & ~bit;
        chosen += (word & bit) != 0 ? 1 : 0;
      }
      csd_change_gram(view, small.data(), before.empty() ? nullptr : before.data(), expected.data());
      std::memcpy(memory.small, small.data(), small.size() * sizeof(std::uint64_t));
      if (!before.empty()) std::memcpy(memory.before, before.data(), before.size() * sizeof(std::uint64_t));
      for (int i = 0; i < panel_numbers(view.stride); ++i)
        memory.factor[i] = 1e6 + std::uniform_real_distribution<double>()(random);
      team_change_gram(SerialTeam{}, tables, before.empty(), chosen, memory);
      for (int row = 0; row < view.stride; ++row) {
        for (int column = 0; column <= row; ++column) {
          const double truth =
              row < view.count ? expected[static_cast<std::size_t>(padded_row_offset(row) + column)] : 0.0;
          ASSERT_EQ(memory.gram[panel_column(view.stride, column) + row], truth) << row << ", " << column;
          ASSERT_EQ(memory.factor[panel_column(view.stride, column) + row], truth) << row << ", " << column;
        }
      }
      before = small;
    }
  }
}

TEST(Csd, a_voxel_is_fitted_alike_among_any_neighbours) {
  const Deconvolution setup;
  ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
  std::mt19937 random(4);
  std::vector<float> signals;
  for (int v = 0; v < 40; ++v) {
    const auto record = setup.signal({{0.6, random_direction(random)}, {0.4, random_direction(random)}}, 10, random);
    signals.insert(signals.end(), record.begin(), record.end());
  }
  ASSERT_OK_AND_ASSIGN(const CsdFit together, fit_csd(model, signals, 65, setup.volumes, *setup.pool));
  for (std::size_t v = 0; v < 40; ++v) {
    ASSERT_OK_AND_ASSIGN(const CsdFit alone,
                         fit_csd(model, std::span(signals).subspan(65 * v, 65), 65, setup.volumes, *setup.pool));
    EXPECT_EQ(std::memcmp(alone.coefficients.data(), together.coefficients.data() + 45 * v, 45 * sizeof(float)), 0);
  }
}

TEST(Csd, the_last_solution_is_kept_and_counted_when_the_iterations_are_spent) {
  Deconvolution setup;
  setup.options.iterations = 1;
  ASSERT_OK_AND_ASSIGN(const CsdModel model, setup.model());
  std::mt19937 random(5);
  const auto record = setup.signal({{0.6, random_direction(random)}, {0.4, random_direction(random)}}, 10, random);
  ASSERT_OK_AND_ASSIGN(const CsdFit fit, fit_csd(model, record, 65, setup.volumes, *setup.pool));
  EXPECT_EQ(fit.not_converged, 1u);
  EXPECT_EQ(fit.iterations, 1u);
  EXPECT_NE(fit.coefficients[0], 0.0f);
}

TEST(Csd, what_cannot_be_a_model_is_refused) {
  const Deconvolution setup;
  CsdOptions options;
  const std::vector<double> zonal = {300, -100, 50, -10, 1};
  const auto& constraint = setup.constraint.directions;
  options.degree = 7;
  EXPECT_TRUE(testing::fails_with(CsdModel::create(setup.gradients, zonal, constraint, options),
                                  ErrorKind::invalid_argument, "degree 7"));
  options.degree = 10;
  EXPECT_TRUE(testing::fails_with(CsdModel::create(setup.gradients, zonal, constraint, options),
                                  ErrorKind::invalid_argument, "use sh_order 8"));
  options.degree = 8;
  EXPECT_TRUE(
      testing::fails_with(CsdModel::create(setup.gradients, std::vector<double>{-1, 0, 0, 0, 0}, constraint, options),
                          ErrorKind::invalid_argument, "not positive"));
  EXPECT_TRUE(testing::fails_with(CsdModel::create({}, zonal, constraint, options), ErrorKind::invalid_argument,
                                  "0 gradient directions"));
}

TEST(Cholesky, solves_random_systems_and_reports_a_pivot_that_is_not_positive) {
  std::mt19937 random(6);
  std::normal_distribution<double> normal;
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 15, 28, 45, 66, 91}) {
    const auto n = static_cast<std::size_t>(size);
    std::vector<double> root(n * n), matrix(n * n), x(n), right(n);
    for (double& value : root) value = normal(random);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) matrix[i * n + j] += root[i * n + k] * root[j * n + k];
      }
      matrix[i * n + i] += 1;
    }
    for (double& value : x) value = normal(random);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) right[i] += matrix[i * n + j] * x[j];
    }
    std::vector<double> triangle(static_cast<std::size_t>(triangle_index(size, 0))), inverse(n);
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j <= i; ++j) {
        triangle[static_cast<std::size_t>(triangle_index(i, j))] = matrix[static_cast<std::size_t>(i * size + j)];
      }
    }
    double failed = 0;
    factor_cholesky(size, triangle.data(), inverse.data(), failed);
    solve_cholesky(size, triangle.data(), inverse.data(), right.data());
    EXPECT_EQ(failed, 0.0);
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(right[i], x[i], 1e-8) << size;
  }
  double indefinite[3] = {1, 2, 1};
  double inverse[2];
  double failed = 0;
  factor_cholesky(2, indefinite, inverse, failed);
  EXPECT_EQ(failed, 1.0);
}

}  // namespace
}  // namespace cingulum::csd_tests
