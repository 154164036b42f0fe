// The peers of bench_track, DIPY and MRtrix3: prints what they reach on the same data and sets our rows beside it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/track_data.hpp"

namespace cingulum::bench {

// A row per peer; empty where the script fails.
[[nodiscard]] nlohmann::ordered_json run_track_peers(const TrackData& data, const TrackBenchOptions& bench);

// Adds to each row that has a peer how many times as fast it is: over whole runs where mean lengths are within 10 % of
// each other, else over the steps from fixed points.
void compare_with_peers(const nlohmann::ordered_json& peers, std::vector<nlohmann::ordered_json>& rows);

}  // namespace cingulum::bench
