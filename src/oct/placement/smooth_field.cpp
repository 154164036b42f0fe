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

// Legendre polynomials at the middle of a pixel, where `pixels` of them reach from -1 to 1.
std::vector<double> legendre_at(double pixel, std::size_t pixels, int degree) {
  return legendre((2 * pixel + 1) / static_cast<double>(pixels) - 1, degree);
}

void multiply_terms(const std::vector<double>& by_row, const std::vector<double>& by_column,
                    std::vector<double>& terms) {
  terms.clear();
  for (std::size_t a = 0; a < by_row.size(); ++a) {
    for (std::size_t b = 0; a + b < by_column.size(); ++b) terms.push_back(by_row[a] * by_column[b]);
  }
}

}  // namespace

std::vector<double> polynomial_terms(double row, double column, std::size_t rows, std::size_t columns, int degree) {
  std::vector<double> terms;
  multiply_terms(legendre_at(row, rows, degree), legendre_at(column, columns, degree), terms);
  return terms;
}

HostImage fit_polynomial(const HostImage& image, int degree, std::span<const double> weights) {
  std::vector<std::vector<double>> by_column;
  for (std::size_t c = 0; c < image.columns; ++c) {
    by_column.push_back(legendre_at(static_cast<double>(c), image.columns, degree));
  }
  const Eigen::Index count = (degree + 1) * (degree + 2) / 2;
  std::vector<double> terms;
  // Calls take(row, column, terms there) for all pixels.
  const auto for_each_pixel = [&](const auto& take) {
    for (std::size_t r = 0; r < image.rows; ++r) {
      const std::vector<double> by_row = legendre_at(static_cast<double>(r), image.rows, degree);
      for (std::size_t c = 0; c < image.columns; ++c) {
        multiply_terms(by_row, by_column[c], terms);
        take(r, c, Eigen::Map<const Eigen::VectorXd>(terms.data(), count));
      }
    }
  };
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(count, count);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(count);
  for_each_pixel([&](std::size_t r, std::size_t c, const auto& vector) {
    const double weight = weights.empty() ? 1.0 : weights[r * image.columns + c];
    normal.noalias() += weight * vector * vector.transpose();
    right.noalias() += weight * image.at(r, c) * vector;
  });
  normal += Eigen::MatrixXd::Identity(count, count) * (1e-12 * normal.trace());
  const Eigen::VectorXd solution = normal.ldlt().solve(right);
  HostImage field(image.rows, image.columns);
  for_each_pixel([&](std::size_t r, std::size_t c, const auto& vector) { field.at(r, c) = vector.dot(solution); });
  return field;
}

}  // namespace cingulum::oct
