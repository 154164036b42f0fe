// The raw tiles of a request of OCT, opened, and where the galvo's band lies in them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "oct/tiles/tile_set.hpp"
#include "runs/machine.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

// Names in the log what is missing and was allowed to be.
[[nodiscard]] Result<oct::TileSet> open_oct_tiles(const OctRequest& request);
// For raw tiles with extra lines: as the request says, or found by a vote of tiles; `found` says how.
[[nodiscard]] Result<std::size_t> last_good_line(const oct::TileSet& set, const OctRequest& request,
                                                 RunMachine& machine, nlohmann::ordered_json& found);

}  // namespace cingulum
