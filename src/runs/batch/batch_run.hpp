// The work of `cingulum batch`: several series are under way at once, the next being read and inflated while one is
// fitted and tracked and the last is written. One at a time has the devices and the cores (a lease); how many are
// under way follows from memory (SharedMemoryBudget). Devices, their kernels and the threads are made once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runs/batch/batch_failures.hpp"
#include "runs/batch/batch_units.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_devices.hpp"
#include "runs/track/track_request.hpp"

namespace cingulum {

// Memory that series under way share: one waits until what it needs is free. One alone always gets it.
class SharedMemoryBudget {
 public:
  explicit SharedMemoryBudget(std::uint64_t bytes) : bytes_(bytes) {}

  // Fails where `cancel` is asked for while it waits. any thread
  [[nodiscard]] Status reserve(std::uint64_t bytes, const CancelToken& cancel);
  // any thread
  void release(std::uint64_t bytes);

 private:
  const std::uint64_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reserved_ = 0;
  std::size_t holders_ = 0;
};

struct BatchOptions {
  std::filesystem::path dataset;
  std::filesystem::path out;
  std::string command;              // without labels: what repeats a unit begins with it
  std::optional<int> at_once = {};  // series under way at the same time; by threads, device and memory unless given
};

struct BatchSummary {
  std::uint64_t done = 0;
  std::uint64_t finished_before = 0;
  std::uint64_t failed = 0;
  double seconds = 0;
};

// Each series is tracked by `request`, with files and names of its own; `failures` has what was known before. Fails
// where it was interrupted or the table of failures cannot be written: then the rest is left.
[[nodiscard]] Result<BatchSummary> run_batch(const BatchOptions& options, const BatchUnits& units,
                                             const TrackRequest& request, FailureTable& failures, RunMachine& machine);

// What each would take, and whether it is finished: nothing is tracked or written.
[[nodiscard]] Result<nlohmann::ordered_json> explain_batch(const BatchOptions& options, const BatchUnits& units,
                                                           const TrackRequest& request, RunMachine& machine);

}  // namespace cingulum
