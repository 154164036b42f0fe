// The summary of a tile: a few images and numbers, taken when it is read for the first time, enough to place it and to
// fit light, curvature and depth over all tiles before any voxel is changed. Called by tile_stage.cpp, whose device
// sums along A-lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct TileSummary {
  HostImage projection;  // the mean of the planes below the surface, A-line by A-line: curvature does not shade it
  std::vector<HostImage> layers;  // logarithms of means over a few planes each, by which tiles are placed
  HostImage interface;            // plane of the surface; empty where none was looked for
  double above_sum = 0;           // of voxels clear above the surface: what is there without tissue
  std::uint64_t above_count = 0;
  std::string voxels;  // their hash
};

// The most layers of a tile; it has one at least.
inline constexpr std::size_t most_layers = 6;
// The number of layers of a tile with so many planes.
[[nodiscard]] std::size_t layers_of(std::size_t planes);
// Planes below the surface that are projected: a third of the tile, since what lies deeper is dim, and not every A-line
// has it.
[[nodiscard]] std::size_t projected_planes(std::size_t planes);

// What OctKernels::sum_layers gives of a tile, of layers_of() layers and projected_planes().
struct LayerSums {
  std::span<const float> surface;  // plane of each A-line
  std::span<const float> sums;
  std::size_t planes = 0, rows = 0, columns = 0, layers = 0;
};
[[nodiscard]] TileSummary summary_of_sums(const LayerSums& sums, ThreadPool* pool = nullptr);
// For a tile whose surface is not looked for: all planes count as below it, and their mean is the one layer.
[[nodiscard]] TileSummary summary_without_surface(std::span<const float> mean, std::size_t rows, std::size_t columns);

}  // namespace cingulum::oct
