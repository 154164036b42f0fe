// A mosaic grid: the tiles of one slice side by side in one OME-Zarr image (z, y, x), their physical overlap included.
// Which tiles they are, where the stage had them and which are missing stands in a private attribute of the group
// ("cingulum": {"tile_grid": ...}), not in the shape of chunks. Written by `oct grid`, read by the stages that work on
// tiles before they are placed.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "oct/tiles/tile_set.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

struct GridTile {
  std::array<double, 2> stage_px = {0, 0};  // row, column, from the slice's smallest position
  bool missing = false;
};

struct TileGrid {
  std::size_t slice = 0;
  std::array<std::size_t, 3> tile = {0, 0, 0};  // z, y, x
  std::size_t rows = 0, columns = 0;
  std::vector<GridTile> tiles;               // row by row
  std::array<double, 2> origin_mm = {0, 0};  // of the smallest position: y, x
  double stage_z_mm = 0;
  double focus_plane = 0;

  [[nodiscard]] std::size_t count() const { return rows * columns; }
  [[nodiscard]] std::string name_of(std::size_t tile_number) const;  // "tile row 1, column 2 of slice 3"
};

[[nodiscard]] zarr::Json tile_grid_json(const TileGrid& grid);
// Fails where the attributes hold none, or one that does not fit the volume.
[[nodiscard]] Result<TileGrid> tile_grid_of(const zarr::Json& attributes, const std::array<std::uint64_t, 3>& shape);

// The grid of one slice of a set; a missing tile has the place that its neighbours' steps give it.
[[nodiscard]] Result<TileGrid> grid_of_slice(const TileSet& set, std::size_t slice);

struct MosaicOptions {
  ThreadPool* pool = nullptr;
  RunContext run = {};
  std::size_t last_line = 0;  // raw tiles with extra lines: galvo_band.hpp
};
struct MosaicReport {
  std::uint64_t replaced_values = 0;  // were not finite
  std::size_t missing_tiles = 0;
};
// Reads each tile of the slice once and writes it; a few tiles are in memory at a time.
[[nodiscard]] Result<MosaicReport> write_mosaic(const std::filesystem::path& path, const TileSet& set,
                                                const TileGrid& grid, const WriteOptions& write,
                                                const MosaicOptions& options);

// A tile out of the volume of a mosaic grid, and back.
[[nodiscard]] HostVolume cut_tile(const HostVolume& mosaic, const TileGrid& grid, std::size_t tile_number);

}  // namespace cingulum::oct
