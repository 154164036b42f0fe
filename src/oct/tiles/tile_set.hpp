// Tiles of a serial OCT acquisition as they lie on disk: folders of raw tiles (tile_x##_y##_z## with info.txt and
// image_*.bin), or a CSV table of OME-Zarr or NIfTI tiles of any microscope. Opening reads descriptions alone and
// refuses, by name, what does not fit: sizes, doubled ids, holes in the grid, missing slices. Called by `oct grid`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {

struct TileRecord {
  std::size_t slice = 0, row = 0, column = 0;      // ids as the acquisition numbers them: z, y, x
  std::array<double, 3> stage_mm = {0, 0, 0};      // z, y, x
  std::filesystem::path path;                      // the folder, or the file
  std::vector<std::filesystem::path> images = {};  // raw: image_*.bin by name
  std::size_t line = 0;                            // of a table
};

struct TileSetOptions {
  std::optional<double> axial_step_um = {};  // raw tiles do not say it
  std::optional<std::string> unit = {};      // of OME-Zarr tiles without one
  bool allow_missing = false;                // holes are listed instead of refused
  bool average_repeats = false;              // n_repeat > 1
};

struct TileSet {
  bool raw = false;
  std::vector<TileRecord> tiles;                 // by slice, row, column
  std::array<std::size_t, 3> shape = {0, 0, 0};  // of a tile without extra lines: z, y, x
  std::size_t extra_lines = 0;                   // of the galvo's way back, raw alone
  std::size_t repeats = 1;                       // of each B-scan, one after the other
  VoxelSize voxel_um = {1, 1, 1};
  double focus_plane = 0;
  std::vector<std::string> missing;  // names of what is not there

  [[nodiscard]] std::vector<std::size_t> slices() const;  // ids, ascending
};

[[nodiscard]] Result<TileSet> open_tiles(const std::filesystem::path& path, const TileSetOptions& options = {});

// Fields of info.txt.
struct RawTileInfo {
  std::size_t nx = 0, ny = 0, nz = 0, extra = 0, repeats = 1;
  double width_um = 0, height_um = 0, focus = 0;
  std::array<double, 3> stage_mm = {0, 0, 0};  // z, y, x
};
[[nodiscard]] Result<RawTileInfo> parse_tile_info(std::string_view text);

// A table of tiles: files as they stand there, positions as the stage says.
[[nodiscard]] Result<std::vector<TileRecord>> parse_tile_table(std::string_view text);

// Values of a raw tile, and some of them in the order of its files: (y, repeat, line, z), z fastest. any thread
[[nodiscard]] std::uint64_t raw_value_count(const TileSet& set);
// Whether its files still hold them.
[[nodiscard]] Status check_raw_tile(const TileSet& set, const TileRecord& tile);
[[nodiscard]] Status read_raw_values(const TileRecord& tile, std::uint64_t first, std::span<float> to);

// The voxels of a tile, (z, y, x). Of raw tiles all lines, the band among them; repeats are averaged. What is not
// finite becomes zero and is counted in `replaced`. any thread
[[nodiscard]] Result<HostVolume> read_tile(const TileSet& set, const TileRecord& tile, std::uint64_t& replaced,
                                           const CancelToken& cancel = {}, ThreadPool* pool = nullptr);

}  // namespace cingulum::oct
