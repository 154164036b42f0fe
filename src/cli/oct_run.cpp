// `cingulum oct run`: all stages from tiles to one volume.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>

#include "base/disk_space.hpp"
#include "base/elapsed.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "cli/oct_voxel_stage.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/tiles/tiles_ahead.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using RunJson = nlohmann::ordered_json;

RunJson image_json(const oct::HostImage& image) {
  if (image.values.empty()) return {};
  return {{"rows", image.rows}, {"columns", image.columns}, {"values", image.values}};
}

RunJson decision_json(const oct::RunDecision& decision) {
  return {{"subject", decision.subject}, {"choice", decision.choice}, {"reason", decision.reason}};
}

RunJson about_run(const oct::TileSet& set, const oct::Reconstruction& made) {
  RunJson slices = RunJson::array();
  for (const oct::SliceReport& slice : made.slices) {
    RunJson json = placement_json(slice.grid, slice.placement);
    json["grid"] = {slice.grid.rows, slice.grid.columns};
    RunJson missing = RunJson::array();
    for (std::size_t t = 0; t < slice.grid.count(); ++t) {
      if (slice.grid.tiles[t].missing) missing.push_back(slice.grid.name_of(t));
    }
    json["missing_tiles"] = std::move(missing);
    json["depths_planes"] = slice.depths;
    json["surface_plane"] = slice.surface_plane;
    json["first_plane"] = slice.first_plane;
    json["replaced_values"] = slice.replaced_values;
    json["uncovered_pixels"] = slice.uncovered_pixels;
    json["profile"] = slice.corrected.profile;
    json["noise_floor"] = slice.corrected.noise_floor;
    json["mean_attenuation_per_plane"] = slice.corrected.mean_attenuation;
    RunJson decisions = RunJson::array();
    for (const oct::RunDecision& one : slice.corrected.decisions) decisions.push_back(decision_json(one));
    json["decisions"] = std::move(decisions);
    slices.push_back(std::move(json));
  }
  RunJson registrations = RunJson::array();
  for (std::size_t i = 0; i < made.registrations.size(); ++i) {
    const auto& found = made.registrations[i];
    registrations.push_back(found ? registration_json(made.slices[i].grid.slice, made.slices[i + 1].grid.slice, *found)
                                  : RunJson());
  }
  RunJson decisions = RunJson::array();
  for (const oct::RunDecision& one : made.decisions) decisions.push_back(decision_json(one));
  return {{"tile", set.shape},
          {"tile_in_slice", made.tile},
          {"voxel_um", made.voxel_um},
          {"first_kept_plane", made.plan.first_plane},
          {"missing", set.missing},
          {"spikes", made.spikes},
          {"light", image_json(made.light)},
          {"curvature_planes", image_json(made.curvature)},
          {"decisions", std::move(decisions)},
          {"slices", std::move(slices)},
          {"registrations", std::move(registrations)},
          {"stack", decisions_json(made.plan)}};
}

Result<oct::ReconstructionOptions> run_options(const ParsedArguments& arguments, VerbContext& context) {
  oct::ReconstructionOptions options;
  CGL_TRY_ASSIGN(options.pool, context.pool());
  options.run.cancel = context.cancel();
  options.run.progress = context.progress_options();
  options.flat_field = !arguments.flag("no-flat-field");
  options.curvature = !arguments.flag("no-curvature");
  options.crop = !arguments.flag("no-crop");
  if (arguments.given("crop-depth")) options.crop_depth_um = arguments.real("crop-depth");
  if (arguments.given("resolution")) options.resolution_um = arguments.real("resolution");
  options.kept_tile_bytes = arguments.bytes("tile-memory");
  options.memory_bytes = arguments.given("memory") ? arguments.bytes("memory") : oct::free_host_memory();
  options.devices = context.common().devices.size();
  options.placement = placement_options(arguments);
  CGL_TRY_ASSIGN(options.blending, oct::parse_blending(arguments.text("blending")));
  options.corrections.axial_profile = !arguments.flag("no-profile");
  if (!arguments.flag("no-attenuation")) {
    CGL_TRY_ASSIGN(options.corrections.attenuation, attenuation_options(arguments, arguments.text("method")));
    // A finer map lets bright spots throw bright shadows, by which slices would be registered too deep.
    constexpr std::size_t attenuation_block_px = 64;
    if (!arguments.given("median") && !arguments.given("compat")) {
      options.corrections.attenuation->block_px = attenuation_block_px;
    }
  }
  options.corrections.normalise = arguments.flag("normalise-planes") || arguments.given("compat");
  options.basic = arguments.given("compat");
  options.registration = registration_options(arguments);
  options.search_range_mm = arguments.real("search-range");
  if (arguments.given("slicing-interval")) options.slicing_interval_mm = arguments.real("slicing-interval");
  options.stack = stack_options(arguments);
  return options;
}

// Says what the run would take.
void explain_run(const oct::TileSet& set, const oct::RunNeeds& needs, VerbContext& context) {
  const double in_tiles = static_cast<double>(needs.memory_bytes) / static_cast<double>(needs.tile_bytes);
  const std::uint64_t once = std::min<std::uint64_t>(set.tiles.size(), needs.kept_bytes / needs.tile_bytes);
  if (context.common().json) {
    context.print(json_text(RunJson{{"tiles", set.tiles.size()},
                                    {"slices", set.slices().size()},
                                    {"tile_bytes", needs.tile_bytes},
                                    {"tiles_of_slice", needs.tiles_of_slice},
                                    {"tiles_in_flight", needs.tiles_in_flight},
                                    {"slices_in_files", needs.slices_in_files},
                                    {"slice_planes_in_memory", needs.slice_planes},
                                    {"memory_bytes", needs.memory_bytes},
                                    {"memory_tiles", in_tiles},
                                    {"tiles_read_once", once},
                                    {"device_bytes", needs.device_bytes},
                                    {"comparing_device_bytes", needs.comparing_device_bytes},
                                    {"work_bytes", needs.work_bytes},
                                    {"volume_bytes", needs.volume_bytes}}));
    return;
  }
  context.print_format("{} tiles of {} in {} slices of at most {} tiles, {} read or worked at a time\n",
                       set.tiles.size(), format_bytes(needs.tile_bytes), set.slices().size(), needs.tiles_of_slice,
                       needs.tiles_in_flight);
  context.print_format("memory: {}, as much as {:.1f} tiles; {} of {} tiles are read once, the others twice\n",
                       format_bytes(needs.memory_bytes), in_tiles, once, set.tiles.size());
  if (needs.slices_in_files) {
    context.print_format("slices are made through temporary files, {} planes at a time\n", needs.slice_planes);
  } else {
    context.print("slices are made in memory\n");
  }
  context.print_format(
      "memory of each device: {} at least, and {} of the first GPU to compare tiles; tiles stay there while it has "
      "room "
      "for them\n",
      format_bytes(needs.device_bytes), format_bytes(needs.comparing_device_bytes));
  context.print_format("disk: {} for slices until the volume is written, {} for its finest level\n",
                       format_bytes(needs.work_bytes), format_bytes(needs.volume_bytes));
}

// Refuses what does not fit, before the work.
Status check_needs(const fs::path& output, const oct::RunNeeds& needs, const ParsedArguments& arguments) {
  // Coarser levels are a seventh, and the finest one lies beside them until they are made.
  const std::uint64_t levels = arguments.text("pyramid") == "1" ? 0 : needs.volume_bytes / 7 + needs.volume_bytes;
  const fs::path folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  CGL_TRY(check_space(FileLayer::system(), output.native(), folder.native(),
                      needs.work_bytes + needs.volume_bytes + levels));
  if (arguments.given("memory") && needs.memory_bytes > arguments.bytes("memory")) {
    return fail(ErrorKind::invalid_argument, "--memory {}: {} of memory needed at least (a tile has {})",
                format_bytes(arguments.bytes("memory")), format_bytes(needs.memory_bytes),
                format_bytes(needs.tile_bytes));
  }
  return oct::check_host_memory("cingulum oct run", needs.memory_bytes);
}

}  // namespace

Status run_oct_run(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
  CGL_TRY_ASSIGN(const oct::TileSet set, open_oct_tiles(input, arguments));
  CGL_TRY_ASSIGN(oct::ReconstructionOptions options, run_options(arguments, context));
  CGL_TRY_ASSIGN(const oct::RunNeeds needs, oct::run_needs(set, options));
  if (arguments.flag("explain")) {
    explain_run(set, needs, context);
    return {};
  }
  CGL_TRY(check_needs(output, needs, arguments));
  RunJson galvo;
  CGL_TRY_ASSIGN(options.last_line, last_good_line(set, input, arguments, context, galvo));
  oct::InterfaceOptions interface = interface_options(arguments);
  interface.sub_voxel = true;
  std::optional<oct::TilesAhead> ahead(std::in_place, set);
  CGL_TRY_ASSIGN(const OctDevices devices, open_oct_devices(context));
  std::vector<std::unique_ptr<oct::TileStage>> stages;
  for (Device* const device : devices.devices) {
    CGL_TRY_ASSIGN(auto stage, oct::TileStage::create(*device, interface));
    options.stages.push_back(stage.get());
    stages.push_back(std::move(stage));
  }
  ahead.reset();
  fs::path work = output;
  work += ".work";
  CGL_TRY_ASSIGN(oct::Reconstruction made, oct::reconstruct(set, work, options));
  std::uint64_t replaced = 0, found = 0;
  for (const oct::SliceReport& slice : made.slices) {
    say_of_placement(slice.grid, slice.placement);
    replaced += slice.replaced_values;
    found += slice.found ? 1 : 0;
  }
  if (replaced > 0) log_warning("{} values were not finite and count as 0", format_count(replaced));
  if (found > 0) log_info("{} of {} slices were found in {}", found, made.slices.size(), work.native());
  CGL_TRY_ASSIGN(const oct::VolumeReadOptions reading, oct_reading(arguments, context));
  const auto source = [&](std::size_t number, const oct::PlaneBox& box) {
    return oct::read_box(made.files[number], box, reading);
  };
  auto begun = std::chrono::steady_clock::now();
  const auto end_stage = [&](const char* name) {
    made.stage_seconds.emplace_back(name, seconds_since(begun));
    begun = std::chrono::steady_clock::now();
  };
  CGL_TRY(oct::find_gains(made.plan, source, options.stack, options.pool, needs.stacked_rows));
  end_stage("gains");
  RunJson about = about_run(set, made);
  if (!galvo.is_null()) about["galvo"] = std::move(galvo);
  const auto make = [&](const oct::PlaneBox& box, std::span<float> to) {
    return oct::stack_box(made.plan, source, box, to, options.pool, needs.stacked_rows);
  };
  const auto of_run = [&] {
    end_stage("stacking and writing");
    RunJson json = RunJson::object();
    for (const auto& [name, seconds] : made.stage_seconds) json[name] = seconds;
    return RunJson{{"stage_seconds", std::move(json)}};
  };
  const std::array<std::size_t, 3> shape = {made.plan.planes, made.plan.rows, made.plan.columns};
  CGL_TRY(write_oct_boxes(output, shape, make, made.voxel_um, about, arguments, context, of_run, needs.boxes_behind));
  if (arguments.given("decisions")) {
    CGL_TRY(write_file_atomically(arguments.text("decisions"), oct::decisions_csv(made.plan), context.write_options()));
  }
  if (!arguments.flag("keep")) {
    std::error_code error;
    fs::remove_all(work, error);
    if (error) log_warning("{} is not removed: {}", work.native(), error.message());
  }
  if (context.common().json) {
    RunJson json = about;
    json["output"] = output.native();
    json["shape"] = shape;
    json["devices"] = devices.names();
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {} slices of {} tiles, {} x {} x {} voxels\n", output.native(), made.slices.size(),
                       set.tiles.size(), made.plan.planes, made.plan.rows, made.plan.columns);
  return {};
}

}  // namespace cingulum
