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

// Where the tiles of a mosaic grid lie on the canvas of their slice, and what they weigh there. Planes are blended each
// by itself, so a slice may be made a few planes at a time. any thread
class TileBlend {
 public:
  // `places_px` as tile_placement.hpp gives them: the smallest is 0.
  [[nodiscard]] static TileBlend plan(const TileGrid& grid, const std::vector<std::array<double, 2>>& places_px,
                                      Blending blending);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }

  // Makes some planes of the slice from the same planes of the mosaic grid.
  void blend(const HostVolume& mosaic, HostVolume& to, ThreadPool* pool = nullptr) const;
  // Pixels of a plane of the canvas that no tile covers.
  [[nodiscard]] std::uint64_t uncovered_pixels() const;

 private:
  // The pixels of the canvas that a tile covers along one axis, with where they lie in the tile and their weights.
  struct AxisCover {
    std::size_t first = 0;              // of the canvas
    std::vector<std::size_t> low = {};  // pixel of the tile at or before
    std::vector<double> part = {};      // of the way to the next pixel
    std::vector<double> weight = {};
  };
  struct RowPlan;
  [[nodiscard]] static AxisCover cover_axis(double place, std::size_t pixels, double ramp, Blending blending);
  [[nodiscard]] RowPlan plan_row(std::size_t row) const;

  std::size_t rows_ = 0, columns_ = 0;
  std::size_t tile_rows_ = 0, tile_columns_ = 0, grid_columns_ = 0;
  Blending blending_ = Blending::cosine;
  std::vector<std::array<AxisCover, 2>> covers_;  // empty where a tile is missing
};

struct BlendedSlice {
  HostVolume volume;
  std::uint64_t uncovered_pixels = 0;  // of a plane
};
// All planes at once.
[[nodiscard]] Result<BlendedSlice> blend_tiles(const HostVolume& mosaic, const TileGrid& grid,
                                               const std::vector<std::array<double, 2>>& places_px, Blending blending,
                                               ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
