#include "oct/placement/tile_placement.hpp"

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// What all tiles have in common, uneven light above all: a smooth field, and of what differs from it the share that is
// not to be expected of so few tiles. The plain mean of few tiles holds a good deal of their texture, which would count
// against each of them (0.42 pixels rms instead of 0.26 for 20 tiles).
HostImage common_part(const std::vector<const HostImage*>& tiles) {
  constexpr int degree = 4;
  const double n = static_cast<double>(tiles.size());
  HostImage mean(tiles.front()->rows, tiles.front()->columns);
  HostImage squares = mean;
  for (const HostImage* tile : tiles) {
    double level = 0;
    for (const double value : tile->values) level += value;
    level /= static_cast<double>(tile->values.size());
    for (std::size_t i = 0; i < mean.values.size(); ++i) {
      const double value = tile->values[i] - level;
      mean.values[i] += value / n;
      squares.values[i] += value * value / n;
    }
  }
  HostImage common = fit_polynomial(mean, degree);
  double expected = 0, found = 0;
  for (std::size_t i = 0; i < mean.values.size(); ++i) {
    expected += (squares.values[i] - mean.values[i] * mean.values[i]) / std::max(1.0, n - 1);
    found += (mean.values[i] - common.values[i]) * (mean.values[i] - common.values[i]);
  }
  const double share = found > 0 ? std::max(0.0, 1 - expected / found) : 0;
  for (std::size_t i = 0; i < mean.values.size(); ++i) {
    common.values[i] += share * (mean.values[i] - common.values[i]);
  }
  return common;
}

// Projections as they are correlated, by layer and tile: smoothed, less what all tiles of the layer have in common,
// float32.
LayerImages prepare_projections(const TileGrid& grid, const std::vector<std::vector<HostImage>>& layers,
                                const PlacementOptions& options) {
  const std::size_t tiles = grid.count();
  std::vector<std::vector<HostImage>> smooth(layers.size(), std::vector<HostImage>(tiles));
  for_each_index(options.pool, layers.size() * tiles, [&](std::size_t i) {
    const std::size_t layer = i / tiles, tile = i % tiles;
    if (!grid.tiles[tile].missing) smooth[layer][tile] = smooth_image(layers[layer][tile], options.smoothing_px);
  });
  std::vector<HostImage> common(layers.size());
  for_each_index(options.pool, layers.size(), [&](std::size_t layer) {
    std::vector<const HostImage*> present;
    for (const HostImage& image : smooth[layer]) {
      if (!image.values.empty()) present.push_back(&image);
    }
    if (!present.empty()) common[layer] = common_part(present);
  });
  LayerImages prepared(layers.size(), std::vector<std::vector<float>>(tiles));
  for_each_index(options.pool, layers.size() * tiles, [&](std::size_t i) {
    const HostImage& image = smooth[i / tiles][i % tiles];
    std::vector<float>& to = prepared[i / tiles][i % tiles];
    to.resize(image.values.size());
    std::transform(image.values.begin(), image.values.end(), common[i / tiles].values.begin(), to.begin(),
                   [](double value, double shared) { return static_cast<float>(value - shared); });
  });
  return prepared;
}

ShiftWindow window_around(const TileGrid& grid, const std::array<double, 2>& step, std::size_t reach) {
  ShiftWindow window;
  window.row = std::lround(step[0]);
  window.column = std::lround(step[1]);
  window.row_reach = std::min(reach, grid.tile[1]);
  window.column_reach = std::min(reach, grid.tile[2]);
  return window;
}

// Pixels that two tiles share at the motor's step; half of it must be left at a shift that counts.
double shared_pixels(const TileGrid& grid, const std::array<double, 2>& step) {
  const double rows = static_cast<double>(grid.tile[1]) - std::abs(step[0]);
  const double columns = static_cast<double>(grid.tile[2]) - std::abs(step[1]);
  return rows > 0 && columns > 0 ? rows * columns : 0;
}

std::array<double, 2> step_between(const TileGrid& grid, std::size_t from, std::size_t to) {
  return {grid.tiles[to].stage_px[0] - grid.tiles[from].stage_px[0],
          grid.tiles[to].stage_px[1] - grid.tiles[from].stage_px[1]};
}

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

}  // namespace

std::string_view link_state_name(LinkState state) {
  switch (state) {
    case LinkState::used: return "used";
    case LinkState::weak: return "weak";
    case LinkState::contradicting: return "contradicting";
    case LinkState::no_overlap: return "no overlap";
  }
  return "";
}

HostImage log_projection(const HostVolume& tile) {
  return log_image(mean_projection(tile));
}

HostImage log_image(HostImage image) {
  double smallest = 0;
  for (const double value : image.values) {
    if (value > 0 && (smallest == 0 || value < smallest)) smallest = value;
  }
  if (smallest == 0) smallest = 1;
  for (double& value : image.values) value = numerics::logarithm(std::max(value, smallest));
  return image;
}

Status fit_places(const TileGrid& grid, double pull, double reject_sigma, Placement& placement) {
  const std::size_t count = grid.count();
  constexpr double least_sigma_px = 0.1;  // of residuals: a grid that fits perfectly loses no link
  constexpr int rounds_with_return = 50;  // later ones only drop, so that the loop ends
  for (int round = 0;; ++round) {
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
    if (solver.info() != Eigen::Success)
      return fail(ErrorKind::invalid_state, "placing tiles: the fit has no solution");
    const Eigen::MatrixXd places = solver.solve(right);
    placement.places_px.resize(count);
    for (std::size_t t = 0; t < count; ++t) {
      placement.places_px[t] = {places(static_cast<Eigen::Index>(t), 0), places(static_cast<Eigen::Index>(t), 1)};
    }
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
    std::vector<double> worst(count, 0.0);
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
      } else if (link.state == LinkState::contradicting && !beyond && round < rounds_with_return) {
        link.state = LinkState::used;
        changed = true;
      }
    }
    if (!changed) break;
  }
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
  // Groups of tiles that links hold together; the largest, among equals the first, is the mosaic.
  const std::vector<std::size_t> group = groups_of(grid, placement.links);
  std::vector<std::vector<std::size_t>> members(count);
  for (std::size_t t = 0; t < count; ++t) {
    if (!grid.tiles[t].missing) members[group[t]].push_back(t);
  }
  const auto largest = std::max_element(members.begin(), members.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  placement.islands.clear();
  for (auto& one : members) {
    if (!one.empty() && &one != &*largest) placement.islands.push_back(std::move(one));
  }
  std::array<double, 2> low = placement.places_px.front();
  for (const auto& place : placement.places_px) low = {std::min(low[0], place[0]), std::min(low[1], place[1])};
  for (auto& place : placement.places_px) place = {place[0] - low[0], place[1] - low[1]};
  return {};
}

Result<Placement> place_tiles(const TileGrid& grid, const std::vector<HostImage>& projections,
                              const PlacementOptions& options) {
  return place_tiles(grid, std::vector<std::vector<HostImage>>(1, projections), options);
}

Result<Placement> place_tiles(const TileGrid& grid, const std::vector<std::vector<HostImage>>& layers,
                              const PlacementOptions& options) {
  Placement placement;
  const LayerImages images = prepare_projections(grid, layers, options);
  // A step of the grid along rows or columns, for pairs that are no neighbours.
  std::vector<std::array<double, 2>> steps;
  for (std::size_t t = 0; t < grid.count(); ++t) {
    const std::array<std::size_t, 2> further = {t % grid.columns + 1 < grid.columns ? t + 1 : grid.count(),
                                                t + grid.columns};
    for (const std::size_t other : further) {
      if (other >= grid.count() || grid.tiles[t].missing || grid.tiles[other].missing) continue;
      TileLink link{.from = t, .to = other, .motor_px = step_between(grid, t, other)};
      if (!(shared_pixels(grid, link.motor_px) > 0)) link.state = LinkState::no_overlap;
      if (link.state == LinkState::used && steps.size() < 2 &&
          (steps.empty() || (other == t + 1) != (std::abs(steps[0][1]) > std::abs(steps[0][0])))) {
        steps.push_back(link.motor_px);
      }
      placement.links.push_back(link);
    }
  }
  struct NullPair {
    std::size_t from, to, step;
  };
  std::vector<NullPair> null_pairs;
  constexpr std::size_t most_null_pairs = 200;
  std::vector<NullPair> candidates;
  for (std::size_t a = 0; a < grid.count(); ++a) {
    for (std::size_t b = 0; b < grid.count(); ++b) {
      if (a == b || grid.tiles[a].missing || grid.tiles[b].missing) continue;
      const auto rows = static_cast<std::ptrdiff_t>(a / grid.columns) - static_cast<std::ptrdiff_t>(b / grid.columns);
      const auto columns =
          static_cast<std::ptrdiff_t>(a % grid.columns) - static_cast<std::ptrdiff_t>(b % grid.columns);
      if (std::abs(rows) <= 1 && std::abs(columns) <= 1) continue;
      candidates.push_back({a, b, candidates.size() % std::max<std::size_t>(1, steps.size())});
    }
  }
  for (std::size_t i = 0; i < std::min(candidates.size(), most_null_pairs) && !steps.empty(); ++i) {
    null_pairs.push_back(candidates[i * candidates.size() / std::min(candidates.size(), most_null_pairs)]);
  }
  // Links first, then pairs that are none.
  struct Measured {
    TileLink* link = nullptr;
    std::array<double, 2> step = {0, 0};
  };
  std::vector<TilePair> pairs;
  std::vector<Measured> measured;
  const auto measure = [&](std::size_t from, std::size_t to, const std::array<double, 2>& step, TileLink* link) {
    pairs.push_back({from, to, window_around(grid, step, options.search_px)});
    measured.push_back({link, step});
  };
  for (TileLink& link : placement.links) {
    if (link.state == LinkState::used) measure(link.from, link.to, link.motor_px, &link);
  }
  for (const NullPair& pair : null_pairs) measure(pair.from, pair.to, steps[pair.step], nullptr);
  std::vector<float> products;
  if (options.products) {
    CGL_TRY_ASSIGN(products, options.products(images, grid, pairs));
  }
  std::vector<std::size_t> first_product(pairs.size(), 0);
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    first_product[i] = first_product[i - 1] + pairs[i - 1].window.count() * images.size();
  }
  std::vector<NccPeak> peaks(pairs.size());
  for_each_index(options.pool, pairs.size(), [&](std::size_t i) {
    const TilePair& pair = pairs[i];
    std::vector<ImagePair> compared;
    for (const auto& layer : images) {
      compared.push_back(
          {{layer[pair.from].data(), grid.tile[1], grid.tile[2]}, {layer[pair.to].data(), grid.tile[1], grid.tile[2]}});
    }
    std::span<const float> given = products;
    if (!given.empty()) given = given.subspan(first_product[i], pair.window.count() * images.size());
    const auto least = static_cast<std::uint64_t>(0.5 * shared_pixels(grid, measured[i].step));
    peaks[i] = find_peak(compared, 0.0f, pair.window, std::max<std::uint64_t>(least, 16), given);
  });
  std::vector<double> null_ncc;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const NccPeak& peak = peaks[i];
    if (measured[i].link == nullptr) {
      null_ncc.push_back(peak.ncc);
      continue;
    }
    TileLink& link = *measured[i].link;
    link.ncc = peak.ncc;
    link.step_px = peak.shift;
    if (!peak.found || peak.at_border || !(peak.ncc > 0)) link.state = LinkState::weak;
  }
  placement.null_pairs = null_pairs.size();
  placement.threshold = percentile(null_ncc, 1.0 - options.false_share);
  for (TileLink& link : placement.links) {
    if (link.state == LinkState::used && !(link.ncc > placement.threshold)) link.state = LinkState::weak;
  }
  CGL_TRY(fit_places(grid, options.pull, options.reject_sigma, placement));
  const double share = placement.links.empty()
                           ? 0.0
                           : static_cast<double>(placement.rejected) / static_cast<double>(placement.links.size());
  if (share > options.max_rejected) {
    return fail(ErrorKind::corrupt,
                "slice {}: {} of {} links between tiles were rejected ({:.0f} %), more than {} {} allows", grid.slice,
                placement.rejected, placement.links.size(), 100 * share, argument_name("max_rejected"),
                options.max_rejected);
  }
  return placement;
}

}  // namespace cingulum::oct
