// Places of tiles by their links: least squares, without links that contradict the others.
#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "oct/placement/image_filters.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {
namespace {

// Steps as the motors should have made them: matrix x stage's step, fitted over the links in use with the weights that
// the fit of places has. A direction that no link shows keeps the identity.
std::array<double, 4> fit_motor_matrix(const std::vector<TileLink>& links) {
  Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
  Eigen::Matrix2d right = Eigen::Matrix2d::Zero();
  double weight = 0;
  for (const TileLink& link : links) {
    if (link.state != LinkState::used) continue;
    const Eigen::Vector2d motor(link.motor_px[0], link.motor_px[1]);
    const Eigen::Vector2d step(link.step_px[0], link.step_px[1]);
    const double w = link.ncc * link.ncc;
    normal += w * motor * motor.transpose();
    right += w * motor * (step - motor).transpose();
    weight += w;
  }
  if (!(weight > 0)) return {1, 0, 0, 1};
  // A ridge of a thousandth of the mean squared step: a direction without links stays as the stage says.
  normal += Eigen::Matrix2d::Identity() * (1e-3 * normal.trace());
  const Eigen::Matrix2d difference = normal.ldlt().solve(right).transpose();
  return {1 + difference(0, 0), difference(0, 1), difference(1, 0), 1 + difference(1, 1)};
}

std::vector<std::size_t> groups_of(const TileGrid& grid, const std::vector<TileLink>& links) {
  std::vector<std::size_t> group(grid.count());
  std::iota(group.begin(), group.end(), std::size_t{0});
  const auto root = [&](std::size_t tile) {
    while (group[tile] != tile) tile = group[tile] = group[group[tile]];
    return tile;
  };
  for (const TileLink& link : links) {
    if (link.state != LinkState::used) continue;
    const std::size_t a = root(link.from);
    const std::size_t b = root(link.to);
    group[std::max(a, b)] = std::min(a, b);
  }
  for (std::size_t t = 0; t < group.size(); ++t) group[t] = root(t);
  return group;
}

// Places of least squares for the links in use, with a pull to where the motors should have put the tiles.
Status solve_places(const TileGrid& grid, double pull, Placement& placement) {
  const std::size_t count = grid.count();
  placement.motor_matrix = fit_motor_matrix(placement.links);
  const auto& m = placement.motor_matrix;
  std::vector<std::array<double, 2>> model(count);
  for (std::size_t t = 0; t < count; ++t) {
    const auto& at = grid.tiles[t].stage_px;
    model[t] = {m[0] * at[0] + m[1] * at[1], m[2] * at[0] + m[3] * at[1]};
  }
  std::vector<Eigen::Triplet<double>> entries;
  Eigen::MatrixXd right(static_cast<Eigen::Index>(count), 2);
  for (std::size_t t = 0; t < count; ++t) {
    const auto i = static_cast<Eigen::Index>(t);
    entries.emplace_back(i, i, pull);
    right(i, 0) = pull * model[t][0];
    right(i, 1) = pull * model[t][1];
  }
  for (const TileLink& link : placement.links) {
    if (link.state != LinkState::used) continue;
    const auto a = static_cast<Eigen::Index>(link.from);
    const auto b = static_cast<Eigen::Index>(link.to);
    const double w = link.ncc * link.ncc;
    entries.emplace_back(a, a, w);
    entries.emplace_back(b, b, w);
    entries.emplace_back(a, b, -w);
    entries.emplace_back(b, a, -w);
    for (Eigen::Index d = 0; d < 2; ++d) {
      right(a, d) -= w * link.step_px[static_cast<std::size_t>(d)];
      right(b, d) += w * link.step_px[static_cast<std::size_t>(d)];
    }
  }
  Eigen::SparseMatrix<double> normal(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(count));
  normal.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> solver(normal);
  if (solver.info() != Eigen::Success) return fail(ErrorKind::invalid_state, "placing tiles: the fit has no solution");
  const Eigen::MatrixXd places = solver.solve(right);
  placement.places_px.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    placement.places_px[t] = {places(static_cast<Eigen::Index>(t), 0), places(static_cast<Eigen::Index>(t), 1)};
  }
  return {};
}

// Gives every link its residual, drops links that are too far off, and takes those back that fit again, where they may.
// False where nothing changed.
bool reject_links(std::size_t tiles, double reject_sigma, bool may_return, Placement& placement) {
  constexpr double least_sigma_px = 0.1;  // of residuals: a grid that fits perfectly loses no link
  std::vector<double> residuals;
  for (TileLink& link : placement.links) {
    const auto& a = placement.places_px[link.from];
    const auto& b = placement.places_px[link.to];
    link.residual_px = length_of(b[0] - a[0] - link.step_px[0], b[1] - a[1] - link.step_px[1]);
    if (link.state == LinkState::used) residuals.push_back(link.residual_px);
  }
  // Residuals have two components: their median is 1.1774 standard deviations of one.
  const double sigma = std::max(least_sigma_px, median(residuals) / 1.1774100225154747);
  // A wrong link pulls its neighbours off, too: of links that share a tile only the worst is dropped in a round, and
  // those that fit again come back.
  std::vector<double> worst(tiles, 0.0);
  for (const TileLink& link : placement.links) {
    if (link.state != LinkState::used) continue;
    for (const std::size_t tile : {link.from, link.to}) worst[tile] = std::max(worst[tile], link.residual_px);
  }
  bool changed = false;
  for (TileLink& link : placement.links) {
    const bool beyond = link.residual_px > reject_sigma * sigma;
    if (link.state == LinkState::used && beyond && link.residual_px >= worst[link.from] &&
        link.residual_px >= worst[link.to]) {
      link.state = LinkState::contradicting;
      changed = true;
    } else if (link.state == LinkState::contradicting && !beyond && may_return) {
      link.state = LinkState::used;
      changed = true;
    }
  }
  return changed;
}

void count_rejected(Placement& placement) {
  double squares = 0, used = 0;
  placement.rejected = 0;
  for (const TileLink& link : placement.links) {
    if (link.state == LinkState::used) {
      squares += link.residual_px * link.residual_px;
      used += 1;
    } else {
      ++placement.rejected;
    }
  }
  placement.residual_rms_px = used > 0 ? std::sqrt(squares / used) : 0;
}

// Groups of tiles that links hold together; the largest, among equals the first, is the mosaic.
void find_islands(const TileGrid& grid, Placement& placement) {
  const std::vector<std::size_t> group = groups_of(grid, placement.links);
  std::vector<std::vector<std::size_t>> members(grid.count());
  for (std::size_t t = 0; t < grid.count(); ++t) {
    if (!grid.tiles[t].missing) members[group[t]].push_back(t);
  }
  const auto largest = std::max_element(members.begin(), members.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  placement.islands.clear();
  for (auto& one : members) {
    if (!one.empty() && &one != &*largest) placement.islands.push_back(std::move(one));
  }
}

}  // namespace

Status fit_places(const TileGrid& grid, double pull, double reject_sigma, Placement& placement) {
  constexpr int rounds_with_return = 50;  // later ones only drop, so that the loop ends
  for (int round = 0;; ++round) {
    CGL_TRY(solve_places(grid, pull, placement));
    if (!reject_links(grid.count(), reject_sigma, round < rounds_with_return, placement)) break;
  }
  count_rejected(placement);
  find_islands(grid, placement);
  std::array<double, 2> low = placement.places_px.front();
  for (const auto& place : placement.places_px) low = {std::min(low[0], place[0]), std::min(low[1], place[1])};
  for (auto& place : placement.places_px) place = {place[0] - low[0], place[1] - low[1]};
  return {};
}

}  // namespace cingulum::oct
