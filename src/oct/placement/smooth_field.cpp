#include "oct/placement/smooth_field.hpp"

#include <Eigen/Dense>
#include <vector>

namespace cingulum::oct {
namespace {

// Legendre polynomials of degrees 0 to `degree`, which keep the normal equations well conditioned.
std::vector<double> legendre(double x, int degree) {
  std::vector<double> values(static_cast<std::size_t>(degree) + 1, 1.0);
  if (degree > 0) values[1] = x;
  for (int n = 2; n <= degree; ++n) {
    const auto i = static_cast<std::size_t>(n);
    values[i] = ((2 * n - 1) * x * values[i - 1] - (n - 1) * values[i - 2]) / n;
  }
  return values;
}

}  // namespace

std::vector<double> polynomial_terms(double row, double column, std::size_t rows, std::size_t columns, int degree) {
  const auto by_row = legendre((2 * row + 1) / static_cast<double>(rows) - 1, degree);
  const auto by_column = legendre((2 * column + 1) / static_cast<double>(columns) - 1, degree);
  std::vector<double> terms;
  for (std::size_t a = 0; a < by_row.size(); ++a) {
    for (std::size_t b = 0; a + b < by_column.size(); ++b) terms.push_back(by_row[a] * by_column[b]);
  }
  return terms;
}

HostImage fit_polynomial(const HostImage& image, int degree, std::span<const double> weights) {
  const auto terms_at = [&](std::size_t r, std::size_t c) {
    return polynomial_terms(static_cast<double>(r), static_cast<double>(c), image.rows, image.columns, degree);
  };
  const Eigen::Index count = (degree + 1) * (degree + 2) / 2;
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(count, count);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(count);
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (std::size_t c = 0; c < image.columns; ++c) {
      const double weight = weights.empty() ? 1.0 : weights[r * image.columns + c];
      const std::vector<double> terms = terms_at(r, c);
      const Eigen::Map<const Eigen::VectorXd> vector(terms.data(), count);
      normal.noalias() += weight * vector * vector.transpose();
      right.noalias() += weight * image.at(r, c) * vector;
    }
  }
  normal += Eigen::MatrixXd::Identity(count, count) * (1e-12 * normal.trace());
  const Eigen::VectorXd solution = normal.ldlt().solve(right);
  HostImage field(image.rows, image.columns);
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (std::size_t c = 0; c < image.columns; ++c) {
      const std::vector<double> terms = terms_at(r, c);
      field.at(r, c) = Eigen::Map<const Eigen::VectorXd>(terms.data(), count).dot(solution);
    }
  }
  return field;
}

}  // namespace cingulum::oct
