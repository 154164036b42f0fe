// What the sidecar says of a run that is done: field, plan, result and times.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "tract/field/field.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {

struct TrackTiming {
  std::string device;     // or several, as --device takes them
  std::string fitted_on;  // empty: nothing was fitted
  double prepare_seconds = 0;
  double track_seconds = 0;
};

[[nodiscard]] nlohmann::ordered_json field_json(const Field& field);

[[nodiscard]] nlohmann::ordered_json plan_json(const TrackingPlan& plan, const TrackingOptions& options);

// What the numbers of `end_reason` mean.
[[nodiscard]] nlohmann::ordered_json end_reason_codes_json();

// What is the same for equal runs.
[[nodiscard]] nlohmann::ordered_json result_json(const TrackingStatistics& statistics, bool select);

// What may differ between them.
[[nodiscard]] nlohmann::ordered_json run_json(const TrackingStatistics& statistics, const TrackRequest& request,
                                              RunMachine& machine, const TrackTiming& timing, double seconds);

}  // namespace cingulum
