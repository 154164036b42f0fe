// A part of a run on the command line and in its sidecar: `--seed-range` and `--part`, and the member `part`, which
// says which seeds it has and holds what `cingulum merge` needs beside `result`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "tract/run/run_part.hpp"

namespace cingulum {

// None: the whole run.
[[nodiscard]] Result<std::optional<SeedRange>> seed_range_of_part(const ParsedArguments& arguments, const Seeds& seeds,
                                                                  const TrackingRunOptions& options);

[[nodiscard]] nlohmann::ordered_json part_json(const RunPart& part);

// Of a sidecar that has `result` and `part`. Believes nothing: every number is there, and they fit each other.
[[nodiscard]] Result<RunPart> part_of_sidecar(const nlohmann::ordered_json& sidecar);

}  // namespace cingulum
