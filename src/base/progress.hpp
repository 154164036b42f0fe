// How far a long job is. A job makes one Progress for each long loop and any thread may advance it; an observer is
// called: the drawing on stderr (progress_drawing.hpp), or one that the run brings (a callable of Python). Observers
// are called only from inside advance(), set_note() and finish(): there is no thread of its own, so a job that hangs
// shows a bar that stands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.hpp"

namespace cingulum {

struct ProgressTask {
  std::string label;        // "tracking"
  std::uint64_t total = 0;  // 0: not known in advance
  std::string unit;         // "seeds"
};

struct ProgressStep {
  std::uint64_t done = 0;
  std::chrono::steady_clock::duration elapsed{};  // since the task began
  std::string_view note;                          // further counters: "12 034 streamlines, 9 821 kept"
};

// Told of one task by one thread at a time, of several tasks of a run possibly at once. What it throws is dropped.
class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  // Steps come at most this often.
  [[nodiscard]] virtual std::chrono::steady_clock::duration interval() const { return std::chrono::milliseconds(100); }
  virtual void begin(const ProgressTask& /*task*/) {}
  virtual void step(const ProgressTask& task, const ProgressStep& step) = 0;
  // The task is complete. Not called for one that failed.
  virtual void finish(const ProgressTask& task, const ProgressStep& last) = 0;
  // The task is over, complete or not: the last call about it.
  virtual void end(const ProgressTask& /*task*/) {}
};

enum class ProgressStyle { automatic, bar, lines, json, silent };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::automatic;  // of the drawing: a bar on a terminal, lines elsewhere
  TalkStream* stream = nullptr;                    // of the drawing; default: stderr
  std::function<std::chrono::steady_clock::time_point()> clock = {};
  ProgressObserver* observer = nullptr;  // is called instead of the drawing; outlives the task
};

class Progress {
 public:
  // "tracking", 100000, "seeds".
  Progress(std::string label, std::uint64_t total, std::string unit, ProgressOptions options = {});
  ~Progress();  // a job that did not call finish() gets no last line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // any thread
  void advance(std::uint64_t count = 1) noexcept;
  // any thread
  void set_note(std::string note) noexcept;
  // The last line or object; calls after it do nothing. any thread
  void finish() noexcept;

  // any thread
  [[nodiscard]] std::uint64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  void report_if_due() noexcept;
  [[nodiscard]] ProgressStep step_at(Clock::time_point now) const { return {done(), now - start_, note_}; }

  const ProgressTask task_;
  const std::function<Clock::time_point()> clock_;
  const std::unique_ptr<ProgressObserver> drawing_;  // where the run brought no observer
  ProgressObserver* const observer_;                 // null: silent
  const Clock::duration interval_;
  const Clock::time_point start_;

  std::atomic<std::uint64_t> done_{0};
  std::atomic<Clock::rep> next_step_;  // time since the clock's epoch
  std::mutex mutex_;                   // guards what follows; a step that would wait is left out
  bool finished_ = false;
  std::string note_;
};

}  // namespace cingulum
