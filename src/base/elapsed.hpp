// How long something has taken. Called by verbs and benches, which report it.
#pragma once

#include <chrono>

namespace cingulum {

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace cingulum
