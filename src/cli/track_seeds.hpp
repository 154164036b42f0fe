// Where streamlines of `cingulum track` begin, and which are kept: seeds, given initial directions and regions from the
// arguments.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "streamlines/regions.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

// In `seed_mask` where it is not empty, else where the stopping map passes. `name_of_data` serves messages.
[[nodiscard]] Result<std::unique_ptr<Seeds>> make_seeds(const ParsedArguments& arguments, const TrackingData& data,
                                                        const std::filesystem::path& seed_mask,
                                                        std::string_view name_of_data);

[[nodiscard]] Result<std::optional<GivenDirections>> given_directions(const ParsedArguments& arguments,
                                                                      const Seeds& seeds,
                                                                      const ImageGeometry& geometry);

[[nodiscard]] Result<RegionRules> read_rules(const ParsedArguments& arguments, const ImageGeometry& geometry);

}  // namespace cingulum
