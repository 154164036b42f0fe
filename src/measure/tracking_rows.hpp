// What is measured of a tracking scenario on a device, each as members of its row: the kernel alone, tracking to
// memory, whole runs to files and their score. Called by `cingulum bench track`; bench_track and bench_track_contracted
// take the same runs for rows of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/score/score.hpp"
#include "measure/bench_data.hpp"
#include "tract/run/tracker.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum::measure {

struct BenchMeasures {
  std::int64_t repetitions = 3;  // after one that does not count
  std::uint64_t chunk_seeds = 25000;
  std::filesystem::path folder;  // where files are written and removed again
  std::filesystem::path disk;    // and where they are synced; empty: nowhere
};

[[nodiscard]] bool same_bits(const StreamlineBatch& a, const StreamlineBatch& b);

// The shortest of so many launches over the first seeds; `batch` holds the streamlines of the last.
struct KernelRun {
  double seconds = 0;
  std::uint64_t points = 0;
  std::uint64_t steps = 0;
};
[[nodiscard]] Result<KernelRun> best_kernel_run(Tracker& tracker, std::uint64_t seeds, std::int64_t repetitions,
                                                StreamlineBatch& batch);

// All seeds in one go, data on the device: what the kernel itself reaches, with seeds in the order of space, as runs
// have them, and in the order in which they were given. Nothing where the device does not measure its kernels.
[[nodiscard]] Status measure_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures,
                                    nlohmann::ordered_json& row);
[[nodiscard]] Status measure_unsorted_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures,
                                             nlohmann::ordered_json& row);

// Measures tracking from seeds to points in host memory, as a run does it, without writing.
[[nodiscard]] Status measure_tracking(const std::vector<Tracker*>& trackers, const BenchData& data,
                                      const BenchMeasures& measures, nlohmann::ordered_json& row);

// One run of all seeds to a finished TRX file.
[[nodiscard]] Result<TrackingStatistics> track_to_file(const std::vector<Tracker*>& trackers,
                                                       const TrackingOptions& options, const TrackingPlan& plan,
                                                       const BenchData& data, std::uint64_t chunk_seeds,
                                                       ThreadPool& pool, const std::filesystem::path& file, bool sync);

// Seeds to a finished file, checksums included, and what is in it; then to a disk, synced, beside a plain copy of the
// same bytes. `first` is the row of the scenario's first device, or null: the same bytes have the same score.
[[nodiscard]] Status measure_files(const std::vector<Tracker*>& trackers, const TrackingOptions& options,
                                   const TrackingPlan& plan, const BenchData& data, const BenchMeasures& measures,
                                   ThreadPool& pool, const nlohmann::ordered_json& first, nlohmann::ordered_json& row);

// A tractogram's score as a row has it; empty where the data are no phantom.
[[nodiscard]] nlohmann::ordered_json score_json(const Score& score);
[[nodiscard]] Result<nlohmann::ordered_json> score_of_file(const std::filesystem::path& tractogram,
                                                           const BenchData& data, ThreadPool& pool);

}  // namespace cingulum::measure
