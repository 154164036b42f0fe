// `cingulum track --explain`: what a run would take and give, from its arguments and the heads of its files. Nothing is
// fitted, tracked or written. `cingulum batch` asks the same of each of its series.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/track_run.hpp"
#include "cli/verb.hpp"
#include "tract/run/run_estimate.hpp"

namespace cingulum {

struct RunExplanation {
  RunFacts facts;
  RunEstimate estimate;
  std::uint64_t run_seeds = 0;  // of the undivided run
  std::uint64_t first_seed = 0;
  bool seeds_known = true;  // or estimated
  std::string device;
};

// After settle_track.
[[nodiscard]] Result<RunExplanation> explain_run(TrackRun& run, VerbContext& context);

[[nodiscard]] nlohmann::ordered_json explanation_json(const RunExplanation& explanation);

void print_explanation(const RunExplanation& explanation, VerbContext& context);

}  // namespace cingulum
