// What a run would take and give, from its request and the heads of its files: nothing is fitted, tracked or written.
// `cingulum track --explain` prints it, and a batch asks it of each of its series.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "runs/track/track_run.hpp"
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
[[nodiscard]] Result<RunExplanation> explain_run(TrackRun& run, RunMachine& machine);

[[nodiscard]] nlohmann::ordered_json explanation_json(const RunExplanation& explanation);

}  // namespace cingulum
