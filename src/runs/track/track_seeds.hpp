// Where the streamlines of a request begin, and which are kept: seeds, given initial directions and regions.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "images/on_grid.hpp"
#include "runs/track/track_request.hpp"
#include "streamlines/regions.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/selection.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

// In `seed_mask`, brought onto `grid`, where it is not empty, else where the stopping map passes.
[[nodiscard]] Result<std::unique_ptr<Seeds>> make_seeds(const TrackRequest& request, const TrackingData& data,
                                                        const std::filesystem::path& seed_mask, const NamedGrid& grid);

// --seed-sphere, which is given.
[[nodiscard]] Result<std::unique_ptr<Seeds>> seeds_in_sphere(const TrackRequest& request,
                                                             const ImageGeometry& geometry);

// --seed-grid: "2" or "2x2x1".
[[nodiscard]] Result<std::array<std::uint32_t, 3>> parse_seed_grid(const std::string& text);

[[nodiscard]] Result<std::optional<GivenDirections>> given_directions(const TrackRequest& request, const Seeds& seeds,
                                                                      const ImageGeometry& geometry);

[[nodiscard]] Result<RegionRules> read_rules(const TrackRequest& request, const ImageGeometry& geometry);

// Which streamlines are kept.
[[nodiscard]] Result<SelectionRules> selection_rules(const TrackRequest& request, const TrackingOptions& options,
                                                     const TrackingPlan& plan, const ImageGeometry& geometry);

}  // namespace cingulum
