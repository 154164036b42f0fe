// `cingulum oct run`: all stages from tiles to one volume.
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "device/registry.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/tiles/galvo_band.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using RunJson = nlohmann::ordered_json;

// Voxel kernels on the device of --device: one tile at a time.
class TileKernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TileKernels>> open(VerbContext& context) {
    const std::vector<std::string>& names = context.common().devices;
    if (names.size() != 1) return fail(ErrorKind::invalid_argument, "--device: one device is accepted here");
    auto kernels = std::unique_ptr<TileKernels>(new TileKernels());
    CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
    options.wanted = names[0];
    CGL_TRY_ASSIGN(DeviceRegistry registry, DeviceRegistry::probe(options));
    kernels->registry_.emplace(std::move(registry));
    CGL_TRY_ASSIGN(Device* const device, kernels->registry_->select_one(names[0]));
    CGL_TRY_ASSIGN(kernels->kernels_, oct::OctKernels::create(*device));
    CGL_TRY_ASSIGN(kernels->queue_, device->create_queue());
    return kernels;
  }

  [[nodiscard]] std::string device() const { return kernels_->device().id(); }

  [[nodiscard]] Result<oct::HostImage> find_interface(const oct::HostVolume& tile) {
    const std::lock_guard lock(one_at_a_time_);
    CGL_TRY_ASSIGN(const oct::DeviceVolume volume, kernels_->upload(*queue_, shape_of(tile), tile.values));
    CGL_TRY_ASSIGN(const oct::DeviceVolume map, kernels_->find_interface(*queue_, volume, {.sub_voxel = true}));
    CGL_TRY_ASSIGN(const std::vector<float> values, kernels_->download(*queue_, map));
    oct::HostImage image(tile.rows, tile.columns);
    std::copy(values.begin(), values.end(), image.values.begin());
    return image;
  }

  [[nodiscard]] Status roll(oct::HostVolume& tile, const oct::HostImage& by) {
    const std::lock_guard lock(one_at_a_time_);
    const oct::VolumeShape shape = shape_of(tile);
    const std::vector<float> map(by.values.begin(), by.values.end());
    CGL_TRY_ASSIGN(const oct::DeviceVolume from, kernels_->upload(*queue_, shape, tile.values));
    CGL_TRY_ASSIGN(const oct::DeviceVolume lines, kernels_->upload(*queue_, {1, shape.y, shape.x}, map));
    CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate(shape));
    CGL_TRY(kernels_->roll_lines(*queue_, from, lines, to, {.circular = false}));
    CGL_TRY_ASSIGN(tile.values, kernels_->download(*queue_, to));
    return {};
  }

 private:
  TileKernels() = default;
  static oct::VolumeShape shape_of(const oct::HostVolume& tile) {
    return {static_cast<std::uint32_t>(tile.planes), static_cast<std::uint32_t>(tile.rows),
            static_cast<std::uint32_t>(tile.columns)};
  }

  std::optional<DeviceRegistry> registry_;  // outlives all below
  std::unique_ptr<oct::OctKernels> kernels_;
  std::unique_ptr<Queue> queue_;
  std::mutex one_at_a_time_;
};

RunJson about_run(const oct::Reconstruction& made) {
  RunJson slices = RunJson::array();
  for (const oct::SliceReport& slice : made.slices) {
    RunJson json = placement_json(slice.grid, slice.placement);
    json["replaced_values"] = slice.replaced_values;
    json["uncovered_pixels"] = slice.uncovered_pixels;
    slices.push_back(std::move(json));
  }
  RunJson registrations = RunJson::array();
  for (std::size_t i = 0; i < made.registrations.size(); ++i) {
    const auto& found = made.registrations[i];
    registrations.push_back(found ? registration_json(made.slices[i].grid.slice, made.slices[i + 1].grid.slice, *found)
                                  : RunJson());
  }
  RunJson json = {{"slices", std::move(slices)},
                  {"registrations", std::move(registrations)},
                  {"decisions", decisions_json(made.plan)}};
  if (!made.light.values.empty()) json["light"] = {{"rows", made.light.rows}, {"values", made.light.values}};
  if (!made.curvature.values.empty()) {
    json["curvature_planes"] = {{"rows", made.curvature.rows}, {"values", made.curvature.values}};
  }
  return json;
}

}  // namespace

Status run_oct_run(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY(check_output(output, context.write_options()));
  CGL_TRY_ASSIGN(const oct::TileSet set, open_oct_tiles(input, arguments));
  oct::ReconstructionOptions options;
  CGL_TRY_ASSIGN(options.pool, context.pool());
  options.run.cancel = context.cancel();
  options.run.progress = context.progress_options();
  RunJson galvo;
  CGL_TRY_ASSIGN(options.last_line, last_good_line(set, input, arguments, context, galvo));
  options.flat_field = !arguments.flag("no-flat-field");
  std::unique_ptr<TileKernels> kernels;
  if (arguments.flag("fix-curvature")) {
    CGL_TRY_ASSIGN(kernels, TileKernels::open(context));
    options.find_interface = [&](const oct::HostVolume& tile) { return kernels->find_interface(tile); };
    options.roll_lines = [&](oct::HostVolume& tile, const oct::HostImage& by) { return kernels->roll(tile, by); };
  }
  options.placement = placement_options(arguments);
  CGL_TRY_ASSIGN(options.blending, oct::parse_blending(arguments.text("blending")));
  options.axial_profile = arguments.flag("fix-profile");
  if (arguments.given("compensate")) {
    CGL_TRY_ASSIGN(options.attenuation, attenuation_options(arguments, arguments.text("compensate")));
  }
  options.normalise = arguments.flag("normalise-planes");
  options.registration = registration_options(arguments);
  options.search_range_mm = arguments.real("search-range");
  if (arguments.given("slicing-interval")) options.slicing_interval_mm = arguments.real("slicing-interval");
  options.stack = stack_options(arguments);

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
  RunJson about = about_run(made);
  if (!galvo.is_null()) about["galvo"] = std::move(galvo);
  CGL_TRY(write_oct_volume(output, made.volume, made.voxel_um, RunJson::object(), about, arguments, context));
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
    json["shape"] = {made.volume.planes, made.volume.rows, made.volume.columns};
    json["missing"] = set.missing;
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {} slices of {} tiles, {} x {} x {} voxels\n", output.native(), made.slices.size(),
                       set.tiles.size(), made.volume.planes, made.volume.rows, made.volume.columns);
  return {};
}

}  // namespace cingulum
