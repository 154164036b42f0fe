// What a reconstruction found, as JSON of sidecars and of `--json`, and as lines of the log.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "oct/placement/tile_placement.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/tile_set.hpp"

namespace cingulum {

[[nodiscard]] nlohmann::ordered_json placement_json(const oct::TileGrid& grid, const oct::Placement& placement);
[[nodiscard]] nlohmann::ordered_json registration_json(std::size_t fixed, std::size_t moving,
                                                       const oct::SliceRegistration& found);
[[nodiscard]] nlohmann::ordered_json stack_json(const oct::StackPlan& plan);
// All of it, of a whole run.
[[nodiscard]] nlohmann::ordered_json reconstruction_json(const oct::TileSet& set, const oct::Reconstruction& made);

// Names islands, and counts links that were rejected, in the log.
void warn_of_placement(const oct::TileGrid& grid, const oct::Placement& placement);

}  // namespace cingulum
