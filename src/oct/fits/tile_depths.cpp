#include "oct/fits/tile_depths.hpp"

#include <Eigen/Dense>

#include "oct/placement/image_filters.hpp"

namespace cingulum::oct {

std::vector<double> fit_tile_depths(std::span<const HostImage> interfaces, std::span<const OverlapPair> pairs) {
  const auto count = static_cast<Eigen::Index>(interfaces.size());
  // A weak pull to zero: the overlaps say nothing of what all tiles have in common.
  constexpr double pull = 1e-3;
  constexpr std::size_t least_pixels = 16;
  Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(count, count) * pull;
  Eigen::VectorXd right = Eigen::VectorXd::Zero(count);
  for (const OverlapPair& pair : pairs) {
    const HostImage& a = interfaces[pair.first];
    const HostImage& b = interfaces[pair.second];
    std::vector<double> differences;
    for (std::size_t r = 0; r < b.rows; ++r) {
      for (std::size_t c = 0; c < b.columns; ++c) {
        double seen = 0;
        if (!sample_image(a, static_cast<double>(r) + pair.step_px[0], static_cast<double>(c) + pair.step_px[1],
                          seen)) {
          continue;
        }
        differences.push_back(seen - b.at(r, c));
      }
    }
    if (differences.size() < least_pixels) continue;
    const double deeper = median(std::move(differences));
    const auto i = static_cast<Eigen::Index>(pair.first), k = static_cast<Eigen::Index>(pair.second);
    normal(i, i) += 1;
    normal(k, k) += 1;
    normal(i, k) -= 1;
    normal(k, i) -= 1;
    right(i) += deeper;
    right(k) -= deeper;
  }
  const Eigen::VectorXd solution = normal.ldlt().solve(right);
  std::vector<double> depths(interfaces.size(), 0.0);
  double mean = 0, tiles = 0;
  for (std::size_t t = 0; t < depths.size(); ++t) {
    if (interfaces[t].values.empty()) continue;
    depths[t] = solution(static_cast<Eigen::Index>(t));
    mean += depths[t];
    tiles += 1;
  }
  for (std::size_t t = 0; t < depths.size(); ++t) {
    if (!interfaces[t].values.empty()) depths[t] -= mean / tiles;
  }
  return depths;
}

}  // namespace cingulum::oct
