// What trackers keep for each getter of a field: tables and kernels, which depend on the getter and on nothing else of
// a plan. Made when a plan first asks for it. Used by the trackers, so that plans which share a field share these, too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.hpp"

namespace cingulum {

// All members: any thread
template <class T>
class KeptByGetter {
 public:
  // Callers wait while another makes it. What could not be made is tried again at the next call.
  template <class Make>
  [[nodiscard]] Result<std::shared_ptr<const T>> get(std::uint32_t getter, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (const auto known = kept_.find(getter); known != kept_.end()) return known->second;
    CGL_TRY_ASSIGN(std::shared_ptr<const T> made, make());
    kept_.emplace(getter, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<const T>> kept_;
};

}  // namespace cingulum
