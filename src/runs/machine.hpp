// What a run has of the machine and of whoever started it: settings, threads, how it is stopped, who is told how far it
// is, and whether outputs may be replaced. The command line makes one of its options, Python and C++ make their own.
#pragma once

#include <memory>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

struct MachineOptions {
  int threads = 1;
  bool force = false;  // replace outputs that exist
  ProgressStyle progress = ProgressStyle::silent;
};

// one caller at a time
class RunMachine {
 public:
  // Settings and log outlive it.
  RunMachine(const Settings& settings, MachineOptions options, Log& log = Log::standard())
      : settings_(settings), options_(options), log_(log) {}

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] int threads() const noexcept { return options_.threads; }
  [[nodiscard]] bool force() const noexcept { return options_.force; }
  [[nodiscard]] Log& log() noexcept { return log_; }

  // Who stops the run and who is told how far it is, where that is not the process: a caller in memory (Python). The
  // observer outlives the machine; null: progress is drawn.
  void set_run(CancelToken cancel, ProgressObserver* observer) {
    cancel_ = std::move(cancel);
    observer_ = observer;
  }
  [[nodiscard]] const CancelToken& cancel() const noexcept { return cancel_; }

  // Progress progress("tracking", total, "seeds", machine.progress_options());
  [[nodiscard]] ProgressOptions progress_options() const;
  // What may be replaced, and CINGULUM_NO_SYNC.
  [[nodiscard]] WriteOptions write_options() const;
  // The pool of as many threads, made at the first call.
  [[nodiscard]] Result<ThreadPool*> pool();
  // Several machines of one process work with one pool, which outlives them.
  void share_pool(ThreadPool& pool) { shared_pool_ = &pool; }

 private:
  const Settings& settings_;
  MachineOptions options_;
  Log& log_;
  CancelToken cancel_ = {};
  ProgressObserver* observer_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  ThreadPool* shared_pool_ = nullptr;
};

}  // namespace cingulum
