// Logs, with --verbose, how long each part of a job took. Called by the preparation of a field.
#pragma once

#include <chrono>
#include <string_view>

#include "base/log.hpp"

namespace cingulum {

class PartClock {
 public:
  // `job` begins the line of every part: "preparing: reading the series: 0.452 s".
  explicit PartClock(std::string_view job) : job_(job) {}

  // Says the time since the part before this one ended.
  void ended(std::string_view part) {
    const auto now = std::chrono::steady_clock::now();
    log_debug("{}: {}: {:.3f} s", job_, part, std::chrono::duration<double>(now - begin_).count());
    begin_ = now;
  }

 private:
  std::string_view job_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace cingulum
