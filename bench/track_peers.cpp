#include "bench/track_peers.hpp"

#include <cmath>

#include "bench/program.hpp"
#include "bench/track_rows.hpp"
#include "measure/tracking_peers.hpp"

namespace cingulum::bench {

using Json = nlohmann::ordered_json;

Json run_track_peers(const TrackData& data, const TrackBenchOptions& bench) {
  Json peers = require(measure::run_tracking_peers(data.folder(), data.data(),
                                                   {.python = bench.python,
                                                    .few_steps = few_steps,
                                                    .many_steps = many_steps,
                                                    .only = bench.only,
                                                    .limit_seconds = 900},
                                                   data.pool()));
  for (const auto& [name, row] : peers.items()) {
    const Json score = row.value("score", Json::object());
    fmt::print(
        "  {:<52} {:>10.4f} M/s    {} seeds, {} kept, mean {:.1f} mm{}\n", name, row.value("points_per_s_M", 0.0),
        row.value("seeds", 0), row.value("kept", 0), row.value("mean_length_mm", 0.0),
        score.empty()
            ? ", not scored"
            : fmt::format(", valid {:.3f}, invalid {:.3f}, overlap {:.3f}, F1 {:.3f}", score["valid"].get<double>(),
                          score["invalid"].get<double>(), score["overlap"].get<double>(), score["f1"].get<double>()));
    if (row.contains("given_directions_points_per_s_M")) {
      fmt::print("      with initial directions given: {:.4f} M/s\n",
                 row["given_directions_points_per_s_M"].get<double>());
    }
    if (row.contains("fixed_points_per_s_M")) {
      fmt::print("      {}: {:.4f} M/s\n", row.value("fixed_note", std::string()),
                 row["fixed_points_per_s_M"].get<double>());
    }
  }
  return peers;
}

void compare_with_peers(const Json& peers, std::vector<Json>& rows) {
  struct Pair {
    const char* ours;
    const char* peer;
    double wanted;
  };
  for (const Pair& pair : {Pair{"prob on SF", "DIPY prob on SF", 10}, Pair{"ptt on SF", "DIPY ptt on SF", 20},
                           Pair{"boot OPDT order 4", "DIPY boot OPDT order 4", 50},
                           Pair{"det from SH", "MRtrix3 SD_STREAM", 3}, Pair{"prob from SH", "MRtrix3 iFOD1", 3}}) {
    for (Json& row : rows) {
      if (row["scenario"] != pair.ours || !peers.contains(pair.peer)) continue;
      const Json& peer = peers[pair.peer];
      const double whole = row["median"].get<double>() / peer["points_per_s_M"].get<double>();
      const double lengths = row["mean_length_mm"].get<double>() / peer["mean_length_mm"].get<double>();
      row["peer"] = pair.peer;
      row["times_peer_whole_runs"] = whole;
      row["mean_length_ratio"] = lengths;
      const bool comparable = std::fabs(lengths - 1) <= 0.1;
      double ratio = whole;
      if (peer.contains("fixed_points_per_s_M")) {
        const double fixed = row["fixed_points_per_s_M"].get<double>() / peer["fixed_points_per_s_M"].get<double>();
        row["times_peer_fixed_points"] = fixed;
        if (!comparable) ratio = fixed;
      }
      if (peer.contains("given_directions_points_per_s_M")) {
        row["times_peer_given_directions"] =
            row["median"].get<double>() / peer["given_directions_points_per_s_M"].get<double>();
      }
      row["times_peer"] = ratio;
      row["times_peer_by"] = comparable ? "whole runs" : "steps from fixed points";
      fmt::print("  {} is {:.1f} times {} (goal {}), {}; mean lengths differ by {:+.1f} %{}\n", pair.ours, ratio,
                 pair.peer, pair.wanted, row["times_peer_by"].get<std::string>(), 100 * (lengths - 1),
                 comparable ? "" : fmt::format("; whole runs {:.1f} times", whole));
      if (row.contains("times_peer_given_directions")) {
        fmt::print("      {:.1f} times where the peer is given its initial directions and ours finds them\n",
                   row["times_peer_given_directions"].get<double>());
      }
    }
  }
}

}  // namespace cingulum::bench
