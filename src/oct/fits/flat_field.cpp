#include "oct/fits/flat_field.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// Tiles of one mosaic have one gain, but depths that differ: a pair's mean levels agree about so well (in the
// logarithm). They show the field's slope, which differences around them do not.
constexpr double pair_level_sigma = 0.03;

// A projection as it is fitted: the logarithm less its mean, which is `level`; empty where the tile takes no part.
HostImage fitted_projection(const HostImage& projection, double& level) {
  const auto lit = std::count_if(projection.values.begin(), projection.values.end(), [](double v) { return v > 0; });
  if (projection.values.empty() || 2 * static_cast<std::size_t>(lit) <= projection.values.size()) return {};
  const double cap = percentile(projection.values, 0.999);
  double smallest = cap;
  for (const double value : projection.values) {
    if (value > 0) smallest = std::min(smallest, value);
  }
  HostImage result = projection;
  double mean = 0;
  for (double& value : result.values) {
    value = numerics::logarithm(std::clamp(value, smallest, cap));
    mean += value;
  }
  mean /= static_cast<double>(result.values.size());
  for (double& value : result.values) value -= mean;
  level = mean;
  return result;
}

}  // namespace

Result<FlatFieldFit> fit_flat_field(const std::vector<HostImage>& projections, std::span<const OverlapPair> pairs,
                                    int degree) {
  FlatFieldFit fit;
  std::vector<HostImage> tiles;
  std::vector<double> levels;
  const HostImage* first = nullptr;
  for (const HostImage& projection : projections) {
    levels.push_back(0);
    tiles.push_back(fitted_projection(projection, levels.back()));
    if (tiles.back().values.empty()) continue;
    if (first == nullptr) first = &projection;
    if (projection.rows != first->rows || projection.columns != first->columns) {
      return fail(ErrorKind::corrupt, "flat field: tiles of {} x {} and of {} x {} pixels", first->rows, first->columns,
                  projection.rows, projection.columns);
    }
    ++fit.tiles;
  }
  if (fit.tiles == 0) return fail(ErrorKind::corrupt, "flat field: no tile has light in more than half of its pixels");
  const std::size_t rows = first->rows, columns = first->columns;
  // The mean tile, and how much single tiles differ from it: its own error.
  HostImage mean(rows, columns);
  double spread = 0;
  const double n = static_cast<double>(fit.tiles);
  for (const HostImage& tile : tiles) {
    for (std::size_t i = 0; i < tile.values.size(); ++i) {
      mean.values[i] += tile.values[i] / n;
      spread += tile.values[i] * tile.values[i] / n;
    }
  }
  for (const double value : mean.values) spread -= value * value;
  const double pixels = static_cast<double>(mean.values.size());
  // What the mean tile holds of the sample is alike over many pixels, which count as one. Simulated tiles gave the
  // number: with 1, two of 20 mosaics of 12 tiles were off by more than 5 %, with 200 one, with 1000 none.
  constexpr double alike_pixels = 1000;
  const double mean_error = std::max(1e-12, alike_pixels * spread / pixels / n);
  // The constant is the field's mean, which is not asked for: terms but the first.
  const Eigen::Index count = (degree + 1) * (degree + 2) / 2 - 1;
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(count, count);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(count);
  const auto terms_at = [&](double row, double column) -> Eigen::VectorXd {
    const std::vector<double> all = polynomial_terms(row, column, rows, columns, degree);
    return Eigen::Map<const Eigen::VectorXd>(all.data() + 1, count);
  };
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const Eigen::VectorXd terms = terms_at(static_cast<double>(r), static_cast<double>(c));
      normal.noalias() += (1 / mean_error) * terms * terms.transpose();
      right.noalias() += (mean.at(r, c) / mean_error) * terms;
    }
  }
  // Differences of pairs, each pair less its mean, and the means by themselves. Their error is what is left of them
  // against the mean tile's field at most, so they are weighed by their own spread.
  for (const OverlapPair& pair : pairs) {
    const HostImage& a = tiles[pair.first];
    const HostImage& b = tiles[pair.second];
    if (a.values.empty() || b.values.empty()) continue;
    std::vector<double> differences;
    std::vector<Eigen::VectorXd> rows_of_terms;
    for (std::size_t r = 0; r < rows; ++r) {
      const double row = static_cast<double>(r) + pair.step_px[0];
      if (row < 0 || row > static_cast<double>(rows - 1)) continue;
      for (std::size_t c = 0; c < columns; ++c) {
        const double column = static_cast<double>(c) + pair.step_px[1];
        if (column < 0 || column > static_cast<double>(columns - 1)) continue;
        double seen = 0;
        if (!sample_image(a, row, column, seen)) continue;
        rows_of_terms.emplace_back(terms_at(row, column) - terms_at(static_cast<double>(r), static_cast<double>(c)));
        differences.push_back(seen - b.at(r, c));
      }
    }
    if (differences.size() < 16) continue;
    Eigen::VectorXd mean_terms = Eigen::VectorXd::Zero(count);
    double mean_difference = 0;
    const double m = static_cast<double>(differences.size());
    for (std::size_t i = 0; i < differences.size(); ++i) {
      mean_terms += rows_of_terms[i] / m;
      mean_difference += differences[i] / m;
    }
    const double level_weight = 1 / (pair_level_sigma * pair_level_sigma);
    normal.noalias() += level_weight * mean_terms * mean_terms.transpose();
    right.noalias() += level_weight * (mean_difference + levels[pair.first] - levels[pair.second]) * mean_terms;
    const double middle = median(differences);
    std::vector<double> distances;
    for (const double value : differences) distances.push_back(std::abs(value - middle));
    const double sigma = std::max(1e-6, 1.4826 * median(distances));
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const Eigen::VectorXd row = rows_of_terms[i] - mean_terms;
      normal.noalias() += (1 / (sigma * sigma)) * row * row.transpose();
      right.noalias() += ((differences[i] - mean_difference) / (sigma * sigma)) * row;
    }
  }
  normal += Eigen::MatrixXd::Identity(count, count) * (1e-12 * normal.trace());
  const Eigen::VectorXd solution = normal.ldlt().solve(right);
  fit.field = HostImage(rows, columns);
  double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const Eigen::VectorXd terms = terms_at(static_cast<double>(r), static_cast<double>(c));
      fit.field.at(r, c) = numerics::exponential(terms.dot(solution));
      sum += fit.field.at(r, c);
    }
  }
  for (double& value : fit.field.values) value /= sum / pixels;
  return fit;
}

void divide_by_field(HostVolume& mosaic, const TileGrid& grid, const HostImage& field, ThreadPool* pool) {
  for_each_index(pool, mosaic.planes, [&](std::size_t z) {
    for (std::size_t r = 0; r < mosaic.rows; ++r) {
      float* const row = &mosaic.at(z, r, 0);
      const double* const light = field.values.data() + (r % grid.tile[1]) * field.columns;
      for (std::size_t c = 0; c < mosaic.columns; ++c) {
        row[c] = static_cast<float>(static_cast<double>(row[c]) / light[c % grid.tile[2]]);
      }
    }
  });
}

}  // namespace cingulum::oct
