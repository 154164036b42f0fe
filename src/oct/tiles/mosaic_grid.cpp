#include "oct/tiles/mosaic_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/first_failure.hpp"
#include "base/progress.hpp"
#include "oct/tiles/galvo_band.hpp"
#include "oct/volume/shared_loop.hpp"
#include "zarr/array.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/new_array.hpp"
#include "zarr/ome_zarr.hpp"

namespace cingulum::oct {
namespace {

using zarr::Json;

// One shard a tile, inner chunks of about 1 MiB.
zarr::NewArray mosaic_array(const TileGrid& grid) {
  zarr::NewArray wanted;
  wanted.shape = {grid.tile[0], grid.rows * grid.tile[1], grid.columns * grid.tile[2]};
  wanted.type = element_type_of<float>();
  wanted.dimension_names = {"z", "y", "x"};
  const std::size_t plane_bytes = 4 * grid.tile[1] * grid.tile[2];
  const std::size_t planes = std::clamp<std::size_t>((std::size_t{1} << 20U) / plane_bytes, 1, grid.tile[0]);
  wanted.chunk_shape = {planes, grid.tile[1], grid.tile[2]};
  wanted.shard_shape = {(grid.tile[0] + planes - 1) / planes * planes, grid.tile[1], grid.tile[2]};
  return wanted;
}

}  // namespace

std::string TileGrid::name_of(std::size_t tile_number) const {
  return fmt::format("tile row {}, column {} of slice {}", tile_number / columns, tile_number % columns, slice);
}

Json tile_grid_json(const TileGrid& grid) {
  Json tiles = Json::array();
  for (const GridTile& tile : grid.tiles) tiles.push_back({{"stage_px", tile.stage_px}, {"missing", tile.missing}});
  return {{"slice", grid.slice},
          {"tile", grid.tile},
          {"grid", {grid.rows, grid.columns}},
          {"origin_mm", grid.origin_mm},
          {"stage_z_mm", grid.stage_z_mm},
          {"focus_plane", grid.focus_plane},
          {"tiles", std::move(tiles)}};
}

Result<TileGrid> tile_grid_of(const Json& attributes, const std::array<std::uint64_t, 3>& shape) {
  const auto found = attributes.find("tile_grid");
  if (found == attributes.end()) {
    return fail(ErrorKind::invalid_argument, "the image says nothing of tiles; `cingulum oct grid` makes mosaic grids");
  }
  TileGrid grid;
  try {
    const Json& json = *found;
    json.at("slice").get_to(grid.slice);
    json.at("tile").get_to(grid.tile);
    json.at("grid").at(0).get_to(grid.rows);
    json.at("grid").at(1).get_to(grid.columns);
    json.at("origin_mm").get_to(grid.origin_mm);
    json.at("stage_z_mm").get_to(grid.stage_z_mm);
    json.at("focus_plane").get_to(grid.focus_plane);
    for (const Json& tile : json.at("tiles")) {
      GridTile one;
      tile.at("stage_px").get_to(one.stage_px);
      tile.at("missing").get_to(one.missing);
      grid.tiles.push_back(one);
    }
  } catch (const Json::exception& error) {
    return fail(ErrorKind::corrupt, "attribute cingulum.tile_grid: {}", error.what());
  }
  const std::array<std::uint64_t, 3> expected = {grid.tile[0], grid.rows * grid.tile[1], grid.columns * grid.tile[2]};
  if (expected != shape || grid.tiles.size() != grid.count() || grid.count() == 0) {
    return fail(ErrorKind::corrupt,
                "attribute cingulum.tile_grid: {} x {} tiles of {} x {} x {} are not an image of {} x {} x {}",
                grid.rows, grid.columns, grid.tile[0], grid.tile[1], grid.tile[2], shape[0], shape[1], shape[2]);
  }
  return grid;
}

Result<TileGrid> grid_of_slice(const TileSet& set, std::size_t slice) {
  TileGrid grid;
  grid.slice = slice;
  grid.tile = set.shape;
  grid.focus_plane = set.focus_plane;
  std::vector<const TileRecord*> members;
  std::array<std::size_t, 2> low = {SIZE_MAX, SIZE_MAX};
  std::array<std::size_t, 2> high = {0, 0};
  std::array<double, 2> origin = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (const TileRecord& tile : set.tiles) {
    if (tile.slice != slice) continue;
    members.push_back(&tile);
    low = {std::min(low[0], tile.row), std::min(low[1], tile.column)};
    high = {std::max(high[0], tile.row), std::max(high[1], tile.column)};
    for (std::size_t d = 0; d < 2; ++d) origin[d] = std::min(origin[d], tile.stage_mm[d + 1]);
  }
  if (members.empty()) return fail(ErrorKind::not_found, "slice {} has no tile", slice);
  grid.rows = high[0] - low[0] + 1;
  grid.columns = high[1] - low[1] + 1;
  grid.origin_mm = origin;
  grid.tiles.assign(grid.count(), {.stage_px = {0, 0}, .missing = true});
  double stage_z = 0;
  // Positions along an axis follow the index along it: sums for the line through them, by which holes get a place.
  struct Line {
    double n = 0, index = 0, place = 0, squares = 0, product = 0;
    [[nodiscard]] double at(double i) const {
      const double spread = n * squares - index * index;
      const double slope = spread > 0 ? (n * product - index * place) / spread : 0;
      return place / n + slope * (i - index / n);
    }
  };
  std::array<Line, 2> lines;
  for (const TileRecord* tile : members) {
    const std::array<std::size_t, 2> at = {tile->row - low[0], tile->column - low[1]};
    GridTile& one = grid.tiles[at[0] * grid.columns + at[1]];
    one.missing = false;
    for (std::size_t d = 0; d < 2; ++d) {
      one.stage_px[d] = (tile->stage_mm[d + 1] - origin[d]) * 1000.0 / set.voxel_um[d + 1];
      const double index = static_cast<double>(at[d]);
      lines[d].n += 1;
      lines[d].index += index;
      lines[d].place += one.stage_px[d];
      lines[d].squares += index * index;
      lines[d].product += index * one.stage_px[d];
    }
    stage_z += tile->stage_mm[0];
  }
  grid.stage_z_mm = stage_z / static_cast<double>(members.size());
  for (std::size_t t = 0; t < grid.count(); ++t) {
    if (!grid.tiles[t].missing) continue;
    grid.tiles[t].stage_px = {lines[0].at(static_cast<double>(t / grid.columns)),
                              lines[1].at(static_cast<double>(t % grid.columns))};
  }
  return grid;
}

Result<MosaicReport> write_mosaic(const std::filesystem::path& path, const TileSet& set, const TileGrid& grid,
                                  const WriteOptions& write, const MosaicOptions& options) {
  return catch_out_of_memory([&]() -> Result<MosaicReport> {
    MosaicReport report;
    CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(mosaic_array(grid)));
    const int workers = options.pool != nullptr ? options.pool->threads() : 1;
    const std::uint64_t tile_bytes =
        std::uint64_t{4} * set.shape[0] * set.shape[1] * (set.shape[2] + set.extra_lines) * set.repeats;
    CGL_TRY(check_host_memory(fmt::format("writing {}", path.native()),
                              4 * tile_bytes * static_cast<std::uint64_t>(workers)));
    WriteOptions writing = write;
    writing.expected_bytes = metadata.bytes();
    CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> output, zarr::new_hierarchy(path, writing));
    CGL_TRY(zarr::write_array_metadata("0", metadata, *output));
    const zarr::Array array = zarr::Array::describe(nullptr, "0", metadata);
    std::vector<const TileRecord*> members;
    std::size_t first_row = SIZE_MAX, first_column = SIZE_MAX;
    for (const TileRecord& tile : set.tiles) {
      if (tile.slice != grid.slice) continue;
      members.push_back(&tile);
      first_row = std::min(first_row, tile.row);
      first_column = std::min(first_column, tile.column);
    }
    std::vector<std::uint64_t> replaced(members.size(), 0);
    Progress progress(fmt::format("slice {}", grid.slice), members.size(), "tiles", options.run.progress);
    FirstFailure failure;
    const auto write_tile = [&](std::size_t number) -> Status {
      CGL_TRY(options.run.cancel.check());
      const TileRecord& tile = *members[number];
      CGL_TRY_ASSIGN(HostVolume voxels, read_tile(set, tile, replaced[number], options.run.cancel));
      if (set.extra_lines > 0) voxels = without_band(voxels, set.extra_lines, options.last_line);
      const zarr::Region region{{0, (tile.row - first_row) * grid.tile[1], (tile.column - first_column) * grid.tile[2]},
                                {grid.tile[0], grid.tile[1], grid.tile[2]}};
      const auto written = zarr::write_region(array, *output, region, std::as_bytes(std::span(voxels.values)));
      if (!written) return tl::make_unexpected(written.error());
      progress.advance();
      return {};
    };
    for_each_index(options.pool, members.size(),
                   [&](std::size_t i) { failure.note(i, catch_out_of_memory([&] { return write_tile(i); })); });
    CGL_TRY(failure.take());
    progress.finish();
    for (const std::uint64_t count : replaced) report.replaced_values += count;
    report.missing_tiles = grid.count() - members.size();
    zarr::OmeImage image;
    zarr::OmeMultiscale multiscale;
    multiscale.name = fmt::format("mosaic grid of slice {}", grid.slice);
    for (const char* axis : {"z", "y", "x"}) multiscale.axes.push_back({axis, "space", "micrometer"});
    multiscale.levels = {{.path = "0", .scale = {set.voxel_um.begin(), set.voxel_um.end()}, .translation = {0, 0, 0}}};
    image.multiscales = {std::move(multiscale)};
    image.others["cingulum"] = {{"command", "oct grid"}, {"tile_grid", tile_grid_json(grid)}};
    CGL_TRY_ASSIGN(const Json group, zarr::ome_attributes(image, zarr::OmeVersion::v0_5, path.native()));
    CGL_TRY(zarr::write_group("", 3, group, *output));
    CGL_TRY(output->commit());
    return report;
  });
}

HostVolume cut_tile(const HostVolume& mosaic, const TileGrid& grid, std::size_t tile_number) {
  HostVolume tile(grid.tile[0], grid.tile[1], grid.tile[2]);
  const std::size_t row = tile_number / grid.columns * grid.tile[1];
  const std::size_t column = tile_number % grid.columns * grid.tile[2];
  for (std::size_t z = 0; z < tile.planes; ++z) {
    for (std::size_t r = 0; r < tile.rows; ++r) {
      const float* const from = mosaic.values.data() + mosaic.index(z, row + r, column);
      std::copy(from, from + tile.columns, &tile.at(z, r, 0));
    }
  }
  return tile;
}

}  // namespace cingulum::oct
