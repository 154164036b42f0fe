// `cingulum oct curvature`, `interface`, `aip`, `resample` and `overlap`: stages whose voxels are computed on the
// device of --device, with the same bits on each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.hpp"
#include "cli/oct_actions.hpp"
#include "cli/oct_voxel_stage.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "report/oct_report.hpp"
#include "report/png.hpp"
#include "runs/oct/oct_options.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using VoxelsJson = nlohmann::ordered_json;

void put_tile(const oct::HostVolume& tile, std::size_t top, std::size_t left, oct::HostVolume& mosaic) {
  for (std::size_t z = 0; z < tile.planes; ++z) {
    for (std::size_t r = 0; r < tile.rows; ++r) {
      std::copy_n(&tile.values[tile.index(z, r, 0)], tile.columns, &mosaic.values[mosaic.index(z, top + r, left)]);
    }
  }
}

// Every tile by itself, so that overlaps stay what they are; the grid follows.
Result<oct::HostVolume> resize_mosaic(VoxelStage& stage, const oct::HostVolume& mosaic,
                                      const std::array<double, 3>& scale, oct::TileGrid& grid,
                                      const oct::ResizeOptions& options) {
  const oct::VolumeShape tile =
      oct::rescaled_shape({static_cast<std::uint32_t>(grid.tile[0]), static_cast<std::uint32_t>(grid.tile[1]),
                           static_cast<std::uint32_t>(grid.tile[2])},
                          scale);
  oct::HostVolume result(tile.z, grid.rows * tile.y, grid.columns * tile.x);
  for (std::size_t t = 0; t < grid.count(); ++t) {
    if (grid.tiles[t].missing) continue;
    CGL_TRY_ASSIGN(const oct::HostVolume small, stage.resize(oct::cut_tile(mosaic, grid, t), tile, options));
    put_tile(small, t / grid.columns * tile.y, t % grid.columns * tile.x, result);
  }
  for (oct::GridTile& place : grid.tiles) {
    place.stage_px[0] *= static_cast<double>(tile.y) / static_cast<double>(grid.tile[1]);
    place.stage_px[1] *= static_cast<double>(tile.x) / static_cast<double>(grid.tile[2]);
  }
  grid.focus_plane *= static_cast<double>(tile.z) / static_cast<double>(grid.tile[0]);
  grid.tile = {tile.z, tile.y, tile.x};
  return result;
}

}  // namespace

Status run_oct_curvature(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.empty()) return fail(ErrorKind::invalid_argument, "cingulum oct curvature: name a mosaic grid");
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(const auto stage, VoxelStage::open(context));
  oct::InterfaceOptions options = interface_options(oct_request(arguments));
  options.sub_voxel = true;
  std::vector<oct::HostImage> interfaces;
  std::optional<OctMosaic> first;
  for (const std::string& path : paths) {
    CGL_TRY_ASSIGN(OctMosaic mosaic, read_oct_mosaic(path, arguments, context));
    for (std::size_t t = 0; t < mosaic.grid.count(); ++t) {
      if (mosaic.grid.tiles[t].missing) continue;
      CGL_TRY(context.cancel().check());
      CGL_TRY_ASSIGN(oct::HostImage map,
                     stage->find_interface(oct::cut_tile(mosaic.file.volume, mosaic.grid, t), options));
      interfaces.push_back(std::move(map));
    }
    if (!first) first = std::move(mosaic);
  }
  oct::HostImage curvature;
  if (oct_model(arguments) == "basic") {
    CGL_TRY_ASSIGN(curvature, oct::fit_curvature_basic(interfaces, first->grid.tile[0]));
  } else {
    CGL_TRY_ASSIGN(curvature, oct::fit_curvature(interfaces));
  }
  oct::HostVolume& volume = first->file.volume;
  const oct::TileGrid& grid = first->grid;
  for (std::size_t t = 0; t < grid.count(); ++t) {
    if (grid.tiles[t].missing) continue;
    CGL_TRY(context.cancel().check());
    CGL_TRY_ASSIGN(const oct::HostVolume flat, stage->roll(oct::cut_tile(volume, grid, t), curvature));
    put_tile(flat, t / grid.columns * grid.tile[1], t % grid.columns * grid.tile[2], volume);
  }
  const auto [low, high] = std::minmax_element(curvature.values.begin(), curvature.values.end());
  const VoxelsJson about = {{"tiles", interfaces.size()}, {"model", oct_model(arguments)},
                            {"smallest_planes", *low},    {"largest_planes", *high},
                            {"rows", curvature.rows},     {"planes", curvature.values}};
  const std::string line =
      fmt::format("curvature from {:.2f} to {:.2f} planes by {} tiles", *low, *high, interfaces.size());
  return finish_oct_stage(output, first->file, about, line, arguments, context);
}

Status run_oct_interface(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(const oct::VolumeFile file, read_oct_volume(input, arguments, context));
  CGL_TRY_ASSIGN(const auto stage, VoxelStage::open(context));
  oct::InterfaceOptions options = interface_options(oct_request(arguments));
  options.sub_voxel = arguments.flag("sub-voxel");
  CGL_TRY_ASSIGN(const oct::HostImage map, stage->find_interface(file.volume, options));
  oct::HostVolume planes(1, map.rows, map.columns);
  std::transform(map.values.begin(), map.values.end(), planes.values.begin(),
                 [](double value) { return static_cast<float>(value); });
  const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
  const VoxelsJson about = {
      {"smallest_plane", *low}, {"largest_plane", *high}, {"box_xy", options.box_xy}, {"sigma_z", options.sigma_z}};
  return finish_oct_stage(output, {std::move(planes), file.voxel_um}, about,
                          fmt::format("interface from plane {:g} to {:g}", *low, *high), arguments, context);
}

Status run_oct_aip(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(const oct::VolumeFile file, read_oct_volume(input, arguments, context));
  CGL_TRY_ASSIGN(const auto stage, VoxelStage::open(context));
  CGL_TRY_ASSIGN(oct::HostVolume mean, stage->mean_over_planes(file.volume));
  const VoxelsJson about = {{"planes", file.volume.planes}};
  const std::string line = fmt::format("mean of {} planes", file.volume.planes);
  if (output.extension() == ".png") {
    CGL_TRY_ASSIGN(const std::vector<std::byte> png,
                   encode_png(grey_picture({mean.values.begin(), mean.values.end()}, mean.columns, mean.rows)));
    CGL_TRY(write_file_atomically(output, png, context.write_options()));
    return print_oct_stage(about, output, line, context);
  }
  return finish_oct_stage(output, {std::move(mean), file.voxel_um}, about, line, arguments, context);
}

Status run_oct_resample(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(input, arguments, context));
  CGL_TRY_ASSIGN(const auto stage, VoxelStage::open(context));
  constexpr double default_resolution_um = 10;
  const double target = arguments.given("resolution") ? arguments.real("resolution") : default_resolution_um;
  oct::ResizeOptions options;
  if (arguments.given("compat")) options.alignment = oct::Alignment::corner;
  std::array<double, 3> scale{};
  for (std::size_t d = 0; d < 3; ++d) scale[d] = file.voxel_um[d] / target;
  const std::array<std::size_t, 3> before = {file.volume.planes, file.volume.rows, file.volume.columns};
  oct::HostVolume made;
  if (file.attributes.contains("tile_grid")) {
    CGL_TRY_ASSIGN(oct::TileGrid grid,
                   add_file_context(oct::tile_grid_of(file.attributes, {before[0], before[1], before[2]}), "reading",
                                    input.native()));
    CGL_TRY_ASSIGN(made, resize_mosaic(*stage, file.volume, scale, grid, options));
    file.attributes["tile_grid"] = oct::tile_grid_json(grid);
  } else {
    const oct::VolumeShape shape =
        oct::rescaled_shape({static_cast<std::uint32_t>(before[0]), static_cast<std::uint32_t>(before[1]),
                             static_cast<std::uint32_t>(before[2])},
                            scale);
    CGL_TRY_ASSIGN(made, stage->resize(file.volume, shape, options));
  }
  // What the voxels truly are: sizes are whole, so they are not exactly what was asked for.
  const std::array<std::size_t, 3> after = {made.planes, made.rows, made.columns};
  oct::VoxelSize voxel_um = file.voxel_um;
  for (std::size_t d = 0; d < 3; ++d) {
    voxel_um[d] = file.voxel_um[d] * static_cast<double>(before[d]) / static_cast<double>(after[d]);
  }
  const VoxelsJson about = {{"resolution_um", target}, {"voxel_um", voxel_um}, {"shape", after}};
  return finish_oct_stage(output, {std::move(made), voxel_um, std::move(file.attributes)}, about,
                          fmt::format("{} x {} x {} voxels", after[0], after[1], after[2]), arguments, context);
}

Status run_oct_overlap(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.size() != 2) {
    return fail(ErrorKind::invalid_argument, "cingulum oct overlap takes two volumes, fixed and moving, {} given",
                paths.size());
  }
  if (!arguments.given("slicing-interval")) {
    return fail(ErrorKind::invalid_argument, "cingulum oct overlap: --slicing-interval says what is expected");
  }
  CGL_TRY_ASSIGN(const oct::VolumeFile fixed, read_oct_volume(paths[0], arguments, context));
  CGL_TRY_ASSIGN(const oct::VolumeFile moving, read_oct_volume(paths[1], arguments, context));
  if (fixed.volume.rows != moving.volume.rows || fixed.volume.columns != moving.volume.columns) {
    return fail_file(paths[1], ErrorKind::corrupt, "{} has planes of {} x {} pixels, {} of {} x {}", paths[1],
                     moving.volume.rows, moving.volume.columns, paths[0], fixed.volume.rows, fixed.volume.columns);
  }
  const auto planes = static_cast<std::int64_t>(std::min(fixed.volume.planes, moving.volume.planes));
  const auto in_planes = [&](double mm) { return static_cast<std::int64_t>(1000.0 * mm / fixed.voxel_um[0]); };
  oct::OverlapSearch search;
  search.expected = planes - in_planes(arguments.real("slicing-interval"));
  const std::int64_t reach = in_planes(arguments.real("search-range"));
  search.lowest = std::max<std::int64_t>(1, search.expected - reach);
  search.highest = std::min(planes, search.expected + reach);
  CGL_TRY_ASSIGN(const auto stage, VoxelStage::open(context));
  CGL_TRY_ASSIGN(const oct::OverlapFound found, stage->find_overlap(fixed.volume, moving.volume, search));
  if (context.common().json) {
    context.print(json_text({{"overlap_planes", found.planes},
                             {"correlation", found.correlation},
                             {"expected_planes", search.expected},
                             {"first_of_correlations", search.lowest},
                             {"correlations", found.correlations},
                             {"device", stage->device()}}));
    return {};
  }
  context.print_format("{} planes, correlation {:.3f} (expected {})\n", found.planes, found.correlation,
                       search.expected);
  return {};
}

}  // namespace cingulum
