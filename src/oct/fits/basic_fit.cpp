#include "oct/fits/basic_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "numerics/elementary64.hpp"

namespace cingulum::oct {
namespace {

using Matrix = Eigen::MatrixXd;

// Rows are the orthonormal DCT-II's basis functions.
Matrix dct_matrix(std::size_t size) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  const auto n = static_cast<Eigen::Index>(size);
  Matrix matrix(n, n);
  const double count = static_cast<double>(size);
  for (Eigen::Index k = 0; k < n; ++k) {
    const double scale = numerics::root((k == 0 ? 1.0 : 2.0) / count);
    for (Eigen::Index i = 0; i < n; ++i) {
      // The angle is reduced by whole turns in integers: 4 size is one turn.
      const auto quarter = static_cast<double>(((2 * i + 1) * k) % (4 * n));
      matrix(k, i) = scale * numerics::cosine(pi * quarter / (2 * count));
    }
  }
  return matrix;
}

double soft(double value, double limit) {
  if (value > limit) return value - limit;
  if (value < -limit) return value + limit;
  return 0;
}

// A Gaussian along one axis, sigma (f - 1) / 2, mirrored without repeating the edge... as scipy's "mirror".
HostImage blur_axis(const HostImage& image, double sigma, bool along_rows) {
  const int radius = static_cast<int>(4 * sigma + 0.5);
  if (radius < 1) return image;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(numerics::exponential(-0.5 * (i * i) / (sigma * sigma)));
    sum += taps.back();
  }
  const auto size = static_cast<std::ptrdiff_t>(along_rows ? image.rows : image.columns);
  const auto folded = [size](std::ptrdiff_t at) {
    if (size == 1) return std::ptrdiff_t{0};
    const std::ptrdiff_t period = 2 * (size - 1);
    at %= period;
    if (at < 0) at += period;
    return at < size ? at : period - at;
  };
  HostImage result(image.rows, image.columns);
  for (std::size_t r = 0; r < image.rows; ++r) {
    for (std::size_t c = 0; c < image.columns; ++c) {
      double value = 0;
      for (int i = -radius; i <= radius; ++i) {
        const auto at = static_cast<std::size_t>(folded(static_cast<std::ptrdiff_t>(along_rows ? r : c) + i));
        value += taps[static_cast<std::size_t>(i + radius)] * (along_rows ? image.at(at, c) : image.at(r, at));
      }
      result.at(r, c) = value / sum;
    }
  }
  return result;
}

}  // namespace

HostImage resize_corners(const HostImage& image, std::size_t rows, std::size_t columns) {
  HostImage source = image;
  const double row_factor = static_cast<double>(image.rows) / static_cast<double>(rows);
  const double column_factor = static_cast<double>(image.columns) / static_cast<double>(columns);
  if (row_factor > 1) source = blur_axis(source, (row_factor - 1) / 2, true);
  if (column_factor > 1) source = blur_axis(source, (column_factor - 1) / 2, false);
  HostImage result(rows, columns);
  const auto place = [](std::size_t at, std::size_t from, std::size_t to) {
    return to > 1 ? static_cast<double>(at) * static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
  };
  for (std::size_t r = 0; r < rows; ++r) {
    const double y = place(r, image.rows, rows);
    const auto low_row = std::min(static_cast<std::size_t>(y), image.rows - 1);
    const std::size_t high_row = std::min(low_row + 1, image.rows - 1);
    const double fy = y - static_cast<double>(low_row);
    for (std::size_t c = 0; c < columns; ++c) {
      const double x = place(c, image.columns, columns);
      const auto low = std::min(static_cast<std::size_t>(x), image.columns - 1);
      const std::size_t high = std::min(low + 1, image.columns - 1);
      const double fx = x - static_cast<double>(low);
      result.at(r, c) = (1 - fy) * ((1 - fx) * source.at(low_row, low) + fx * source.at(low_row, high)) +
                        fy * ((1 - fx) * source.at(high_row, low) + fx * source.at(high_row, high));
    }
  }
  return result;
}

Result<HostImage> fit_basic(const std::vector<HostImage>& tiles, const BasicFitOptions& options) {
  if (tiles.empty()) return fail(ErrorKind::corrupt, "BaSiC: no tile to fit");
  const auto n = static_cast<Eigen::Index>(options.working_size);
  const auto count = static_cast<Eigen::Index>(tiles.size());
  const Eigen::Index pixels = n * n;
  Matrix data(count, pixels);  // a tile a row
  for (Eigen::Index t = 0; t < count; ++t) {
    const HostImage& tile = tiles[static_cast<std::size_t>(t)];
    if (tile.rows != tiles.front().rows || tile.columns != tiles.front().columns) {
      return fail(ErrorKind::corrupt, "BaSiC: tiles of {} x {} and of {} x {} pixels", tiles.front().rows,
                  tiles.front().columns, tile.rows, tile.columns);
    }
    const HostImage small = resize_corners(tile, options.working_size, options.working_size);
    data.row(t) = Eigen::Map<const Eigen::RowVectorXd>(small.values.data(), pixels);
  }
  const double norm = data.norm();
  if (!(norm > 0)) return fail(ErrorKind::corrupt, "BaSiC: all tiles are zero");
  // The largest singular value by the small Gram matrix.
  const double largest = numerics::root(
      Eigen::SelfAdjointEigenSolver<Matrix>(data * data.transpose(), Eigen::EigenvaluesOnly).eigenvalues().maxCoeff());
  const Matrix basis = dct_matrix(options.working_size);
  using Plane = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  Matrix weight = Matrix::Ones(count, pixels);
  Eigen::RowVectorXd flat = Eigen::RowVectorXd::Ones(pixels);
  Eigen::RowVectorXd last = flat;
  Eigen::VectorXd base = data.rowwise().mean() / data.mean();
  Matrix sparse = Matrix::Zero(count, pixels);
  for (int round = 0; round < options.reweightings; ++round) {
    Matrix dual = Matrix::Zero(count, pixels);
    sparse.setZero();
    flat.setOnes();
    base = data.rowwise().mean() / data.mean();
    double mu = 12.5 / largest;
    const double mu_most = mu * 1e7;
    for (int i = 0; i < options.iterations; ++i) {
      Eigen::RowVectorXd step = (data - sparse - base * flat + dual / mu).colwise().mean() + flat;
      Plane plane(step.data(), n, n);
      Matrix coefficients = basis * plane * basis.transpose();
      for (Eigen::Index k = 0; k < coefficients.size(); ++k) {
        coefficients.data()[k] = soft(coefficients.data()[k], options.smoothness / mu);
      }
      plane = (basis.transpose() * coefficients * basis).eval();
      flat = step;
      sparse = data - base * flat + dual / mu;
      for (Eigen::Index k = 0; k < sparse.size(); ++k) {
        sparse.data()[k] = soft(sparse.data()[k], weight.data()[k] / mu);
      }
      const Matrix clean = data - sparse;
      base = (clean.rowwise().mean() / clean.mean()).cwiseMax(0.0);
      const Matrix residual = data - base * flat - sparse;
      dual += mu * residual;
      mu = std::min(1.5 * mu, mu_most);
      if (residual.norm() / norm <= options.tolerance) break;
    }
    flat *= base.mean();
    const double level = flat.mean();
    if (!(level > 0)) return fail(ErrorKind::corrupt, "BaSiC: the fit vanished; the tiles are too few or too dark");
    flat /= level;
    const double signal = level * base.mean() + 1e-6;
    weight = (sparse / signal).cwiseAbs();
    weight = (weight.array() + 0.1).inverse().matrix();
    weight /= weight.mean();
    const double change = (flat - last).cwiseAbs().sum() / last.cwiseAbs().sum();
    last = flat;
    if (round > 0 && change <= options.reweighting_tolerance) break;
  }
  HostImage small(options.working_size, options.working_size);
  Eigen::Map<Eigen::RowVectorXd>(small.values.data(), pixels) = flat;
  HostImage field = resize_corners(small, tiles.front().rows, tiles.front().columns);
  double mean = 0;
  for (const double value : field.values) mean += value / static_cast<double>(field.values.size());
  for (double& value : field.values) value /= mean;
  return field;
}

}  // namespace cingulum::oct
