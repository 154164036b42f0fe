// Telemetry of a runtime for others: JSON for programs and for the telemetry page (ring/telemetry/telemetry_page.hpp),
// and the text that Prometheus scrapes. A snapshot is what a process shows of itself at one moment: its actors and the
// GPUs beside them. `cingulum ring top` reads it back from JSON that another process wrote, so reading checks
// everything.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ring/telemetry/gpu_monitor.hpp"
#include "ring/telemetry/telemetry.hpp"

namespace cingulum::ring {

struct TelemetrySnapshot {
  std::int64_t process = 0;
  std::string program;  // what the process says it is doing
  std::uint64_t unix_time_ns = 0;
  RuntimeTelemetry runtime;
  std::vector<GpuReading> gpus;
};

[[nodiscard]] nlohmann::ordered_json telemetry_json(const TelemetrySnapshot& snapshot);
// Members that are missing keep their defaults; a member of another kind is an error that names it.
[[nodiscard]] Result<TelemetrySnapshot> parse_telemetry_json(std::string_view text);

// The text exposition format, version 0.0.4: counters end in _total, times are in seconds, shares are 0 to 1.
[[nodiscard]] std::string prometheus_text(const TelemetrySnapshot& snapshot);

}  // namespace cingulum::ring
