#include "oct/placement/tile_placement.hpp"

#include <algorithm>
#include <cmath>

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

// Links between neighbours; `steps` are one of the grid along rows and one along columns, for pairs that are none.
std::vector<TileLink> neighbour_links(const TileGrid& grid, std::vector<std::array<double, 2>>& steps) {
  std::vector<TileLink> links;
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
      links.push_back(link);
    }
  }
  return links;
}

// Two tiles that are no neighbours, and the step by which they are compared as if they were.
struct NullPair {
  std::size_t from, to, step;
};

std::vector<NullPair> find_null_pairs(const TileGrid& grid, std::size_t steps) {
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
      candidates.push_back({a, b, candidates.size() % std::max<std::size_t>(1, steps)});
    }
  }
  for (std::size_t i = 0; i < std::min(candidates.size(), most_null_pairs) && steps > 0; ++i) {
    null_pairs.push_back(candidates[i * candidates.size() / std::min(candidates.size(), most_null_pairs)]);
  }
  return null_pairs;
}

// A pair of tiles that is compared; `link` is null where they are no neighbours.
struct MeasuredPair {
  TilePair pair;
  std::array<double, 2> step = {0, 0};
  TileLink* link = nullptr;
};

Result<std::vector<NccPeak>> find_peaks(const TileGrid& grid, const LayerImages& images,
                                        const std::vector<MeasuredPair>& measured, const PlacementOptions& options) {
  std::vector<TilePair> pairs;
  for (const MeasuredPair& one : measured) pairs.push_back(one.pair);
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
  return peaks;
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

Result<Placement> place_tiles(const TileGrid& grid, const std::vector<HostImage>& projections,
                              const PlacementOptions& options) {
  return place_tiles(grid, std::vector<std::vector<HostImage>>(1, projections), options);
}

Result<Placement> place_tiles(const TileGrid& grid, const std::vector<std::vector<HostImage>>& layers,
                              const PlacementOptions& options) {
  Placement placement;
  const LayerImages images = prepare_projections(grid, layers, options);
  std::vector<std::array<double, 2>> steps;
  placement.links = neighbour_links(grid, steps);
  const std::vector<NullPair> null_pairs = find_null_pairs(grid, steps.size());
  // Links first, then pairs that are none.
  std::vector<MeasuredPair> measured;
  const auto measure = [&](std::size_t from, std::size_t to, const std::array<double, 2>& step, TileLink* link) {
    measured.push_back({{from, to, window_around(grid, step, options.search_px)}, step, link});
  };
  for (TileLink& link : placement.links) {
    if (link.state == LinkState::used) measure(link.from, link.to, link.motor_px, &link);
  }
  for (const NullPair& pair : null_pairs) measure(pair.from, pair.to, steps[pair.step], nullptr);
  CGL_TRY_ASSIGN(const std::vector<NccPeak> peaks, find_peaks(grid, images, measured, options));
  std::vector<double> null_ncc;
  for (std::size_t i = 0; i < measured.size(); ++i) {
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
