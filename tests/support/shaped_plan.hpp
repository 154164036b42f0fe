// Plans on fields of given shapes (getter, degree, sphere), on which the kernels of fixed shapes run: two crossing
// populations of fibres with noise, and a stopping map that is a ball.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "support/random_plan.hpp"

namespace cingulum::test {

// A field on which kernels of fixed shapes run, given as one piece; peaks where there is no sphere.
inline RandomPlan shaped_plan(Getter getter, int degree, const char* sphere, std::uint32_t seeds, ThreadPool& pool) {
  RandomPlan plan;
  const ImageGeometry geometry = grid(24, 22, 18, {1.2, 1.2, 1.5});
  const auto axis = [](Vec3d p) { return unit({1, 0.5 * std::sin(0.3 * p.y), 0.4 * std::cos(0.25 * p.x)}); };
  const auto other = [](Vec3d p) { return unit({0.3 * std::sin(0.2 * p.z), 1, 0.4}); };
  std::mt19937 generator(static_cast<unsigned>(degree) + 77);
  const auto noise = [&](double size) { return std::normal_distribution<double>(0, size)(generator); };
  const auto stop = [](Vec3d p) { return static_cast<float>(1.3 - std::hypot(p.x - 12, p.y - 11, p.z - 9) / 10); };
  plan.options.getter = getter;
  plan.options.random_key = 20261115;
  if (getter == Getter::boot) {
    std::vector<Vec3d> directions;
    std::vector<std::uint8_t> is_b0;
    for (int i = 0; i < 70; ++i) {
      is_b0.push_back(i < 6 ? 1 : 0);
      directions.push_back(unit({noise(1), noise(1), 0.01 + noise(1)}));
    }
    const AllVoxels signals(
        geometry, directions.size(),
        [&](Vec3d p, float* s) {
          for (std::size_t i = 0; i < directions.size(); ++i) {
            const double a = numerics::dot(axis(p), directions[i]), b = numerics::dot(other(p), directions[i]);
            const double signal =
                is_b0[i] != 0 ? 1 : 0.6 * std::exp(-0.6 - 2.8 * a * a) + 0.4 * std::exp(-0.6 - 2.8 * b * b);
            s[i] = static_cast<float>(100 * signal + noise(3));
          }
        },
        stop);
    plan.field = make_bootstrap_field(geometry, signals.stop, signals.records(), directions, is_b0, {.degree = degree},
                                      named_sphere(sphere).value(), pool)
                     .value();
  } else if (getter == Getter::tensor) {
    plan.field = tensor_field(geometry, axis, stop);
  } else if (sphere == nullptr) {
    plan.field = peak_field(
        geometry, 2,
        [&](Vec3d p, Vec3d* peaks) {
          peaks[0] = axis(p);
          peaks[1] = other(p) * 0.6;
        },
        stop);
  } else if (degree > 0) {
    plan.field = harmonic_field(
        geometry, named_sphere(sphere).value(), degree,
        [&](Vec3d p, double* c) {
          for (int j = 0; j < numerics::coefficient_count(degree, false); ++j) c[j] = noise(0.02);
          add_lobe(degree, axis(p), 1, c);
          add_lobe(degree, other(p), 0.6, c);
        },
        stop);
  } else {
    plan.field = amplitude_field(
        geometry, named_sphere(sphere).value(),
        [&](Vec3d p, Vec3d v) {
          return std::pow(numerics::dot(v, axis(p)), 10) + 0.6 * std::pow(numerics::dot(v, other(p)), 10) + noise(0.02);
        },
        stop);
  }
  std::uniform_real_distribution<float> share(0.0f, 1.0f);
  for (std::uint32_t i = 0; i < seeds; ++i) {
    plan.seeds.push_back({23 * share(generator), 21 * share(generator), 17 * share(generator)});
  }
  plan.pieces = {seeds};
  return plan;
}

}  // namespace cingulum::test
