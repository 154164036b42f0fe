#include "runs/oct/oct_run.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/argument_name.hpp"
#include "base/atomic_file.hpp"
#include "base/disk_space.hpp"
#include "base/elapsed.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/tiles/tiles_ahead.hpp"
#include "runs/oct/oct_devices.hpp"
#include "runs/oct/oct_facts.hpp"
#include "runs/oct/oct_fields.hpp"
#include "runs/oct/oct_options.hpp"
#include "runs/oct/oct_output.hpp"
#include "runs/oct/oct_sidecar.hpp"
#include "runs/oct/oct_tiles.hpp"
#include "runs/wanted_devices.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A request with its defaults, whose tiles are there and whose volume may be written, and what it takes.
struct SettledRun {
  OctRequest request;
  fs::path output;
  oct::TileSet set;
  oct::ReconstructionOptions options;
  oct::RunNeeds needs;
};

Result<SettledRun> settle(OctRequest request, RunMachine& machine) {
  SettledRun run;
  std::string voxels;
  if (request.from.has()) {
    CGL_TRY_ASSIGN(RepeatedOctRun repeated, oct_request_of_sidecar(request.from.value(), request));
    request = std::move(repeated.request);
    voxels = std::move(repeated.voxels);
  }
  CGL_TRY(fill_in_defaults(oct_fields(), request));
  if (!request.tiles.has()) return fail_argument("tiles", "{} are missing: name a folder", argument_name("tiles"));
  if (!request.out.has()) {
    return fail_argument("out", "{} is missing: it names what is written", argument_name("out"));
  }
  run.output = request.out.value();
  if (!run.output.has_filename()) run.output = run.output.parent_path();
  CGL_TRY(check_volume_output(run.output, machine.write_options()));
  CGL_TRY_ASSIGN(run.set, open_oct_tiles(request));
  CGL_TRY_ASSIGN(run.options, reconstruction_options(request, machine));
  run.options.expected_voxels = std::move(voxels);
  CGL_TRY_ASSIGN(run.needs, oct::run_needs(run.set, run.options));
  run.request = std::move(request);
  return run;
}

// Refuses what does not fit, before the work.
Status check_needs(const SettledRun& run) {
  const oct::RunNeeds& needs = run.needs;
  // Coarser levels are a seventh, and the finest one lies beside them until they are made.
  const std::uint64_t levels = run.request.pyramid.value() == "1" ? 0 : needs.volume_bytes / 7 + needs.volume_bytes;
  const fs::path folder = run.output.has_parent_path() ? run.output.parent_path() : fs::path(".");
  CGL_TRY(check_space(FileLayer::system(), run.output.native(), folder.native(),
                      needs.work_bytes + needs.volume_bytes + levels));
  if (run.request.memory.has() && needs.memory_bytes > run.request.memory.value()) {
    return fail_argument("memory", "{} {}: {} of memory needed at least (a tile has {})", argument_name("memory"),
                         format_bytes(run.request.memory.value()), format_bytes(needs.memory_bytes),
                         format_bytes(needs.tile_bytes));
  }
  return oct::check_host_memory("cingulum oct run", needs.memory_bytes);
}

void log_slices(const oct::Reconstruction& made, const fs::path& work) {
  std::uint64_t replaced = 0, found = 0;
  for (const oct::SliceReport& slice : made.slices) {
    warn_of_placement(slice.grid, slice.placement);
    replaced += slice.replaced_values;
    found += slice.found ? 1 : 0;
  }
  if (replaced > 0) log_warning("{} values were not finite and count as 0", format_count(replaced));
  if (found > 0) log_info("{} of {} slices were found in {}", found, made.slices.size(), work.native());
}

// From tiles to slices in the folder `work`. The devices are gone when it comes back.
Result<oct::Reconstruction> make_slices(SettledRun& run, const fs::path& work, RunMachine& machine,
                                        std::vector<std::string>& device_names) {
  oct::InterfaceOptions interface = interface_options(run.request);
  interface.sub_voxel = true;
  std::optional<oct::TilesAhead> ahead(std::in_place, run.set);
  CGL_TRY_ASSIGN(const std::vector<std::string> names, wanted_device_names(run.request.device, machine));
  CGL_TRY_ASSIGN(const OctDevices devices, open_oct_devices(names, machine));
  device_names = devices.names();
  std::vector<std::unique_ptr<oct::TileStage>> stages;
  for (Device* const device : devices.devices) {
    CGL_TRY_ASSIGN(auto stage, oct::TileStage::create(*device, interface));
    run.options.stages.push_back(stage.get());
    stages.push_back(std::move(stage));
  }
  ahead.reset();
  auto made = oct::reconstruct(run.set, work, run.options);
  run.options.stages.clear();
  return made;
}

// From slices to the volume, box by box; answers what was found, which its sidecar has.
Result<Json> write_volume(const SettledRun& run, oct::Reconstruction& made, const Json& galvo, RunMachine& machine) {
  CGL_TRY_ASSIGN(const oct::VolumeReadOptions reading, volume_read_options(run.request, machine));
  const auto source = [&](std::size_t number, const oct::PlaneBox& box) {
    return oct::read_box(made.files[number], box, reading);
  };
  auto begun = std::chrono::steady_clock::now();
  const auto end_stage = [&](const char* name) {
    made.stage_seconds.emplace_back(name, seconds_since(begun));
    begun = std::chrono::steady_clock::now();
  };
  CGL_TRY(oct::find_gains(made.plan, source, run.options.stack, run.options.pool, run.needs.stacked_rows));
  end_stage("gains");
  Json found = reconstruction_json(run.set, made);
  if (!galvo.is_null()) found["galvo"] = galvo;
  const auto make = [&](const oct::PlaneBox& box, std::span<float> to) {
    return oct::stack_box(made.plan, source, box, to, run.options.pool, run.needs.stacked_rows);
  };
  OctOutput output;
  output.path = run.output;
  output.command = "oct run";
  output.provenance = oct_provenance(run.request, run.set, made.voxels);
  output.about = found;
  output.of_run = [&] {
    end_stage("stacking and writing");
    Json seconds = Json::object();
    for (const auto& [name, value] : made.stage_seconds) seconds[name] = value;
    std::error_code ignored;
    return Json{{"folder", fs::current_path(ignored).string()}, {"stage_seconds", std::move(seconds)}};
  };
  CGL_TRY(write_oct_boxes(std::move(output), {made.plan.planes, made.plan.rows, made.plan.columns}, make, made.voxel_um,
                          run.request, machine, run.needs.boxes_behind));
  return found;
}

}  // namespace

Json outcome_json(OctOutcome outcome) {
  Json json = std::move(outcome.found);
  json["output"] = outcome.volume.native();
  json["shape"] = outcome.shape;
  json["devices"] = std::move(outcome.devices);
  return json;
}

Result<OctOutcome> reconstruct(OctRequest request, RunMachine& machine) {
  CGL_TRY_ASSIGN(SettledRun run, settle(std::move(request), machine));
  CGL_TRY(check_needs(run));
  Json galvo;
  CGL_TRY_ASSIGN(run.options.last_line, last_good_line(run.set, run.request, machine, galvo));
  OctOutcome outcome;
  outcome.volume = run.output;
  fs::path work = run.output;
  work += ".work";
  CGL_TRY_ASSIGN(oct::Reconstruction made, make_slices(run, work, machine, outcome.devices));
  log_slices(made, work);
  CGL_TRY_ASSIGN(outcome.found, write_volume(run, made, galvo, machine));
  if (run.request.decisions.has()) {
    CGL_TRY(
        write_file_atomically(run.request.decisions.value(), oct::decisions_csv(made.plan), machine.write_options()));
  }
  if (!run.request.keep.value()) {
    std::error_code error;
    fs::remove_all(work, error);
    if (error) log_warning("{} is not removed: {}", work.native(), error.message());
  }
  outcome.shape = {made.plan.planes, made.plan.rows, made.plan.columns};
  outcome.slices = made.slices.size();
  outcome.tiles = run.set.tiles.size();
  return outcome;
}

Result<OctExplanation> explain_reconstruction(OctRequest request, RunMachine& machine) {
  CGL_TRY_ASSIGN(const SettledRun run, settle(std::move(request), machine));
  return OctExplanation{run.set.tiles.size(), run.set.slices().size(), run.needs};
}

}  // namespace cingulum
