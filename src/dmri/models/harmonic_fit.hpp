// The matrices of linear spherical-harmonic fits, made once per gradient table in float64: the basis at a set of
// directions, its inverse with Laplace-Beltrami regularisation, the hat matrix and the leveraged, centred residuals of
// the residual bootstrap. Called by the set-up of OPDT, CSA, CSD and the bootstrap tracker. It sees no voxels.
#pragma once

#include <span>

#include "base/result.hpp"
#include "dmri/models/dense_matrix.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// A row per direction, a column per coefficient. Directions are unit vectors.
[[nodiscard]] DenseMatrix harmonic_matrix(numerics::HarmonicBasis basis, std::span<const numerics::Vec3d> directions);

// The largest even degree, at most `wanted`, whose coefficients do not outnumber the directions.
[[nodiscard]] int degree_for_directions(int wanted, std::size_t directions);
// What is said where that is lower.
[[nodiscard]] std::string lowered_degree_text(int wanted, std::size_t directions);

// P_l(0): 1, 0, -1/2, 0, 3/8, ...
[[nodiscard]] double legendre_at_zero(int l);

// (B'B + lambda L^2)^-1 B' with L = -l(l + 1), coefficients x directions: Descoteaux et al., Magn. Reson. Med. 58,
// 2007, eq. 11. Computed through the pseudo-inverse of B over sqrt(lambda) L, which is defined where B lacks rank.
[[nodiscard]] DenseMatrix regularised_inverse(const DenseMatrix& basis_matrix, numerics::HarmonicBasis basis,
                                              double lambda);

// Row r multiplied by factors[r].
[[nodiscard]] DenseMatrix scale_rows(const DenseMatrix& matrix, std::span<const double> factors);

// U U' with U the left singular vectors of B: the projection on what the basis can express, unregularised.
[[nodiscard]] DenseMatrix hat_matrix(const DenseMatrix& basis_matrix);

struct ResidualMatrix {
  DenseMatrix matrix;          // directions x directions
  std::size_t exact_rows = 0;  // directions that the fit reproduces exactly (leverage 1)
};

// Row i of I - H divided by sqrt(1 - h_ii), then every column less its mean over the rows, so that the residuals have
// the variance of the noise and the mean zero (Berman et al., NeuroImage 39, 2008). A direction with h_ii >= 1 has the
// residual 0 whatever was measured; 0/0 counts as 0 there. Fails when that is so for every direction.
[[nodiscard]] Result<ResidualMatrix> leveraged_residual_matrix(const DenseMatrix& hat);

// Least squares without regularisation, minimal norm where the matrix lacks rank: x with |A x - b| smallest.
[[nodiscard]] std::vector<double> least_squares(const DenseMatrix& matrix, std::span<const double> right_side);

}  // namespace cingulum
