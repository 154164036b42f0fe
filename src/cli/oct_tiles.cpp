// `cingulum oct grid` and `cingulum oct stitch`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "oct/placement/blend.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "runs/oct/oct_facts.hpp"
#include "runs/oct/oct_options.hpp"
#include "runs/oct/oct_tiles.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using TilesJson = nlohmann::ordered_json;

}  // namespace

Status run_oct_grid(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  OctRequest request = oct_request(arguments);
  request.tiles = input.string();
  CGL_TRY_ASSIGN(const oct::TileSet set, open_oct_tiles(request));
  std::vector<std::size_t> slices = set.slices();
  if (arguments.given("slice")) {
    const auto wanted = static_cast<std::size_t>(arguments.integer("slice"));
    if (std::find(slices.begin(), slices.end(), wanted) == slices.end()) {
      return fail(ErrorKind::not_found, "--slice {}: {} has slices {} to {}", wanted, input.native(), slices.front(),
                  slices.back());
    }
    slices = {wanted};
  }
  oct::MosaicOptions mosaic;
  CGL_TRY_ASSIGN(mosaic.pool, context.pool());
  mosaic.run.cancel = context.cancel();
  mosaic.run.progress = context.progress_options();
  TilesJson galvo;
  CGL_TRY_ASSIGN(mosaic.last_line, last_good_line(set, request, context, galvo));
  std::error_code error;
  fs::create_directories(output, error);
  if (error) return fail_file(output.native(), ErrorKind::io, "making {}: {}", output.native(), error.message());
  TilesJson written = TilesJson::array();
  for (const std::size_t slice : slices) {
    CGL_TRY_ASSIGN(const oct::TileGrid grid, oct::grid_of_slice(set, slice));
    const fs::path path = output / fmt::format("mosaic_grid_3d_z{:02}.ome.zarr", slice);
    CGL_TRY_ASSIGN(const oct::MosaicReport report, oct::write_mosaic(path, set, grid, context.write_options(), mosaic));
    if (report.replaced_values > 0) {
      log_warning("slice {}: {} values were not finite and count as 0", slice, format_count(report.replaced_values));
    }
    written.push_back({{"slice", slice},
                       {"file", path.native()},
                       {"grid", {grid.rows, grid.columns}},
                       {"missing_tiles", report.missing_tiles},
                       {"replaced_values", report.replaced_values}});
  }
  std::vector<oct::SliceShift> shifts = oct::motor_shifts(set);
  const std::size_t spikes = oct::replace_spikes(shifts);
  if (spikes > 0) log_warning("{} of {} shifts of the stage were spikes and were replaced", spikes, shifts.size());
  CGL_TRY(
      write_file_atomically(output / "shifts_xy.csv", oct::shifts_csv(shifts, set.voxel_um), context.write_options()));
  if (context.common().json) {
    const TilesJson json = {{"input", input.native()},  {"tiles", set.tiles.size()}, {"tile", set.shape},
                            {"voxel_um", set.voxel_um}, {"missing", set.missing},    {"galvo", galvo},
                            {"spikes", spikes},         {"mosaics", written}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {} mosaic grid{} of tiles of {} voxels\n", output.native(), slices.size(),
                       slices.size() == 1 ? "" : "s", fmt::join(set.shape, " x "));
  return {};
}

Status run_oct_stitch(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(const OctMosaic mosaic, read_oct_mosaic(input, arguments, context));
  const oct::HostVolume& volume = mosaic.file.volume;
  const oct::TileGrid& grid = mosaic.grid;
  oct::PlacementOptions options = placement_options(oct_request(arguments));
  CGL_TRY_ASSIGN(options.pool, context.pool());
  std::vector<oct::HostImage> projections(grid.count());
  options.pool->parallel_for(grid.count(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      if (!grid.tiles[t].missing) projections[t] = oct::log_projection(oct::cut_tile(volume, grid, t));
    }
  });
  CGL_TRY_ASSIGN(const oct::Placement placement, oct::place_tiles(grid, projections, options));
  warn_of_placement(grid, placement);
  CGL_TRY_ASSIGN(const oct::Blending blending, oct::parse_blending(arguments.text("blending")));
  CGL_TRY_ASSIGN(const oct::BlendedSlice slice,
                 oct::blend_tiles(volume, grid, placement.places_px, blending, options.pool));
  TilesJson about = placement_json(grid, placement);
  about["uncovered_pixels"] = slice.uncovered_pixels;
  about["blending"] = arguments.text("blending");
  // Where the first pixel of the slice lies for the stage, by which stacking places slices.
  TilesJson attributes = {{"slice",
                           {{"number", grid.slice},
                            {"origin_mm", grid.origin_mm},
                            {"stage_z_mm", grid.stage_z_mm},
                            {"focus_plane", grid.focus_plane}}}};
  CGL_TRY(write_oct_volume(stage_output(output, std::move(attributes), about, arguments), slice.volume,
                           mosaic.file.voxel_um, oct_request(arguments), context));
  if (context.common().json) {
    about["output"] = output.native();
    about["shape"] = {slice.volume.planes, slice.volume.rows, slice.volume.columns};
    context.print(json_text(about));
    return {};
  }
  context.print_format("{}: {} x {} x {} voxels, {} of {} links used, residual {:.2f} px, {} island{}\n",
                       output.native(), slice.volume.planes, slice.volume.rows, slice.volume.columns,
                       placement.links.size() - placement.rejected, placement.links.size(), placement.residual_rms_px,
                       placement.islands.size(), placement.islands.size() == 1 ? "" : "s");
  return {};
}

}  // namespace cingulum
