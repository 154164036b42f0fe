#include "oct/run/slice_blend.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/first_failure.hpp"
#include "oct/volume/shared_loop.hpp"
#include "zarr/level_file.hpp"

namespace cingulum::oct {
namespace {

// Rolled, cropped, evened out, resampled: the voxels of a tile as they are blended.
Result<DeviceVolume> prepare(RunState& run, TileStage& stage, std::size_t s, std::size_t t, const ReadTile& read) {
  const SliceReport& slice = run.result.slices[s];
  DeviceVolume tile = run.tiles.take(s, t);
  if (tile.buffer == nullptr) {
    CGL_TRY_ASSIGN(tile, stage.order(read, run.set));
  }
  TileChange change;
  if (run.options.curvature) {
    change.curvature = &run.result.curvature;
    change.depth = slice.depths[t];
  }
  if (!run.result.light.values.empty()) change.light = &run.result.light;
  change.first_plane = slice.first_plane;
  change.planes = run.cropped_planes;
  change.shape = run.result.tile;
  return stage.make(std::move(tile), change);
}

// Planes of a tile from `first` on to their place in the mosaic.
void put_planes(std::span<const float> planes, std::size_t first, std::size_t t, const TileGrid& grid,
                HostVolume& mosaic) {
  const std::size_t rows = grid.tile[1], columns = grid.tile[2];
  const std::size_t top = t / grid.columns * rows, left = t % grid.columns * columns;
  for (std::size_t line = 0; line * columns < planes.size(); ++line) {
    std::copy_n(planes.data() + line * columns, columns,
                &mosaic.values[mosaic.index(first + line / rows, top + line % rows, left)]);
  }
}

}  // namespace

Result<HostVolume> blend_in_memory(RunState& run, std::size_t s, const TileGrid& grid, const TileBlend& blend) {
  const auto [planes, rows, columns] = grid.tile;
  // Blending looks at no tile that is missing.
  HostVolume mosaic = HostVolume::unset(planes, grid.rows * rows, grid.columns * columns);
  const auto take = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
    CGL_TRY_ASSIGN(const DeviceVolume tile, prepare(run, stage, s, t, read));
    return stage.take_planes(tile, run.options.pool, [&](std::size_t first, std::span<const float> planes_of_tile) {
      put_planes(planes_of_tile, first, t, grid, mosaic);
    });
  };
  CGL_TRY(run.tiles.for_each(grid, s, take));
  HostVolume volume = HostVolume::unset(planes, blend.rows(), blend.columns());
  blend.blend(mosaic, volume, run.options.pool);
  return volume;
}

Result<SlabVolume> blend_through_files(RunState& run, std::size_t s, const TileGrid& grid, const TileBlend& blend) {
  const auto [planes, rows, columns] = grid.tile;
  CGL_TRY_ASSIGN(const auto tiles, zarr::LevelFile::create(FileLayer::system(), run.path_of(s).native(),
                                                           {planes, grid.rows * rows, grid.columns * columns},
                                                           {planes, rows, columns}, element_type_of<float>()));
  const auto first_pixel = [&](std::size_t t) {
    return std::array{t / grid.columns * grid.tile[1], t % grid.columns * grid.tile[2]};
  };
  const auto take = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
    CGL_TRY_ASSIGN(const DeviceVolume made, prepare(run, stage, s, t, read));
    CGL_TRY_ASSIGN(const HostVolume tile, stage.copy_to_host(made, run.options.pool));
    const auto [row, column] = first_pixel(t);
    return tiles->write_tile(zarr::Shape{0, row, column}, std::as_bytes(std::span(tile.values)));
  };
  CGL_TRY(run.tiles.for_each(grid, s, take));
  CGL_TRY_ASSIGN(SlabVolume slice,
                 SlabVolume::in_file(run.path_of(s), {planes, blend.rows(), blend.columns()}, run.needs.slice_planes));
  const auto make_planes = [&](std::size_t first, HostVolume& slab) -> Status {
    HostVolume mosaic = HostVolume::unset(slab.planes, grid.rows * grid.tile[1], grid.columns * grid.tile[2]);
    FirstFailure failure;
    for_each_index(run.options.pool, grid.count(), [&](std::size_t t) {
      const auto read_part = [&]() -> Status {
        if (grid.tiles[t].missing) return {};
        CGL_TRY(run.check());
        HostVolume part(slab.planes, grid.tile[1], grid.tile[2]);
        const auto [row, column] = first_pixel(t);
        CGL_TRY(tiles->read({{first, row, column}, {part.planes, part.rows, part.columns}},
                            std::as_writable_bytes(std::span(part.values))));
        put_planes(part.values, 0, t, grid, mosaic);
        return {};
      };
      failure.note(t, catch_out_of_memory(read_part));
    });
    CGL_TRY(failure.take());
    blend.blend(mosaic, slab, run.options.pool);
    return {};
  };
  CGL_TRY(slice.make_slabs(make_planes));
  return slice;
}

}  // namespace cingulum::oct
