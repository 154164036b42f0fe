#include "oct/run/tile_glance.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/tile_placement.hpp"

namespace cingulum::oct {
namespace {

// Below the surface so many planes are left out, since it is known to about one and is not sharp; above it twice as
// many, since what lies above counts as free of tissue.
constexpr double surface_margin = 3;
constexpr double water_margin = 6;

constexpr std::size_t layer_planes = 8;

}  // namespace

std::size_t layers_of(std::size_t planes) {
  return std::clamp<std::size_t>(planes / 2 / layer_planes, 1, most_layers);
}

TileGlance glance_at(const HostVolume& tile, HostImage interface) {
  TileGlance glance;
  glance.voxels = hash_hex(std::as_bytes(std::span(tile.values)));
  if (interface.values.empty()) {
    glance.projection = mean_projection(tile);
    glance.layers.push_back(log_image(glance.projection));
    return glance;
  }
  glance.projection = HostImage(tile.rows, tile.columns);
  glance.layers.assign(layers_of(tile.planes), HostImage(tile.rows, tile.columns));
  // A third of the tile: what lies deeper is dim, and not every A-line has it.
  const auto depth = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, tile.planes / 3));
  const auto layered = static_cast<std::ptrdiff_t>(glance.layers.size() * layer_planes);
  const auto last = static_cast<std::ptrdiff_t>(tile.planes);
  std::vector<std::ptrdiff_t> first(interface.values.size()), water(interface.values.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double surface = std::clamp(interface.values[i], 0.0, static_cast<double>(tile.planes));
    first[i] = std::min(std::lround(surface + surface_margin), last - 1);
    water[i] = std::lround(surface - water_margin);
  }
  for (std::ptrdiff_t z = 0; z < last; ++z) {
    const std::span<const float> plane = tile.plane(static_cast<std::size_t>(z));
    for (std::size_t i = 0; i < plane.size(); ++i) {
      const auto value = static_cast<double>(plane[i]);
      const std::ptrdiff_t below = z - first[i];
      if (below >= 0 && below < depth) glance.projection.values[i] += value;
      if (below >= 0 && below < layered) {
        glance.layers[static_cast<std::size_t>(below) / layer_planes].values[i] += value;
      }
      if (z < water[i]) {
        glance.above_sum += value;
        ++glance.above_count;
      }
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    glance.projection.values[i] /= static_cast<double>(std::min(first[i] + depth, last) - first[i]);
  }
  for (HostImage& layer : glance.layers) layer = log_image(std::move(layer));
  glance.interface = std::move(interface);
  return glance;
}

}  // namespace cingulum::oct
