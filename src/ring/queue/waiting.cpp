#include "ring/queue/waiting.hpp"

#include <ctime>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#endif

namespace cingulum::ring {

std::uint64_t steady_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::uint64_t deadline_after(std::uint64_t now_ns, Nanoseconds timeout) {
  if (timeout == no_time_limit) return no_deadline;
  if (timeout <= Nanoseconds::zero()) return now_ns;
  return now_ns + static_cast<std::uint64_t>(timeout.count());
}

#if defined(__linux__)

void Doorbell::wake() noexcept {
  words_.count_ring();
  ::syscall(SYS_futex, &words_.rings, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Doorbell::park(std::uint32_t seen, std::uint64_t deadline_ns) noexcept {
  timespec until = {};
  until.tv_sec = static_cast<std::time_t>(deadline_ns / 1'000'000'000u);
  until.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000u);
  // FUTEX_WAIT_BITSET takes an absolute time on the clock of steady_clock. Early returns are the caller's loop's
  // affair.
  ::syscall(SYS_futex, &words_.rings, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline_ns == no_deadline ? nullptr : &until,
            nullptr, FUTEX_BITSET_MATCH_ANY);
}

#else

void Doorbell::wake() noexcept {
  words_.count_ring();
  std::atomic_ref(words_.rings).notify_all();
}

void Doorbell::park(std::uint32_t seen, std::uint64_t deadline_ns) noexcept {
  if (deadline_ns == no_deadline) {
    std::atomic_ref(words_.rings).wait(seen, std::memory_order_acquire);
    return;
  }
  // There is no portable wait with a deadline on a word.
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

#endif

}  // namespace cingulum::ring
