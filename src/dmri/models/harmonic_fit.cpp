#include "dmri/models/harmonic_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <limits>

#include "base/argument_name.hpp"

namespace cingulum {

using numerics::HarmonicBasis;
using numerics::Vec3d;

namespace {

using EigenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Index = Eigen::Index;

Eigen::Map<const EigenMatrix> view(const DenseMatrix& matrix) {
  return {matrix.values.data(), static_cast<Index>(matrix.rows), static_cast<Index>(matrix.columns)};
}

DenseMatrix from_eigen(const EigenMatrix& matrix) {
  DenseMatrix result(static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols()));
  std::copy_n(matrix.data(), matrix.size(), result.values.begin());
  return result;
}

// Singular values below this share of the largest count as zero, as numpy's pinv has it.
constexpr double pseudo_inverse_cutoff = 1e-15;

EigenMatrix pseudo_inverse(const EigenMatrix& matrix) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd values = svd.singularValues();
  const double cutoff = values.size() > 0 ? values(0) * pseudo_inverse_cutoff : 0;
  Eigen::VectorXd inverted = Eigen::VectorXd::Zero(values.size());
  for (Index i = 0; i < values.size(); ++i) {
    if (values(i) > cutoff) inverted(i) = 1.0 / values(i);
  }
  return svd.matrixV() * inverted.asDiagonal() * svd.matrixU().transpose();
}

}  // namespace

DenseMatrix harmonic_matrix(HarmonicBasis basis, std::span<const Vec3d> directions) {
  DenseMatrix result(directions.size(),
                     static_cast<std::size_t>(numerics::coefficient_count(basis.degree, basis.full)));
  for (std::size_t i = 0; i < directions.size(); ++i) {
    numerics::evaluate_harmonics(basis, directions[i], result.values.data() + i * result.columns);
  }
  return result;
}

int degree_for_directions(int wanted, std::size_t directions) {
  int degree = wanted - wanted % 2;
  while (degree > 0 && static_cast<std::size_t>(numerics::coefficient_count(degree, false)) > directions) degree -= 2;
  return degree;
}

std::string lowered_degree_text(int wanted, std::size_t directions) {
  return fmt::format("{} {} needs {} directions, there are {}: lowered to {}", argument_name("sh_order"), wanted,
                     numerics::coefficient_count(wanted, false), directions, degree_for_directions(wanted, directions));
}

double legendre_at_zero(int l) {
  if (l % 2 != 0) return 0;
  double value = 1;
  for (int k = 2; k <= l; k += 2) value = -value * static_cast<double>(k - 1) / static_cast<double>(k);
  return value;
}

DenseMatrix regularised_inverse(const DenseMatrix& basis_matrix, HarmonicBasis basis, double lambda) {
  const auto directions = static_cast<Index>(basis_matrix.rows);
  const auto count = static_cast<Index>(basis_matrix.columns);
  EigenMatrix stacked = EigenMatrix::Zero(directions + count, count);
  stacked.topRows(directions) = view(basis_matrix);
  const double weight = numerics::root(lambda);
  for (Index i = 0; i < count; ++i) {
    const int l = numerics::harmonic_of_coefficient(static_cast<int>(i), basis.full).l;
    stacked(directions + i, i) = -weight * static_cast<double>(l * (l + 1));
  }
  return from_eigen(pseudo_inverse(stacked).leftCols(directions));
}

DenseMatrix scale_rows(const DenseMatrix& matrix, std::span<const double> factors) {
  DenseMatrix result = matrix;
  for (std::size_t r = 0; r < matrix.rows; ++r) {
    for (std::size_t c = 0; c < matrix.columns; ++c) result.at(r, c) = factors[r] * matrix.at(r, c);
  }
  return result;
}

DenseMatrix hat_matrix(const DenseMatrix& basis_matrix) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(view(basis_matrix), Eigen::ComputeThinU);
  // Columns of U whose singular value is zero span nothing that the basis expresses.
  const Eigen::VectorXd values = svd.singularValues();
  const double cutoff = values.size() > 0 ? values(0) * std::numeric_limits<double>::epsilon() *
                                                static_cast<double>(std::max(basis_matrix.rows, basis_matrix.columns))
                                          : 0;
  Index rank = 0;
  while (rank < values.size() && values(rank) > cutoff) ++rank;
  const EigenMatrix u = svd.matrixU().leftCols(rank);
  return from_eigen(u * u.transpose());
}

Result<ResidualMatrix> leveraged_residual_matrix(const DenseMatrix& hat) {
  const std::size_t count = hat.rows;
  // What rounding leaves of 1 - h where h is 1.
  constexpr double exact = 1e-10;
  ResidualMatrix result = {DenseMatrix(count, count), 0};
  for (std::size_t i = 0; i < count; ++i) {
    const double free = 1.0 - hat.at(i, i);
    if (!(free > exact)) {
      ++result.exact_rows;
      continue;
    }
    const double leverage = numerics::root(free);
    for (std::size_t j = 0; j < count; ++j) {
      result.matrix.at(i, j) = ((i == j ? 1.0 : 0.0) - hat.at(i, j)) / leverage;
    }
  }
  if (result.exact_rows == count) {
    return fail_argument(
        "sh_order",
        "residual bootstrap: the fit reproduces all {} directions exactly, there is no residual to draw from; "
        "use a lower {} or more directions",
        count, argument_name("sh_order"));
  }
  for (std::size_t j = 0; j < count; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += result.matrix.at(i, j);
    const double mean = sum / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) result.matrix.at(i, j) -= mean;
  }
  return result;
}

std::vector<double> least_squares(const DenseMatrix& matrix, std::span<const double> right_side) {
  const Eigen::Map<const Eigen::VectorXd> right(right_side.data(), static_cast<Index>(right_side.size()));
  const Eigen::VectorXd solution = pseudo_inverse(view(matrix)) * right;
  return {solution.data(), solution.data() + solution.size()};
}

}  // namespace cingulum
