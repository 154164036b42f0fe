// What the sidecar of `cingulum oct run` says of how the volume was made, and back: what `from` repeats.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "oct/tiles/tile_set.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

// {"arguments": every member that the volume depends on, "inputs": the tiles with the hash of their voxels}. The
// request has its defaults.
[[nodiscard]] nlohmann::ordered_json oct_provenance(const OctRequest& request, const oct::TileSet& set,
                                                    const std::string& voxels);

struct RepeatedOctRun {
  OctRequest request;
  std::string voxels;  // the hash that the tiles had; empty where other tiles are given
};
// The request of a sidecar, with what is given over it. Tiles with a relative name are looked for in the folder of the
// run when they are not in the present one.
[[nodiscard]] Result<RepeatedOctRun> oct_request_of_sidecar(const std::filesystem::path& sidecar,
                                                            const OctRequest& given);

}  // namespace cingulum
