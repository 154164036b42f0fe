// The latency of actors on devices, measured on the host for every n-th request: from the moment at which the request
// is written to their inbox to the moment at which its answer is found. A device cannot say when it took a message
// without a write over the bus for each; the answer is such a write anyhow. Held by ring/resident/remote_actor.*.
#pragma once

#include <atomic>

#include "ring/queue/waiting.hpp"
#include "ring/telemetry/histogram.hpp"

namespace cingulum::ring {

class RequestLatency {
 public:
  // Every `interval`-th request is timed; 0: none.
  explicit RequestLatency(std::uint32_t interval) : interval_(interval) {}

  // Called by any thread, before the request is written. One request is timed at a time: one that is never answered
  // gives way to the next that is due.
  void sending(std::uint64_t correlation) {
    if (interval_ == 0 || requests_.fetch_add(1, std::memory_order_relaxed) % interval_ != 0) return;
    timed_.store(0, std::memory_order_relaxed);
    sent_ns_.store(steady_now_ns(), std::memory_order_release);
    timed_.store(correlation, std::memory_order_release);
  }
  // Called with every answer, by one thread at a time.
  void answered(std::uint64_t correlation) {
    if (timed_.load(std::memory_order_acquire) != correlation || correlation == 0) return;
    const std::uint64_t sent = sent_ns_.load(std::memory_order_acquire);
    // Taken by this thread, unless another request took its place meanwhile.
    if (timed_.compare_exchange_strong(correlation, 0, std::memory_order_acq_rel)) {
      const std::uint64_t now = steady_now_ns();
      histogram_.record(now > sent ? now - sent : 0);
    }
  }
  [[nodiscard]] LatencySummary summary() const { return histogram_.summary(); }

 private:
  const std::uint32_t interval_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> timed_{0};  // its correlation, which is never 0
  std::atomic<std::uint64_t> sent_ns_{0};
  LatencyHistogram histogram_;
};

}  // namespace cingulum::ring
