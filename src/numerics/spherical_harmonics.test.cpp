#include "numerics/spherical_harmonics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/random.hpp"

namespace cingulum::numerics::spherical_harmonics_tests {
namespace {

constexpr HarmonicConvention conventions[] = {HarmonicConvention::descoteaux07_legacy, HarmonicConvention::descoteaux07,
                                              HarmonicConvention::tournier07};

Vec3d random_direction(std::uint32_t i) {
  const PhiloxBlock block = philox4x32_10({{i, 0, 0, 0}}, {5, 6});
  const NormalPair<double> a = normals64_from_words(block.word[0], block.word[1]);
  const NormalPair<double> b = normals64_from_words(block.word[2], block.word[3]);
  return normalise(Vec3d{a.first, a.second, b.first});
}

// The definition with angles: std::sph_legendre has the Condon-Shortley phase.
double by_definition(HarmonicConvention convention, int l, int m, Vec3d v) {
  const double theta = std::acos(v.z), phi = std::atan2(v.y, v.x);
  const auto k = static_cast<unsigned>(std::abs(m));
  const double legendre = std::sph_legendre(static_cast<unsigned>(l), k, theta);
  if (m == 0) return legendre;
  const double real = std::sqrt(2.0) * legendre * std::cos(k * phi);
  const double imaginary = std::sqrt(2.0) * legendre * std::sin(k * phi);
  if (convention == HarmonicConvention::tournier07) return m < 0 ? imaginary : real;
  if (m > 0) return imaginary;
  // Y_l^-k is (-1)^k times the conjugate of Y_l^k; the legacy convention takes Y_l^k.
  return convention == HarmonicConvention::descoteaux07_legacy || k % 2 == 0 ? real : -real;
}

TEST(SphericalHarmonics, follow_the_definition_in_every_convention) {
  for (const HarmonicConvention convention : conventions) {
    for (const bool full : {false, true}) {
      const HarmonicBasis basis{convention, 12, full};
      for (std::uint32_t i = 0; i < 200; ++i) {
        const Vec3d v = random_direction(i);
        double wide[largest_coefficient_count];
        float single[largest_coefficient_count];
        evaluate_harmonics(basis, v, wide);
        evaluate_harmonics(basis, Vec3{static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)},
                           single);
        for (int index = 0; index < coefficient_count(12, full); ++index) {
          const HarmonicIndex at = harmonic_of_coefficient(index, full);
          const double truth = by_definition(convention, at.l, at.m, v);
          ASSERT_NEAR(wide[index], truth, 2e-14) << at.l << " " << at.m;
          ASSERT_NEAR(single[index], truth, 4e-6) << at.l << " " << at.m;
        }
      }
    }
  }
}

TEST(SphericalHarmonics, are_exact_at_the_poles) {
  for (const double z : {1.0, -1.0}) {
    double values[largest_coefficient_count];
    evaluate_harmonics(HarmonicBasis{HarmonicConvention::tournier07, 11, true}, Vec3d{0, 0, z}, values);
    for (int index = 0; index < coefficient_count(11, true); ++index) {
      const HarmonicIndex at = harmonic_of_coefficient(index, true);
      const double truth = at.m == 0 ? std::sqrt((2 * at.l + 1) / (4 * M_PI)) * (at.l % 2 == 0 ? 1 : z) : 0;
      ASSERT_NEAR(values[index], truth, 2e-14);
    }
  }
}

TEST(SphericalHarmonics, indices_and_counts_agree_with_an_enumeration) {
  for (const bool full : {false, true}) {
    int index = 0;
    for (int l = 0; l <= 12; l += full ? 1 : 2) {
      for (int m = -l; m <= l; ++m, ++index) {
        ASSERT_EQ(coefficient_index(l, m, full), index);
        ASSERT_EQ(harmonic_of_coefficient(index, full).l, l);
        ASSERT_EQ(harmonic_of_coefficient(index, full).m, m);
      }
      ASSERT_EQ(coefficient_count(l, full), index);
    }
  }
  EXPECT_EQ(coefficient_count(12, true), largest_coefficient_count);
}

TEST(SphericalHarmonics, converted_coefficients_describe_the_same_function) {
  for (const bool full : {false, true}) {
    const int degree = full ? 5 : 8;
    for (const HarmonicConvention source : conventions) {
      for (const HarmonicConvention target : conventions) {
        double from[largest_coefficient_count], to[largest_coefficient_count];
        double values[largest_coefficient_count], target_values[largest_coefficient_count];
        const int count = coefficient_count(degree, full);
        for (int i = 0; i < count; ++i) from[i] = std::cos(1.0 + i * i);
        convert_coefficients(HarmonicBasis{source, degree, full}, target, from, to);
        for (std::uint32_t i = 0; i < 20; ++i) {
          const Vec3d v = random_direction(i);
          evaluate_harmonics(HarmonicBasis{source, degree, full}, v, values);
          evaluate_harmonics(HarmonicBasis{target, degree, full}, v, target_values);
          double expected = 0, converted = 0;
          for (int k = 0; k < count; ++k) {
            expected += from[k] * values[k];
            converted += to[k] * target_values[k];
          }
          ASSERT_NEAR(converted, expected, 1e-13);
        }
      }
    }
  }
}

TEST(SphericalHarmonics, mirror_classes_have_the_signs_of_their_names) {
  const Vec3d v = normalise(Vec3d{0.3, 0.5, 0.8});
  const Vec3d mirrored[3] = {{-v.x, v.y, v.z}, {v.x, -v.y, v.z}, {v.x, v.y, -v.z}};
  constexpr double signs[4][3] = {{1, 1, 1}, {-1, -1, 1}, {-1, 1, -1}, {1, -1, -1}};
  for (const HarmonicConvention convention : conventions) {
    const HarmonicBasis basis{convention, 12, false};
    double at_v[largest_coefficient_count], at_mirror[largest_coefficient_count];
    evaluate_harmonics(basis, v, at_v);
    int members[4] = {};
    for (int index = 0; index < coefficient_count(12, false); ++index) {
      ++members[static_cast<int>(mirror_class(convention, harmonic_of_coefficient(index, false).m))];
    }
    EXPECT_EQ(members[0], 28);
    for (int k = 1; k < 4; ++k) EXPECT_EQ(members[k], 21);
    for (int axis = 0; axis < 3; ++axis) {
      evaluate_harmonics(basis, mirrored[axis], at_mirror);
      for (int index = 0; index < coefficient_count(12, false); ++index) {
        const int m = harmonic_of_coefficient(index, false).m;
        const double sign = signs[static_cast<int>(mirror_class(convention, m))][axis];
        ASSERT_NEAR(at_mirror[index], sign * at_v[index], 1e-14) << index << " axis " << axis;
      }
    }
  }
}

TEST(SphericalHarmonics, are_orthonormal_over_the_sphere) {
  // By the midpoint rule in z, whose error is of the order of 1 / rows^2; exact in phi.
  constexpr int rows = 400, columns = 26;
  const HarmonicBasis basis{HarmonicConvention::descoteaux07, 4, true};
  const int count = coefficient_count(4, true);
  std::vector<double> gram(static_cast<std::size_t>(count * count));
  for (int i = 0; i < rows; ++i) {
    const double z = -1 + (2.0 * i + 1) / rows, ring = std::sqrt(1 - z * z);
    for (int j = 0; j < columns; ++j) {
      const double phi = 2 * M_PI * j / columns;
      double values[largest_coefficient_count];
      evaluate_harmonics(basis, Vec3d{ring * std::cos(phi), ring * std::sin(phi), z}, values);
      for (int a = 0; a < count; ++a) {
        for (int b = 0; b < count; ++b) {
          gram[static_cast<std::size_t>(a * count + b)] += values[a] * values[b] * 4 * M_PI / (rows * columns);
        }
      }
    }
  }
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < count; ++b) {
      ASSERT_NEAR(gram[static_cast<std::size_t>(a * count + b)], a == b ? 1 : 0, 2e-4);
    }
  }
}

}  // namespace
}  // namespace cingulum::numerics::spherical_harmonics_tests
