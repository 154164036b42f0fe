// How every bench measures: warm-up, repetitions, median and spread; and how it reports: a row beside its ceiling, and
// JSON with device, commit and flags.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cingulum::bench {

struct Spread {
  double median = 0;
  double low = 0;   // 10th percentile
  double high = 0;  // 90th percentile
  std::size_t repetitions = 0;
};

inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.5), at(0.1), at(0.9), values.size()};
}

// Seconds of each repetition of `body`, after `warm_up` that do not count.
template <class Body>
Spread measure_seconds(int warm_up, int repetitions, Body&& body) {
  std::vector<double> seconds;
  for (int i = -warm_up; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const auto end = std::chrono::steady_clock::now();
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(end - start).count());
  }
  return spread_of(std::move(seconds));
}

// A rate in GB/s from times: the fastest times are the highest rates.
inline Spread as_rate(const Spread& seconds, std::uint64_t bytes) {
  const auto rate = [&](double s) { return static_cast<double>(bytes) / s * 1e-9; };
  return {rate(seconds.median), rate(seconds.high), rate(seconds.low), seconds.repetitions};
}

// One line of a report: what was measured, in which unit, and the ceiling of the same run.
struct Row {
  std::string scenario;
  std::string unit;
  Spread value;
  std::string ceiling_name;
  double ceiling = 0;  // 0: none
};

inline nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json json = {{"scenario", row.scenario},   {"unit", row.unit},
                                 {"median", row.value.median}, {"p10", row.value.low},
                                 {"p90", row.value.high},      {"repetitions", row.value.repetitions}};
  if (row.ceiling > 0) {
    json["ceiling"] = row.ceiling;
    json["ceiling_name"] = row.ceiling_name;
    json["ratio"] = row.value.median / row.ceiling;
  }
  return json;
}

inline std::string to_text(const Row& row) {
  std::string text = fmt::format("  {:<52} {:>10.3f} {:<6} ({:.3f} to {:.3f})", row.scenario, row.value.median,
                                 row.unit, row.value.low, row.value.high);
  if (row.ceiling > 0) {
    text +=
        fmt::format("  {:.1f} % of {:.3f}: {}", 100 * row.value.median / row.ceiling, row.ceiling, row.ceiling_name);
  }
  return text;
}

}  // namespace cingulum::bench
