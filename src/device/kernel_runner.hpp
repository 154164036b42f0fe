// Kernels by name, and what became of their launches. A KernelRegistry maps names to kernels; a KernelRunner launches
// by name on a queue, waits, and keeps a bounded history of executions with their times. For users who write kernels at
// run time; the trackers launch their own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum {

class KernelRegistry {
 public:
  // A name that is taken is refused unless `overwrite`.
  [[nodiscard]] Status add(std::string name, std::shared_ptr<Kernel> kernel, bool overwrite = false);
  // Unknown names are an error that lists the known ones.
  [[nodiscard]] Result<std::shared_ptr<Kernel>> find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Kernel>, std::less<>> kernels_;
};

struct KernelExecution {
  std::uint64_t id = 0;  // counts from 1
  std::string kernel;
  LaunchShape shape;
  std::chrono::system_clock::time_point started;
  double host_milliseconds = 0;               // from the launch call to the end of the work
  std::optional<double> device_milliseconds;  // between events on the device, where it has timestamps
  bool succeeded = false;
  std::string error;
};

class KernelRunner {
 public:
  explicit KernelRunner(Queue& queue, std::size_t history_limit = 1024)
      : queue_(queue), history_limit_(history_limit) {}

  [[nodiscard]] KernelRegistry& registry() { return registry_; }

  // Launches and waits. A failure is recorded and returned.
  Result<KernelExecution> run(std::string_view name, const LaunchShape& shape,
                              std::span<const KernelArgument> arguments);

  // The most recent executions, oldest first: at most `limit` (0: all that are kept), of one kernel if named.
  [[nodiscard]] std::vector<KernelExecution> history(std::size_t limit = 0, std::string_view kernel = {}) const;
  void clear_history() { history_.clear(); }

 private:
  Queue& queue_;
  std::size_t history_limit_;
  KernelRegistry registry_;
  std::deque<KernelExecution> history_;
  std::uint64_t next_id_ = 1;
};

}  // namespace cingulum
