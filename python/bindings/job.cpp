#include "job.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "base/log.hpp"
#include "native_error.hpp"

namespace cingulum::python {
namespace {

// A signal is noticed at most this much later.
constexpr std::chrono::milliseconds looks_for_signals_every{40};

std::atomic<pid_t> process_that_worked{0};
std::atomic<bool> is_fork{false};  // of a process that had worked

// Log lines on their way to Python. any thread
class LogQueue final : public LogSink {
 public:
  void write(LogLevel level, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(level, std::string(text));
  }
  [[nodiscard]] std::vector<std::pair<LogLevel, std::string>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

LogQueue& log_queue() {
  static LogQueue queue;
  return queue;
}

struct ProgressEvent {
  ProgressTask task;
  std::uint64_t done = 0;
  double seconds = 0;
  std::string note;
  std::string state;  // begin, step, finish, end
};

// Remembers what a job told. Of steps of one task only the latest counts.
class ProgressQueue final : public ProgressObserver {
 public:
  void begin(const ProgressTask& task) override { add({task, 0, 0, {}, "begin"}); }
  void step(const ProgressTask& task, const ProgressStep& step) override { add(event(task, step, "step")); }
  void finish(const ProgressTask& task, const ProgressStep& last) override { add(event(task, last, "finish")); }
  void end(const ProgressTask& task) override { add({task, 0, 0, {}, "end"}); }

  [[nodiscard]] std::vector<ProgressEvent> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  static ProgressEvent event(const ProgressTask& task, const ProgressStep& step, const char* state) {
    return {task, step.done, std::chrono::duration<double>(step.elapsed).count(), std::string(step.note), state};
  }
  void add(ProgressEvent event) {
    const std::lock_guard lock(mutex_);
    if (!events_.empty() && events_.back().state == "step" && event.state == "step" &&
        events_.back().task.label == event.task.label) {
      events_.back() = std::move(event);
    } else {
      events_.push_back(std::move(event));
    }
  }

  std::mutex mutex_;
  std::vector<ProgressEvent> events_;
};

const char* python_level(LogLevel level) {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::info: return "info";
    case LogLevel::debug: break;
  }
  return "debug";
}

// With the GIL; what Python raises is thrown.
void deliver(ProgressQueue& told, const nb::object& progress) {
  for (const auto& [level, text] : log_queue().take()) {
    nb::module_::import_("cingulum._talk").attr("log")(python_level(level), text.c_str());
  }
  for (const ProgressEvent& event : told.take()) {
    if (progress.is_none()) continue;
    const nb::object make = nb::module_::import_("cingulum._talk").attr("ProgressEvent");
    progress(make(event.task.label.c_str(), event.done, event.task.total, event.task.unit.c_str(), event.seconds,
                  event.note.c_str(), event.state.c_str()));
  }
}

Status guarded(const std::function<Status(JobContext&)>& work, JobContext& context) {
  try {
    return work(context);
  } catch (const std::bad_alloc&) {
    return tl::make_unexpected(Error(ErrorKind::out_of_memory, "out of memory"));
  } catch (const std::exception& exception) {
    return fail(ErrorKind::invalid_state, "internal error, please report it: {}", exception.what());
  }
}

}  // namespace

void refuse_after_fork() {
  // Asked at every call, of an actor every microsecond: the system is told once to note a fork, and not asked who we
  // are.
  static const int noted = ::pthread_atfork(nullptr, nullptr, [] { is_fork = process_that_worked != 0; });
  (void)noted;
  if (process_that_worked.load(std::memory_order_relaxed) == 0) process_that_worked = ::getpid();
  if (!is_fork.load(std::memory_order_relaxed)) return;
  throw NativeError(
      Error(ErrorKind::invalid_state,
            fmt::format("this process ({}) was forked from one that had already worked with cingulum ({}), whose "
                        "threads and devices it has not; start processes by 'spawn' or 'forkserver', or fork before "
                        "the first call",
                        ::getpid(), process_that_worked.load())));
}

void send_log_to_python(bool on) {
  Log::standard().set_sink(on ? &log_queue() : nullptr);
}

void run_job(const nb::object& progress, Stopping stopping, const std::function<Status(JobContext&)>& work,
             const std::function<void()>& on_stop) {
  refuse_after_fork();
  const bool debug = nb::cast<bool>(nb::module_::import_("cingulum._talk").attr("wants_debug")());
  Log::standard().set_level(debug ? LogLevel::debug : LogLevel::info);

  CancelSource cancel = stopping == Stopping::by_token ? CancelSource() : CancelSource(CancelToken());
  ProgressQueue told;
  JobContext context{cancel.token(), &told};
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Status status;
  std::optional<nb::python_error> raised;  // destroyed with the GIL
  const auto look_after = [&] {
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      deliver(told, progress);
    } catch (nb::python_error& error) {
      if (!raised) raised.emplace(std::move(error));
      cancel.cancel();
      if (on_stop) on_stop();
      if (stopping == Stopping::by_process) request_interrupt();
    }
  };
  {
    const nb::gil_scoped_release without_gil;
    std::thread worker([&] {
      Status result = guarded(work, context);
      const std::lock_guard lock(mutex);
      status = std::move(result);
      done = true;
      ended.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, looks_for_signals_every, [&] { return done; })) {
      lock.unlock();
      {
        const nb::gil_scoped_acquire with_gil;
        if (!raised) look_after();
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (stopping == Stopping::by_process && raised) clear_interrupt();
  if (!raised) look_after();
  if (raised) throw std::move(*raised);
  throw_failure(std::move(status));
}

}  // namespace cingulum::python
