// Real-time anomaly detection as a workload: a signal in small batches, one in flight, to an actor that keeps its
// window and statistics (ring/workloads/anomaly_body.hpp). `cingulum ring run anomaly` and its comparison with NumPy
// call this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/extended.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

// Two sines, noise of 0.1 and spikes of 3 to 5 at one value in a hundred. The same for the same arguments everywhere.
[[nodiscard]] Result<std::vector<float>> example_signal(std::uint32_t points, std::uint64_t seed);

struct AnomalyOptions {
  std::uint32_t batch = 1000;
  std::uint32_t window = 10000;
  std::uint32_t warm_up_batches = 10;
  std::uint32_t runs = 3;
};

struct AnomalyResult {
  std::uint32_t batches = 0;
  std::uint64_t anomalies = 0;  // of one run; all runs must agree
  double mean_score = 0;        // mean of the batches' means
  double max_score = 0;
  double seconds = 0;  // of a run: the mean
  double points_per_s = 0;
  LatencyResult batch_latency;               // of all runs
  std::vector<std::uint32_t> first_indices;  // in the signal, those that the batches listed
};

[[nodiscard]] Result<AnomalyResult> run_anomaly(WorkloadPlace& place, std::span<const float> signal,
                                                const AnomalyOptions& options);

}  // namespace cingulum::ring
