// The extended workload: round trips one at a time, streams of messages, many actors at once. Sizes and order of calls
// are those of the extended benchmark of the Python runtime that it is set beside: send all, then receive all. Every
// answer is checked.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "ring/telemetry/histogram.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

struct LatencyResult {
  std::uint32_t samples = 0;
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double min_us = 0;
  double max_us = 0;
};

struct StreamingResult {
  std::uint32_t messages = 0;
  std::uint32_t numbers = 0;  // in each
  double seconds = 0;
  double messages_per_s = 0;
  double direct_per_s = 0;  // the same sums by a loop without messages
};

struct ConcurrencyResult {
  std::uint32_t actors = 0;
  std::uint32_t messages = 0;  // all together
  double seconds = 0;
  double messages_per_s = 0;
};

struct ExtendedOptions {
  std::uint32_t latency_samples = 1000;
  std::uint32_t warm_up = 100;
  std::vector<std::uint32_t> message_counts = {100, 1000, 5000, 10000, 50000};
  std::vector<std::uint32_t> number_counts = {10, 100, 1000};
  std::vector<std::uint32_t> actor_counts = {1, 2, 4, 8};
  std::uint32_t messages_per_actor = 1000;
};

struct ExtendedResult {
  LatencyResult latency;
  std::vector<StreamingResult> streaming;
  std::vector<ConcurrencyResult> concurrency;
};

[[nodiscard]] Result<ExtendedResult> run_extended(WorkloadPlace& place, const ExtendedOptions& options);

// Percentile q of sorted samples as the benchmark takes it: the one at int(n q).
[[nodiscard]] LatencyResult summarise_latency(std::vector<double> microseconds);

}  // namespace cingulum::ring
