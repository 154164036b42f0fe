#include "runs/oct/oct_output.hpp"

#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "base/argument_name.hpp"
#include "base/elapsed.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "runs/oct/oct_options.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

using WriteVoxels =
    std::function<Status(const Json& attributes, const WriteOptions& write, const oct::VolumeWriteOptions& options)>;

// What all outputs share: levels, the command's name, the sidecar.
Status write_with_sidecar(OctOutput output, const OctRequest& request, RunMachine& machine,
                          const WriteVoxels& write_voxels) {
  const auto start = std::chrono::steady_clock::now();
  WriteOptions write = machine.write_options();
  CGL_TRY(check_sidecar_output(output.path, write));
  CGL_TRY_ASSIGN(write.pool, machine.pool());
  oct::VolumeWriteOptions options;
  options.pool = write.pool;
  options.cancel = machine.cancel();
  CGL_TRY_ASSIGN(options.levels, pyramid_levels(request));
  Json attributes = std::move(output.attributes);
  attributes["command"] = output.command;
  const auto sidecar = std::make_shared<OutputSidecar>(output.path, write);
  sidecar->describe([&]() -> Json {
    Json json = {{"command", output.command}};
    json.update(output.provenance);
    json["result"] = std::move(output.about);
    json["run"] = run_facts(machine.threads(), seconds_since(start));
    if (output.of_run) json["run"].update(output.of_run());
    return json;
  });
  return write_voxels(attributes, with_sidecar(write, sidecar), options);
}

}  // namespace

Status check_volume_output(const fs::path& output, const WriteOptions& options) {
  CGL_TRY(check_sidecar_output(output, options));
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(output, ignored)) || options.force) return {};
  return fail(ErrorKind::already_exists, "writing {}: it exists; use {} to replace it", output.native(),
              argument_name("force"));
}

Status write_oct_volume(OctOutput output, const oct::HostVolume& volume, const oct::VoxelSize& voxel_um,
                        const OctRequest& request, RunMachine& machine) {
  const fs::path path = output.path;
  return write_with_sidecar(
      std::move(output), request, machine,
      [&](const Json& attributes, const WriteOptions& write, const oct::VolumeWriteOptions& options) {
        return oct::write_volume_file(path, volume, voxel_um, attributes, write, options);
      });
}

Status write_oct_boxes(OctOutput output, const std::array<std::size_t, 3>& shape, const oct::MakeBox& make,
                       const oct::VoxelSize& voxel_um, const OctRequest& request, RunMachine& machine,
                       std::size_t boxes_behind) {
  const fs::path path = output.path;
  return write_with_sidecar(std::move(output), request, machine,
                            [&](const Json& attributes, const WriteOptions& write, oct::VolumeWriteOptions options) {
                              options.boxes_behind = boxes_behind;
                              return oct::write_volume_by_boxes(path, shape, voxel_um, attributes, make, write,
                                                                options);
                            });
}

}  // namespace cingulum
