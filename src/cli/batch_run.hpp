// The work of `cingulum batch`: several series are under way at once, the next being read and inflated while one is
// fitted and tracked and the last is written. One at a time has the devices and the cores (MachineTurn); how many are
// under way follows from memory (MemoryRoom). Devices, their kernels and the threads are made once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/batch_failures.hpp"
#include "cli/batch_units.hpp"
#include "cli/track_devices.hpp"
#include "cli/verb.hpp"

namespace cingulum {

// Memory that series under way share: one waits until what it needs is free. One alone is always let in.
class MemoryRoom {
 public:
  explicit MemoryRoom(std::uint64_t bytes) : bytes_(bytes) {}

  // Fails where `cancel` is asked for while it waits. any thread
  [[nodiscard]] Status enter(std::uint64_t bytes, const CancelToken& cancel);
  // any thread
  void leave(std::uint64_t bytes);

 private:
  const std::uint64_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t taken_ = 0;
  std::size_t inside_ = 0;
};

struct BatchOptions {
  std::filesystem::path dataset;
  std::filesystem::path out;
  std::string command;  // without labels: what repeats a unit begins with it
};

struct BatchSummary {
  std::uint64_t done = 0;
  std::uint64_t finished_before = 0;
  std::uint64_t failed = 0;
  double seconds = 0;
};

// `arguments` are those of the batch; `failures` has what was known before. Fails where it was interrupted or the table
// of failures cannot be written: then the rest is left.
[[nodiscard]] Result<BatchSummary> run_batch(const BatchOptions& options, const BatchUnits& units,
                                             const ParsedArguments& arguments, FailureTable& failures,
                                             VerbContext& context);

// What each would take, and whether it is finished: nothing is tracked or written.
[[nodiscard]] Result<nlohmann::ordered_json> explain_batch(const BatchOptions& options, const BatchUnits& units,
                                                           const ParsedArguments& arguments, VerbContext& context);

// The options of `track` that a batch gives itself, for each series.
[[nodiscard]] bool is_given_by_batch(std::string_view option);

}  // namespace cingulum
