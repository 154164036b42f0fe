// Volumes that a stage of OCT writes, each with its sidecar. Called by reconstruct() and by the verb for its single
// stages.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"
#include "runs/machine.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

// Before the work: whether the image and its sidecar may be written.
[[nodiscard]] Status check_volume_output(const std::filesystem::path& output, const WriteOptions& options);

// What a volume is, besides its voxels.
struct OctOutput {
  std::filesystem::path path;
  std::string command;                                                   // that made it: "oct stitch"
  nlohmann::ordered_json provenance;                                     // members of the sidecar: inputs, arguments
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();  // of the image itself
  nlohmann::ordered_json about;                                          // what was found, for the sidecar
  // Called when all voxels are there: what the sidecar says of this run alone. Empty: nothing more.
  std::function<nlohmann::ordered_json()> of_run = {};
};

// Levels are those of the request.
[[nodiscard]] Status write_oct_volume(OctOutput output, const oct::HostVolume& volume, const oct::VoxelSize& voxel_um,
                                      const OctRequest& request, RunMachine& machine);
// A volume that is made while it is written.
[[nodiscard]] Status write_oct_boxes(OctOutput output, const std::array<std::size_t, 3>& shape,
                                     const oct::MakeBox& make, const oct::VoxelSize& voxel_um,
                                     const OctRequest& request, RunMachine& machine,
                                     std::size_t boxes_behind = oct::writers_at_a_time);

}  // namespace cingulum
