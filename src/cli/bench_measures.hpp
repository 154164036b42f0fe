// What `cingulum bench track` measures of a scenario on a device, each as members of its row: the kernel alone,
// tracking to memory, whole runs to files. Called by bench.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "cli/bench_data.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

struct BenchMeasures {
  std::int64_t repetitions = 3;  // after one that does not count
  std::uint64_t chunk_seeds = 25000;
  std::filesystem::path folder;  // where files are written and removed again
  std::filesystem::path disk;    // and where they are synced; empty: nowhere
};

[[nodiscard]] bool same_bits(const StreamlineBatch& a, const StreamlineBatch& b);

// All seeds in one go, data on the device: what the kernel itself reaches, with seeds in the order of space, as runs
// have them, and in the order in which they were given. Nothing where the device does not measure its kernels.
[[nodiscard]] Status measure_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures,
                                    nlohmann::ordered_json& row);
[[nodiscard]] Status measure_unsorted_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures,
                                             nlohmann::ordered_json& row);

// Seeds to points in host memory, as a run does it, without writing.
[[nodiscard]] Status measure_tracking(const std::vector<Tracker*>& trackers, const BenchData& data,
                                      const BenchMeasures& measures, nlohmann::ordered_json& row);

// Seeds to a finished file, checksums included, and what is in it; then to a disk, synced, beside a plain copy of the
// same bytes. `first` is the row of the scenario's first device, or null: the same bytes have the same score.
[[nodiscard]] Status measure_files(const std::vector<Tracker*>& trackers, const TrackingOptions& options,
                                   const TrackingPlan& plan, const BenchData& data, const BenchMeasures& measures,
                                   ThreadPool& pool, const nlohmann::ordered_json& first, nlohmann::ordered_json& row);

// Shares of a tractogram's score as a row has them; empty where the data are no phantom.
[[nodiscard]] Result<nlohmann::ordered_json> bench_score(const std::filesystem::path& tractogram, const BenchData& data,
                                                         ThreadPool& pool);

// The most memory that this process had since `forget_host_peak`.
void forget_host_peak();
[[nodiscard]] std::uint64_t host_peak_bytes();

}  // namespace cingulum
