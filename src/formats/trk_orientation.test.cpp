// The directions of an image's axes, by affines whose answer is known: a signed permutation P, times a rotation R by 30
// degrees, times a shear S that is symmetric and positive definite. The orthogonal factor of P R S is P R (the polar
// decomposition is unique), in which every axis is nearest to its own of P; the columns of P R S themselves are nearer
// to others.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "formats/trk.hpp"
#include "support/each_device.hpp"

namespace cingulum::trk_orientation_tests {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

// Turns the two axes other than `axis`: the one by `degrees`, the other by `others_sign` times as much. The columns
// have unit length.
Matrix turned(std::size_t axis, double degrees, double others_sign) {
  const double angle = degrees * M_PI / 180, c = std::cos(angle), s = std::sin(angle);
  Matrix r = {};
  const std::size_t i = (axis + 1) % 3, j = (axis + 2) % 3;
  r[axis][axis] = 1;
  r[i][i] = r[j][j] = c;
  r[j][i] = s;
  r[i][j] = -others_sign * s;
  return r;
}

// About world axis `axis`.
Matrix rotation(std::size_t axis, double degrees) {
  return turned(axis, degrees, 1);
}

// Shears the two axes other than `axis` towards each other.
Matrix shear(std::size_t axis, double degrees) {
  return turned(axis, degrees, -1);
}

Affine affine_of(const Matrix& axes, const std::array<double, 3>& edges) {
  Affine affine;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      affine.at(i, j) =
          axes[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] * edges[static_cast<std::size_t>(j)];
    }
    affine.at(i, 3) = 10.0 * i - 7;
  }
  return affine;
}

TEST(TrkOrientation, of_every_voxel_order_is_found_oblique_sheared_and_anisotropic) {
  int orders = 0;
  std::array<std::size_t, 3> axes = {0, 1, 2};
  do {
    for (unsigned flips = 0; flips < 8; ++flips) {
      ++orders;
      Matrix permutation = {};
      for (std::size_t column = 0; column < 3; ++column) {
        permutation[axes[column]][column] = ((flips >> column) & 1u) != 0 ? -1 : 1;
      }
      for (std::size_t about = 0; about < 3; ++about) {
        for (const double turn : {0.0, 30.0, -30.0}) {
          for (const double sheared : {0.0, 40.0, -40.0}) {
            for (const std::array<double, 3>& edges :
                 {std::array<double, 3>{1, 1, 1}, std::array<double, 3>{0.5, 3, 12}}) {
              const Matrix linear = product(product(permutation, rotation(about, turn)), shear(about, sheared));
              const auto found = orientation_of(affine_of(linear, edges));
              ASSERT_TRUE(found) << testing::message_of(found);
              for (std::size_t column = 0; column < 3; ++column) {
                EXPECT_EQ((*found)[column].world_axis, static_cast<int>(axes[column]));
                EXPECT_EQ((*found)[column].direction, ((flips >> column) & 1u) != 0 ? -1 : 1)
                    << "order " << orders << ", column " << column << ", turned by " << turn << " about " << about
                    << ", sheared by " << sheared;
              }
            }
          }
        }
      }
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  EXPECT_EQ(orders, 48);
}

}  // namespace
}  // namespace cingulum::trk_orientation_tests
