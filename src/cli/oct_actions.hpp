// The actions of `cingulum oct`, each in a file of its subject, and what they share. oct.cpp declares their arguments.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/tile_set.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum {

[[nodiscard]] Status run_oct_simulate(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_grid(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_stitch(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_flatfield(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_profile(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_attenuation(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_normalise(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_register(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_stack(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_curvature(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_interface(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_aip(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_resample(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_overlap(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_report(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_oct_run(const ParsedArguments& arguments, VerbContext& context);

// The devices of --device. The bits are the same on all, so it does not matter which takes a tile.
struct OctDevices {
  std::vector<std::unique_ptr<DeviceRegistry>> registries;  // outlive what uses the devices
  std::vector<Device*> devices;
  [[nodiscard]] std::vector<std::string> names() const;
};
[[nodiscard]] Result<OctDevices> open_oct_devices(VerbContext& context);

// What actions of one stage share with `run`: options from arguments, and what was found as the sidecar has it.
[[nodiscard]] Result<oct::TileSet> open_oct_tiles(const std::filesystem::path& input, const ParsedArguments& arguments);
// Of raw tiles with extra lines, as asked for or found by a vote; `found` says how.
[[nodiscard]] Result<std::size_t> last_good_line(const oct::TileSet& set, const std::filesystem::path& input,
                                                 const ParsedArguments& arguments, VerbContext& context,
                                                 nlohmann::ordered_json& found);
[[nodiscard]] oct::PlacementOptions placement_options(const ParsedArguments& arguments);
[[nodiscard]] nlohmann::ordered_json placement_json(const oct::TileGrid& grid, const oct::Placement& placement);
// Names islands and counts links that were rejected, in the log.
void say_of_placement(const oct::TileGrid& grid, const oct::Placement& placement);
[[nodiscard]] Result<oct::AttenuationOptions> attenuation_options(const ParsedArguments& arguments,
                                                                  const std::string& method);
[[nodiscard]] oct::RegistrationOptions registration_options(const ParsedArguments& arguments);
[[nodiscard]] nlohmann::ordered_json registration_json(std::size_t fixed, std::size_t moving,
                                                       const oct::SliceRegistration& found);
[[nodiscard]] oct::StackOptions stack_options(const ParsedArguments& arguments);
[[nodiscard]] nlohmann::ordered_json decisions_json(const oct::StackPlan& plan);

// The one input of an action that takes one; it must be there.
[[nodiscard]] Result<std::filesystem::path> oct_input(const ParsedArguments& arguments);
// --out, which every action needs.
[[nodiscard]] Result<std::filesystem::path> oct_output(const ParsedArguments& arguments);
// Before the work: whether the image and its sidecar may be written.
[[nodiscard]] Status check_volume_output(const std::filesystem::path& output, const WriteOptions& options);
// "3,4": `count` whole numbers from 0 on.
[[nodiscard]] Result<std::vector<std::size_t>> parse_counts(const char* option, const std::string& text,
                                                            std::size_t count);
// --model, or BaSiC's where --compat asks for it.
[[nodiscard]] std::string oct_model(const ParsedArguments& arguments);
// How volumes are read: --unit, --allow-missing, threads.
[[nodiscard]] Result<oct::VolumeReadOptions> oct_reading(const ParsedArguments& arguments, VerbContext& context);
// Reads and says how many values were not finite.
[[nodiscard]] Result<oct::VolumeFile> read_oct_volume(const std::filesystem::path& path,
                                                      const ParsedArguments& arguments, VerbContext& context);
// Writes a volume with its sidecar: `about` is what the run found.
[[nodiscard]] Status write_oct_volume(const std::filesystem::path& output, const oct::HostVolume& volume,
                                      const oct::VoxelSize& voxel_um, nlohmann::ordered_json attributes,
                                      nlohmann::ordered_json about, const ParsedArguments& arguments,
                                      VerbContext& context);
// The same of a volume that is made while it is written; `of_run` is what its sidecar says besides of this run alone.
[[nodiscard]] Status write_oct_boxes(const std::filesystem::path& output, const std::array<std::size_t, 3>& shape,
                                     const oct::MakeBox& make, const oct::VoxelSize& voxel_um,
                                     nlohmann::ordered_json about, const ParsedArguments& arguments,
                                     VerbContext& context, const std::function<nlohmann::ordered_json()>& of_run = {},
                                     std::size_t boxes_behind = oct::writers_at_a_time);

}  // namespace cingulum
