// What the sidecar says of a run that is done: field, plan, result and times.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "tract/field/field.hpp"
#include "tract/kernel/plan.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {

// Members of `result` that are read again when parts are merged: those that every run has,
template <class Visit, class Statistics>
void visit_counts(Visit& visit, Statistics& statistics) {
  visit("seeds", statistics.seeds);
  visit("seeds_with_streamlines", statistics.seeds_with_streamlines);
  visit("streamlines", statistics.streamlines);
  visit("kept", statistics.kept);
  visit("too_short", statistics.too_short);
  visit("too_long", statistics.too_long);
  visit("too_few_points", statistics.too_few_points);
  visit("too_many_points", statistics.too_many_points);
  visit("refused_by_regions", statistics.refused_by_regions);
  visit("points", statistics.points);
}
// those of a run that selects nothing (with `select` the device may have gone beyond the last seed that counts),
template <class Visit, class Statistics>
void visit_all_seeds(Visit& visit, Statistics& statistics) {
  visit("seeds_outside", statistics.seeds_outside);
  visit("seeds_without_direction", statistics.seeds_without_direction);
  visit("steps", statistics.steps);
}
// and those of its member `end_reasons`.
template <class Visit, class Statistics>
void visit_end_reasons(Visit& visit, Statistics& statistics) {
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    visit(std::string(end_reason_name(static_cast<EndReason>(i))), statistics.end_reasons[i]);
  }
}

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
