#include "oct/fits/tile_depths.hpp"

#include <Eigen/Dense>
#include <optional>

#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {

std::vector<double> fit_tile_depths(std::span<const HostImage> interfaces, std::span<const OverlapPair> pairs,
                                    ThreadPool* pool) {
  const auto count = static_cast<Eigen::Index>(interfaces.size());
  // A weak pull to zero: the overlaps say nothing of what all tiles have in common.
  constexpr double pull = 1e-3;
  constexpr std::size_t least_pixels = 16;
  // The depth of the first tile of a pair less that of the second; nothing where they share too little.
  std::vector<std::optional<double>> deeper(pairs.size());
  for_each_index(pool, pairs.size(), [&](std::size_t p) {
    const OverlapPair& pair = pairs[p];
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
    if (differences.size() >= least_pixels) deeper[p] = median(std::move(differences));
  });
  Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(count, count) * pull;
  Eigen::VectorXd right = Eigen::VectorXd::Zero(count);
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (!deeper[p]) continue;
    const auto i = static_cast<Eigen::Index>(pairs[p].first), k = static_cast<Eigen::Index>(pairs[p].second);
    normal(i, i) += 1;
    normal(k, k) += 1;
    normal(i, k) -= 1;
    normal(k, i) -= 1;
    right(i) += *deeper[p];
    right(k) -= *deeper[p];
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
