// Tiles at their places as one volume: each voxel is the weighted mean of the tiles that cover it, resampled linearly
// at their sub-pixel places. Weights depend on the place inside a tile alone, so no order of tiles does anything. A
// constant stays exactly constant. Voxels that no tile covers are 0 and counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

enum class Blending : std::uint8_t {
  cosine,   // weights fall to the edges over the width of the overlap
  average,  // all tiles the same
  none,     // the tile whose centre is nearest alone
};
[[nodiscard]] Result<Blending> parse_blending(std::string_view name);

struct BlendedSlice {
  HostVolume volume;
  std::uint64_t uncovered_pixels = 0;  // of a plane
};
// `places_px` as tile_placement.hpp gives them: the smallest is 0.
[[nodiscard]] Result<BlendedSlice> blend_tiles(const HostVolume& mosaic, const TileGrid& grid,
                                               const std::vector<std::array<double, 2>>& places_px, Blending blending,
                                               ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
