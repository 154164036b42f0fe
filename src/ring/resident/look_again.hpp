// Polling by a host thread of words that a device writes: no doorbell can be rung from there, so the thread looks again
// and again, spinning first, then yielding, then sleeping a little.
#pragma once

#include <chrono>
#include <thread>

#include "ring/queue/atomics.hpp"
#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

// Devices keep real time, also where a test gives the CPU's actors another clock.
[[nodiscard]] inline std::uint64_t deadline_from_now(Nanoseconds timeout) {
  return deadline_after(steady_now_ns(), timeout);
}

class LookAgain {
 public:
  explicit LookAgain(const WaitStrategy& strategy) : strategy_(strategy) {}

  // Something came: spin again.
  void reset() { looks_ = 0; }
  // Reading a clock costs more than a look: it is asked for when this says so.
  [[nodiscard]] bool spins_over() const { return looks_ % 64 == 0; }
  void pause() {
    ++looks_;
    if (looks_ <= strategy_.spins) {
      HostAtomics::pause();
    } else if (strategy_.mode == WaitMode::spin || looks_ <= 2 * strategy_.spins) {
      if (looks_ % 64 == 0) std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      looks_ = (2 * strategy_.spins / 64 + 1) * 64;  // the clock is asked after every sleep
    }
  }

 private:
  const WaitStrategy strategy_;
  std::uint32_t looks_ = 0;
};

}  // namespace cingulum::ring
