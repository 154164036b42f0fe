// `cingulum oct simulate`.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "oct/simulate/simulated_files.hpp"
#include "oct/simulate/simulation.hpp"
#include "oct/simulate/tile_simulator.hpp"
#include "runs/oct/oct_devices.hpp"

namespace cingulum {
namespace {

Result<std::array<double, 2>> parse_two(const char* option, const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma != std::string::npos) {
    const auto first = parse_real(trim(std::string_view(text).substr(0, comma)));
    const auto second = parse_real(trim(std::string_view(text).substr(comma + 1)));
    if (first && second) return std::array{*first, *second};
  }
  return fail(ErrorKind::invalid_argument, "--{} '{}': accepted are two numbers with a comma between", option, text);
}

Result<oct::SimulationPlan> simulation_of(const ParsedArguments& arguments, std::uint64_t seed) {
  oct::SimulationPlan plan;
  plan.seed = seed;
  CGL_TRY_ASSIGN(const auto grid, parse_counts("grid", arguments.text("grid"), 2));
  CGL_TRY_ASSIGN(const auto tile, parse_counts("tile", arguments.text("tile"), 3));
  plan.grid_rows = grid[0];
  plan.grid_columns = grid[1];
  plan.tile_planes = tile[0];
  plan.tile_rows = tile[1];
  plan.tile_columns = tile[2];
  plan.overlap = arguments.real("overlap");
  plan.surface_plane = arguments.real("surface");
  plan.curvature_planes = arguments.real("curvature");
  CGL_TRY_ASSIGN(const auto tilt, parse_two("tilt", arguments.text("tilt")));
  plan.tilt_row_planes = tilt[0];
  plan.tilt_column_planes = tilt[1];
  plan.attenuation = arguments.real("attenuation");
  plan.speckle_shape = static_cast<std::uint32_t>(std::min<std::int64_t>(arguments.integer("speckle"), 1 << 20));
  plan.flat_field = arguments.real("flat-field");
  if (arguments.given("axial-profile")) {
    CGL_TRY_ASSIGN(const auto profile, parse_two("axial-profile", arguments.text("axial-profile")));
    plan.focus_plane = profile[0];
    plan.rayleigh_planes = profile[1];
  }
  plan.noise_floor = arguments.real("noise-floor");
  plan.tissue_radius = arguments.real("tissue-radius");
  plan.depth_jitter_planes = arguments.real("depth-jitter");
  plan.texture_strength = arguments.real("texture");
  plan.galvo_lines = static_cast<std::size_t>(arguments.integer("galvo-lines"));
  plan.motor_jitter_px = arguments.real("motor-jitter");
  plan.motor_angle_deg = arguments.real("motor-angle");
  plan.motor_scale = arguments.real("motor-scale");
  for (const std::string& text : arguments.texts("missing")) {
    CGL_TRY_ASSIGN(const auto ids, parse_counts("missing", text, 3));
    plan.missing.push_back({ids[0], ids[1], ids[2]});
  }
  plan.slices = static_cast<std::size_t>(arguments.integer("slices"));
  plan.interval_planes = static_cast<std::size_t>(arguments.integer("interval"));
  CGL_TRY_ASSIGN(const auto gains, parse_two("slice-gains", arguments.text("slice-gains")));
  plan.slice_gain_low = gains[0];
  plan.slice_gain_high = gains[1];
  plan.slice_rotation_deg = arguments.real("slice-rotation");
  plan.slice_shift_px = arguments.real("slice-shift");
  plan.motor_shift_px = arguments.real("motor-shift");
  if (arguments.given("axial-step")) plan.axial_step_um = arguments.real("axial-step");
  plan.lateral_step_um = arguments.real("lateral-step");
  return plan;
}

}  // namespace

Status run_oct_simulate(const ParsedArguments& arguments, VerbContext& context) {
  if (!arguments.texts("paths").empty()) {
    return fail(ErrorKind::invalid_argument, "cingulum oct simulate takes no input, '{}' given",
                arguments.texts("paths").front());
  }
  CGL_TRY_ASSIGN(const std::filesystem::path output, oct_output(arguments));
  CGL_TRY_ASSIGN(const oct::SimulationPlan plan, simulation_of(arguments, context.common().seed));
  CGL_TRY_ASSIGN(const oct::SimulatedScene scene, oct::make_scene(plan));
  oct::SimulatedFilesOptions options;
  options.layout = arguments.text("layout") == "table" ? oct::SimulatedLayout::table : oct::SimulatedLayout::raw;
  options.files_per_tile = static_cast<std::size_t>(arguments.integer("files-per-tile"));
  options.sample_volume = arguments.flag("sample");
  CGL_TRY_ASSIGN(options.pool, context.pool());
  options.run.cancel = context.cancel();
  options.run.progress = context.progress_options();
  CGL_TRY_ASSIGN(const OctDevices devices, open_oct_devices(context.common().devices, context));
  std::vector<std::unique_ptr<oct::TileSimulator>> simulators;
  for (Device* const device : devices.devices) {
    CGL_TRY_ASSIGN(auto simulator, oct::TileSimulator::create(*device));
    options.simulators.push_back(simulator.get());
    simulators.push_back(std::move(simulator));
  }
  CGL_TRY_ASSIGN(const oct::SimulatedFiles files,
                 oct::write_simulation(output, scene, context.write_options(), options));
  if (context.common().json) {
    const nlohmann::ordered_json json = {
        {"output", output.native()}, {"tiles", files.tiles}, {"bytes", files.bytes}, {"devices", devices.names()}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {} tiles, {}\n", output.native(), files.tiles, format_bytes(files.bytes));
  return {};
}

}  // namespace cingulum
