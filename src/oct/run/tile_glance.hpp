// What is small of a tile, taken when it is read for the first time: enough to place it, and to fit light, curvature
// and depth over all tiles before any voxel is changed. Called by reconstruction.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct TileGlance {
  HostImage projection;  // the mean of the planes below the surface, A-line by A-line: curvature does not shade it
  std::vector<HostImage> layers;  // logarithms of means over a few planes each, by which tiles are placed
  HostImage interface;            // plane of the surface; empty where none was looked for
  double above_sum = 0;           // of voxels clear above the surface: what is there without tissue
  std::uint64_t above_count = 0;
  std::string voxels;  // their hash
};

// At most so many; a tile has one at least.
inline constexpr std::size_t most_layers = 6;

// `interface` may be empty: then all planes count as below the surface, and there is one layer.
[[nodiscard]] TileGlance glance_at(const HostVolume& tile, HostImage interface);
// Of tiles that have this many planes.
[[nodiscard]] std::size_t layers_of(std::size_t planes);

}  // namespace cingulum::oct
