// A part of a run in its request (`seed_range`, `part`) and in its sidecar, whose member `part` says which seeds it has
// and holds what `cingulum merge` needs beside `result`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runs/track/track_request.hpp"
#include "tract/run/run_part.hpp"

namespace cingulum {

// Part I of N of `total` things, as `option` gives it: "2/8".
[[nodiscard]] Result<SeedRange> range_of_share(std::string_view option, const std::string& text, std::uint64_t total);

// None: the whole run.
[[nodiscard]] Result<std::optional<SeedRange>> seed_range_of_part(const TrackRequest& request, const Seeds& seeds,
                                                                  const TrackingRunOptions& options);

[[nodiscard]] nlohmann::ordered_json part_json(const RunPart& part);

// The sidecar has `result` and `part`. Believes nothing: every number is there, and they fit each other.
[[nodiscard]] Result<RunPart> part_of_sidecar(const nlohmann::ordered_json& sidecar);

}  // namespace cingulum
