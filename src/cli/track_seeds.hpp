// Where streamlines of `cingulum track` begin, and which are kept: seeds, given initial directions and regions from the
// arguments.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/given_arrays.hpp"
#include "cli/verb.hpp"
#include "images/on_grid.hpp"
#include "streamlines/regions.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/selection.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

// In `seed_mask`, brought onto `grid`, where it is not empty, else where the stopping map passes.
[[nodiscard]] Result<std::unique_ptr<Seeds>> make_seeds(const ParsedArguments& arguments, const TrackingData& data,
                                                        const std::filesystem::path& seed_mask, const NamedGrid& grid,
                                                        const GivenArrays& arrays);

// --seed-sphere, which is given.
[[nodiscard]] Result<std::unique_ptr<Seeds>> seeds_in_sphere(const ParsedArguments& arguments,
                                                             const ImageGeometry& geometry);

// --seed-grid: "2" or "2x2x1".
[[nodiscard]] Result<std::array<std::uint32_t, 3>> parse_seed_grid(const std::string& text);

[[nodiscard]] Result<std::optional<GivenDirections>> given_directions(const ParsedArguments& arguments,
                                                                      const Seeds& seeds, const ImageGeometry& geometry,
                                                                      const GivenArrays& arrays);

[[nodiscard]] Result<RegionRules> read_rules(const ParsedArguments& arguments, const ImageGeometry& geometry);

// Which streamlines are kept.
[[nodiscard]] Result<SelectionRules> selection_rules(const ParsedArguments& arguments, const TrackingOptions& options,
                                                     const TrackingPlan& plan, const ImageGeometry& geometry);

}  // namespace cingulum
