// Measures one scenario of bench_track: a whole run over all seeds, and two short runs of a fixed number of steps from
// the same points in the same directions. The difference of the short runs is the price of the steps alone, without the
// cost of beginning a streamline and without the regions that one tracker reaches and another does not.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/track_data.hpp"
#include "measure/bench_data.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum::bench {

// Steps of the two short runs; peers take as many.
constexpr int few_steps = 3;
constexpr int many_steps = 13;

struct Scenario {
  measure::BenchScenario field;    // and its name
  TrackingOptions options;         // with the getter's own; angle, threshold and directions are the benches'
  double operations_per_step = 0;  // multiplications, additions and comparisons that the method needs
};

// Measures, prints and returns the row of the report. `operations_per_second` is the machine's.
[[nodiscard]] nlohmann::ordered_json measure_scenario(const TrackData& data, const TrackBenchOptions& bench,
                                                      const Field& field, const Scenario& scenario,
                                                      double operations_per_second);

}  // namespace cingulum::bench
