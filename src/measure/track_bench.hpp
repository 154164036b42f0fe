// Every getter on every device that is there: the command as it is typed, from file to file; then time, rate,
// streamlines, lengths, score of its parts, and whether the result has the CPU's bits; other programs beside them.
// Called by `cingulum bench track`, which prints the report as tables.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "device/registry.hpp"
#include "measure/bench_data.hpp"
#include "measure/tracking_peers.hpp"
#include "measure/tracking_rows.hpp"
#include "runs/machine.hpp"

namespace cingulum::measure {

struct TrackBenchOptions {
  BenchSource source;
  BenchMeasures measures;
  std::uint64_t seeds = 100000;
  std::uint64_t check_seeds = 2000;  // of these, compared with the CPU bit for bit
  std::string devices = "all";       // or a list; devices joined by + share one run
  std::string only;                  // rows whose name contains this
  std::string without;               // and none whose name contains this; empty: all
  std::string bvec_frame;            // as it was typed; empty: not given
  bool kernels_only = false;
  std::optional<PeerOptions> peers;
  std::function<void(std::string_view)> on_line = nullptr;  // a line for each row as it comes
};

// {"threads", "devices", "typed": rows of the command, "rows": rows of its parts, "peers"}
[[nodiscard]] Result<nlohmann::ordered_json> bench_tracking(const TrackBenchOptions& options, RunMachine& machine);

// Whether a row of the report has the CPU's bits, or was refused and has none.
[[nodiscard]] bool is_equal_row(const nlohmann::ordered_json& row);

}  // namespace cingulum::measure
