#include "dmri/models/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dmri/models/tensor_kernel.hpp"
#include "dmri/sphere/sphere.hpp"
#include "numerics/pack_elementary.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

std::unique_ptr<ThreadPool> make_pool(int threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.has_value());
  return pool ? *std::move(pool) : nullptr;
}

struct Scheme {
  std::vector<double> b_values;
  std::vector<Vec3d> directions;
};

// Two b0, then every fifth direction of the small sphere.
Scheme make_scheme(double b_value) {
  Scheme scheme = {{0, 0}, {{0, 0, 0}, {0, 0, 0}}};
  const auto sphere = named_sphere("small");
  EXPECT_TRUE(sphere.has_value());
  for (std::size_t i = 0; i < sphere->size(); i += 5) {
    scheme.directions.push_back(sphere->directions[i]);
    scheme.b_values.push_back(b_value);
  }
  return scheme;
}

double signal_of(const std::array<double, 6>& d, double s0, double b, Vec3d g) {
  const double form = d[0] * g.x * g.x + d[1] * g.y * g.y + d[2] * g.z * g.z +
                      2 * (d[3] * g.x * g.y + d[4] * g.x * g.z + d[5] * g.y * g.z);
  return s0 * std::exp(-b * form);
}

DwiSignals random_signals(const Scheme& scheme, std::size_t voxels, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  DwiSignals signals;
  signals.volumes = scheme.b_values.size();
  for (std::size_t voxel = 0; voxel < voxels; ++voxel) {
    signals.voxels.push_back(static_cast<std::uint32_t>(voxel));
    const std::array<double, 6> d = {1e-3 * uniform(random),   1e-3 * uniform(random),   1e-3 * uniform(random),
                                     2e-4 * (uniform(random)), 2e-4 * (uniform(random)), 2e-4 * (uniform(random))};
    for (std::size_t i = 0; i < signals.volumes; ++i) {
      const double clean = signal_of(d, 500, scheme.b_values[i], scheme.directions[i]);
      signals.values.push_back(static_cast<float>(clean + 60 * (uniform(random) - 0.5)));
    }
  }
  return signals;
}

TEST(tensor, a_known_tensor_comes_back) {
  const Scheme scheme = make_scheme(1000);
  const std::array<double, 6> d = {1.2e-3, 0.5e-3, 0.7e-3, 0.2e-3, -0.1e-3, 0.15e-3};
  DwiSignals signals;
  signals.volumes = scheme.b_values.size();
  signals.voxels = {17};
  for (std::size_t i = 0; i < signals.volumes; ++i) {
    signals.values.push_back(static_cast<float>(signal_of(d, 800, scheme.b_values[i], scheme.directions[i])));
  }
  const auto pool = make_pool(1);
  for (const TensorMethod method : {TensorMethod::ols, TensorMethod::wls}) {
    const auto fit = fit_tensors(signals, scheme.b_values, scheme.directions, {.method = method}, *pool);
    ASSERT_TRUE(fit.has_value()) << fit.error().message();
    for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(fit->tensor[j], d[j], 1e-9);
    EXPECT_NEAR(fit->s0[0], 800, 1e-3);
    EXPECT_NEAR(fit->md[0], 0.8e-3, 1e-9);
    const float* l = fit->eigenvalues.data();
    EXPECT_NEAR(l[0] + l[1] + l[2], 2.4e-3, 1e-9);
    EXPECT_NEAR(fit->rd[0], (l[1] + l[2]) / 2, 1e-10);
    const float* v = fit->v1.data();
    EXPECT_NEAR(d[0] * v[0] + d[3] * v[1] + d[4] * v[2], l[0] * v[0], 1e-9);
    EXPECT_NEAR(d[3] * v[0] + d[1] * v[1] + d[5] * v[2], l[0] * v[1], 1e-9);
    EXPECT_NEAR(d[4] * v[0] + d[5] * v[1] + d[2] * v[2], l[0] * v[2], 1e-9);
    EXPECT_GT(v[2], 0);
    const auto colours = colour_fa(*fit);
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(colours[j], std::abs(v[j]) * fit->fa[0]);
  }
}

TEST(tensor, the_result_does_not_depend_on_threads_or_on_neighbours_in_a_pack) {
  const Scheme scheme = make_scheme(1000);
  const DwiSignals signals = random_signals(scheme, 1201, 4);
  const auto one = make_pool(1);
  const auto three = make_pool(3);
  const auto a = fit_tensors(signals, scheme.b_values, scheme.directions, {}, *one);
  const auto b = fit_tensors(signals, scheme.b_values, scheme.directions, {}, *three);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->tensor, b->tensor);
  EXPECT_EQ(a->v1, b->v1);
  EXPECT_EQ(a->fa, b->fa);
  for (const std::size_t voxel : {0U, 6U, 1200U}) {
    DwiSignals alone;
    alone.volumes = signals.volumes;
    alone.voxels = {signals.voxels[voxel]};
    const auto record = signals.record(voxel);
    alone.values.assign(record.begin(), record.end());
    const auto c = fit_tensors(alone, scheme.b_values, scheme.directions, {}, *one);
    ASSERT_TRUE(c.has_value());
    for (std::size_t j = 0; j < 6; ++j) EXPECT_EQ(c->tensor[j], a->tensor[6 * voxel + j]);
    EXPECT_EQ(c->s0[0], a->s0[voxel]);
  }
}

// Design tables of a small scheme, made by hand, with the true inverse left out: the kernel is the subject, not the
// fit.
TEST(tensor, the_kernel_has_the_same_bits_in_numbers_and_in_packs_of_every_width) {
  constexpr std::uint32_t volumes = 12;
  constexpr std::size_t voxels = 64;
  std::mt19937 random(9);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> rows, products, inverse, logs(volumes * voxels);
  for (std::uint32_t i = 0; i < volumes; ++i) {
    double row[7];
    for (double& entry : row) entry = uniform(random);
    row[6] = 1;
    for (int j = 0; j < 7; ++j) {
      rows.push_back(row[j]);
      inverse.push_back(0.2 * uniform(random));
      for (int k = 0; k <= j; ++k) products.push_back(row[j] * row[k]);
    }
  }
  for (double& log : logs) log = 5 + uniform(random);
  const TensorDesign design = {volumes, rows.data(), products.data(), inverse.data(), 1e-3, 1e-9, 1e-4, true};
  const auto flat = [](const auto& estimate, auto lane) {
    std::vector<double> numbers;
    for (const auto& n : estimate.tensor) numbers.push_back(lane(n));
    for (const auto& n : estimate.eigenvalues) numbers.push_back(lane(n));
    for (const auto& n : estimate.eigenvectors) numbers.push_back(lane(n));
    numbers.push_back(lane(estimate.log_s0));
    numbers.push_back(lane(fractional_anisotropy(estimate.eigenvalues)));
    return numbers;
  };
  std::vector<std::vector<double>> expected;
  for (std::size_t voxel = 0; voxel < voxels; ++voxel) {
    const auto estimate = fit_tensor<double>(design, [&](std::uint32_t i) { return logs[i * voxels + voxel]; });
    expected.push_back(flat(estimate, [](double n) { return n; }));
  }
  using numerics::SimdLevel;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    if (level > numerics::best_simd_level()) continue;
    std::vector<std::vector<double>> found;
    numerics::with_packs<double>(
        [&]<class Number>() {
          for (std::size_t first = 0; first < voxels; first += Number::width) {
            const auto estimate =
                fit_tensor<Number>(design, [&](std::uint32_t i) { return Number::load(&logs[i * voxels + first]); });
            for (int lane = 0; lane < Number::width; ++lane) {
              found.push_back(flat(estimate, [&](const Number& n) { return static_cast<double>(n.lanes[lane]); }));
            }
          }
        },
        level);
    EXPECT_EQ(found, expected);
  }
}

void expect_decomposition(const double (&matrix)[6]) {
  double values[3];
  double v[9];
  symmetric_eigen(matrix, values, v);
  double norm = 0;
  for (const double entry : matrix) norm = std::max(norm, std::abs(entry));
  EXPECT_GE(values[0], values[1]);
  EXPECT_GE(values[1], values[2]);
  const double full[3][3] = {
      {matrix[0], matrix[3], matrix[4]}, {matrix[3], matrix[1], matrix[5]}, {matrix[4], matrix[5], matrix[2]}};
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3; ++i) {
      double product = 0;
      for (int j = 0; j < 3; ++j) product += full[i][j] * v[3 * k + j];
      EXPECT_NEAR(product, values[k] * v[3 * k + i], 1e-14 * norm);
      EXPECT_NEAR(v[3 * k] * v[3 * i] + v[3 * k + 1] * v[3 * i + 1] + v[3 * k + 2] * v[3 * i + 2], k == i ? 1 : 0,
                  1e-14);
    }
  }
}

TEST(tensor, eigenvectors_hold_for_degenerate_tiny_and_random_matrices) {
  expect_decomposition({0, 0, 0, 0, 0, 0});
  expect_decomposition({1, 1, 1, 0, 0, 0});
  expect_decomposition({1, 1, 1, 1e-17, 0, -1e-16});
  expect_decomposition({1, 1, 1, 1, 1, 1});
  expect_decomposition({0, 0, 0, 1, 1, 1});
  expect_decomposition({1, 2, 3, 0, 0, 0});
  expect_decomposition({3, 1, 3, 0, 1e-9, 0});
  expect_decomposition({-1e-3, 2e-3, -3e-3, 1e-4, 5e-4, -2e-3});
  expect_decomposition({1e-20, 1e-3, 1e-12, 1e-13, 1e-9, 1e-6});
  expect_decomposition({1.7e-3, 0.3e-3, 0.3e-3, 0, 0, 1e-25});
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 2000; ++i) {
    expect_decomposition(
        {normal(random), normal(random), normal(random), normal(random), normal(random), normal(random)});
    // Two eigenvalues that nearly coincide, in a random frame.
    const Vec3d u = numerics::normalise(Vec3d{normal(random), normal(random), normal(random)});
    const double e = 1e-8 * normal(random);
    expect_decomposition({1 + u.x * u.x, 1 + u.y * u.y + e, 1 + u.z * u.z, u.x * u.y, u.x * u.z - e, u.y * u.z});
  }
}

TEST(tensor, signals_that_are_zero_negative_or_no_number_count_as_the_smallest) {
  const Scheme scheme = make_scheme(1000);
  DwiSignals bad = random_signals(scheme, 6, 2);
  DwiSignals clamped = bad;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float replacements[] = {0.0f, -5.0f, nan, -nan, 1e-30f};
  for (std::size_t i = 0; i < 5; ++i) {
    bad.values[i * bad.volumes + 7 + i] = replacements[i];
    clamped.values[i * bad.volumes + 7 + i] = 0.5f;
  }
  std::fill(bad.values.end() - static_cast<std::ptrdiff_t>(bad.volumes), bad.values.end(), 0.0f);
  std::fill(clamped.values.end() - static_cast<std::ptrdiff_t>(bad.volumes), clamped.values.end(), 0.5f);
  const auto pool = make_pool(1);
  const auto a = fit_tensors(bad, scheme.b_values, scheme.directions, {.min_signal = 0.5}, *pool);
  const auto b = fit_tensors(clamped, scheme.b_values, scheme.directions, {.min_signal = 0.5}, *pool);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->tensor, b->tensor);
  EXPECT_EQ(a->fa, b->fa);
  EXPECT_NEAR(a->fa[5], 0, 1e-7);  // a voxel of zeros has no anisotropy
  for (const float value : a->v1) EXPECT_TRUE(std::isfinite(value));
}

TEST(tensor, equations_without_a_solution_are_told_and_give_no_change) {
  std::mt19937 random(12);
  std::normal_distribution<double> normal;
  for (const int rank : {7, 6, 3, 1, 0}) {
    double a[tensor_product_count] = {};
    double solution[7];
    for (double& entry : solution) entry = normal(random);
    double full[7][7] = {};
    for (int r = 0; r < rank; ++r) {
      double v[7];
      for (double& entry : v) entry = normal(random);
      for (int j = 0; j < 7; ++j) {
        for (int k = 0; k < 7; ++k) full[j][k] += v[j] * v[k];
      }
    }
    double x[7] = {};
    for (int j = 0; j < 7; ++j) {
      for (int k = 0; k < 7; ++k) x[j] += full[j][k] * solution[k];
      for (int k = 0; k <= j; ++k) a[j * (j + 1) / 2 + k] = full[j][k];
    }
    const double good = solve_symmetric(a, x);
    EXPECT_EQ(good, rank == 7 ? 1.0 : 0.0);
    for (int j = 0; j < 7; ++j) EXPECT_NEAR(x[j], rank == 7 ? solution[j] : 0.0, 1e-6);
  }
}

TEST(tensor, schemes_that_do_not_determine_a_tensor_are_refused) {
  const auto pool = make_pool(1);
  const auto message = [&](const Scheme& scheme) {
    const auto fit = fit_tensors(random_signals(scheme, 1, 1), scheme.b_values, scheme.directions, {}, *pool);
    return fit ? std::string("accepted") : fit.error().message();
  };
  Scheme one_shell = make_scheme(1000);
  one_shell.b_values.erase(one_shell.b_values.begin(), one_shell.b_values.begin() + 2);
  one_shell.directions.erase(one_shell.directions.begin(), one_shell.directions.begin() + 2);
  EXPECT_NE(message(one_shell).find("6 of the 7 unknowns"), std::string::npos) << message(one_shell);
  EXPECT_NE(message({{0, 1000, 1000}, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}}).find("3 of the 7"), std::string::npos);
  EXPECT_NE(message({{0, 0}, {{0, 0, 0}, {0, 0, 0}}}).find("largest b-value is 0"), std::string::npos);
  const Scheme scheme = make_scheme(1000);
  const auto short_table =
      fit_tensors(random_signals(scheme, 1, 1), std::span(scheme.b_values).first(5), scheme.directions, {}, *pool);
  ASSERT_FALSE(short_table.has_value());
  EXPECT_NE(short_table.error().message().find("but 5 b-values"), std::string::npos);
}

TEST(tensor, volumes_that_are_left_out_do_not_count) {
  const Scheme scheme = make_scheme(1000);
  const DwiSignals all = random_signals(scheme, 20, 6);
  std::vector<std::uint8_t> use(all.volumes, 1);
  Scheme fewer;
  DwiSignals some;
  some.voxels = all.voxels;
  for (const std::size_t left_out : {1U, 7U, 20U}) use[left_out] = 0;
  for (std::size_t i = 0; i < all.volumes; ++i) {
    if (use[i] == 0) continue;
    fewer.b_values.push_back(scheme.b_values[i]);
    fewer.directions.push_back(scheme.directions[i]);
  }
  some.volumes = fewer.b_values.size();
  for (std::size_t voxel = 0; voxel < all.voxels.size(); ++voxel) {
    for (std::size_t i = 0; i < all.volumes; ++i) {
      if (use[i] != 0) some.values.push_back(all.record(voxel)[i]);
    }
  }
  const auto pool = make_pool(1);
  for (const TensorMethod method : {TensorMethod::ols, TensorMethod::wls}) {
    const auto a = fit_tensors(all, scheme.b_values, scheme.directions, {.method = method, .use_volume = use}, *pool);
    const auto b = fit_tensors(some, fewer.b_values, fewer.directions, {.method = method}, *pool);
    ASSERT_TRUE(a && b);
    for (std::size_t i = 0; i < a->tensor.size(); ++i) EXPECT_NEAR(a->tensor[i], b->tensor[i], 1e-9);
  }
}

TEST(tensor, orders_of_the_components_are_those_of_mrtrix_dipy_and_fsl) {
  const std::vector<float> ours = {1, 2, 3, 12, 13, 23};  // xx yy zz xy xz yz
  std::vector<float> tensors = ours;
  convert_tensors(tensors, TensorOrder::mrtrix, TensorOrder::dipy);
  EXPECT_EQ(tensors, (std::vector<float>{1, 12, 2, 13, 23, 3}));
  convert_tensors(tensors, TensorOrder::dipy, TensorOrder::fsl);
  EXPECT_EQ(tensors, (std::vector<float>{1, 12, 13, 2, 23, 3}));
  convert_tensors(tensors, TensorOrder::fsl, TensorOrder::mrtrix);
  EXPECT_EQ(tensors, ours);
  EXPECT_TRUE(parse_tensor_order("fsl").has_value());
  EXPECT_FALSE(parse_tensor_order("afni").has_value());
}

}  // namespace
}  // namespace cingulum
