// How far a long job is: a bar on a terminal, a plain line every ten seconds elsewhere, one JSON object per line for
// programs, or nothing. Verbs make one for each long loop; any thread may call advance(). It draws only from inside
// advance(), set_note() and finish(): there is no thread of its own, so a job that hangs shows a bar that stands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.hpp"

namespace cingulum {

enum class ProgressStyle { automatic, bar, lines, json, silent };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::automatic;  // a bar on a terminal, lines elsewhere
  TalkStream* stream = nullptr;                    // default: stderr
  std::function<std::chrono::steady_clock::time_point()> clock = {};
};

class Progress {
 public:
  // "tracking", 100000, "seeds". A total of 0 is not known in advance: no percentage, no remaining time.
  Progress(std::string task, std::uint64_t total, std::string unit, ProgressOptions options = {});
  ~Progress();  // takes the bar away; a job that did not call finish() gets no last line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t count = 1) noexcept;
  // Further counters of the job, shown behind the numbers: "12 034 streamlines, 9 821 kept".
  void set_note(std::string note) noexcept;
  // The last line or object; calls after it do nothing.
  void finish() noexcept;

  [[nodiscard]] std::uint64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  void draw_if_due() noexcept;
  void draw(Clock::time_point now, bool last);
  void update_rate(Clock::time_point now, std::uint64_t done);
  [[nodiscard]] std::optional<double> remaining_seconds(std::uint64_t done) const;
  [[nodiscard]] std::string counts(std::uint64_t done) const;
  [[nodiscard]] std::string bar_text(std::uint64_t done) const;
  [[nodiscard]] std::string line_text(std::uint64_t done) const;
  [[nodiscard]] std::string last_line_text(std::uint64_t done, double elapsed) const;
  [[nodiscard]] std::string json_text(std::uint64_t done, double elapsed, bool last) const;

  const std::string task_;
  const std::uint64_t total_;
  const std::string unit_;
  TalkStream& stream_;
  const std::function<Clock::time_point()> clock_;
  const ProgressStyle style_;
  const Clock::duration interval_;
  const Clock::time_point start_;

  std::atomic<std::uint64_t> done_{0};
  std::atomic<Clock::rep> next_draw_;  // time since the clock's epoch
  std::mutex mutex_;                   // guards what follows; a drawing that would wait is left out
  bool finished_ = false;
  std::string note_;
  Clock::time_point rate_time_;
  std::uint64_t rate_done_ = 0;
  double rate_per_s_ = 0;
};

}  // namespace cingulum
