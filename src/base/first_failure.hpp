// The failure of the first part that failed, of parts that several threads work on: whichever thread reports first, the
// message does not depend on threads.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>

#include "base/result.hpp"

namespace cingulum {

class FirstFailure {
 public:
  // any thread
  void note(std::size_t part, Status status) {
    if (status) return;
    const std::lock_guard lock(mutex_);
    if (status_ || part < part_) {
      part_ = part;
      status_ = std::move(status);
    }
  }
  // After all parts have ended.
  [[nodiscard]] Status take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  std::size_t part_ = 0;
  Status status_;
};

}  // namespace cingulum
