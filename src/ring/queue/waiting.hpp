// How host threads wait for a ring: spin, or spin a while and then park in the kernel. A Doorbell belongs to whoever
// reads (or waits for room); the other side rings it after it has published. In spin mode ringing costs nothing. When
// parking it costs one atomic addition on the waiter count: that addition and the waiter's own are on one word, so
// either the ringer sees the waiter, or the waiter sees what was published; no wake-up is lost and no fence is needed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "ring/queue/atomics.hpp"
#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

enum class WaitMode : std::uint8_t { spin, spin_then_park };

struct WaitStrategy {
  WaitMode mode = WaitMode::spin_then_park;
  std::uint32_t spins = 2000;  // looks before parking; in spin mode, looks between yields of the processor
};

using Nanoseconds = std::chrono::nanoseconds;
constexpr Nanoseconds no_time_limit = Nanoseconds::max();

// steady_clock in nanoseconds; deadlines are absolute on it.
[[nodiscard]] std::uint64_t steady_now_ns();
constexpr std::uint64_t no_deadline = ~std::uint64_t{0};
[[nodiscard]] std::uint64_t deadline_after(std::uint64_t now_ns, Nanoseconds timeout);

// For whoever a thread works for: waits until it has ended, unless he is that thread himself.
inline void join_or_let_go(std::thread& thread) {
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

// Takes the place of processor and clock in tests: threads that take part run one at a time, in an order that the
// schedule chooses, on virtual time (ring/cpu/turn_schedule.hpp). Every wait and every delivery is a point where
// another goes on.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // Called before a thread that takes part is started. That thread calls enter with this number first of all (enter
  // returns when it is the thread's turn) and leave last of all.
  [[nodiscard]] virtual int announce() = 0;
  virtual void enter(int number) = 0;
  virtual void leave() = 0;
  // The calling thread did something that others may wait for.
  virtual void step() = 0;
  // The calling thread has nothing to do until another thread did a step or `deadline_ns` has come. Called by a thread
  // that does not take part (the test's own), it lets the others run.
  virtual void idle(std::uint64_t deadline_ns) = 0;
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
};

// The two words of a doorbell and what is done with them, apart from sleeping itself, so that the tests' interleaver
// can go through it. A waiter: join, look once more, sleep while rings is what join answered, part. A ringer: publish,
// then wake whoever sleeps if anyone_waits (which adds to `rings`).
template <class Atomics>
struct BellWords {
  alignas(line_bytes) std::uint32_t waiters = 0;
  std::uint32_t rings = 0;

  [[nodiscard]] std::uint32_t join() {
    Atomics::add(waiters, 1u);
    return Atomics::load_acquire(rings);
  }
  void part() { Atomics::add(waiters, ~0u); }
  [[nodiscard]] bool anyone_waits() { return Atomics::add(waiters, 0u) != 0; }
  void count_ring() { Atomics::add(rings, 1u); }
};

class Doorbell {
 public:
  explicit Doorbell(WaitStrategy strategy, Schedule* schedule = nullptr) : strategy_(strategy), schedule_(schedule) {}

  // After publishing: wakes all who wait.
  void ring() {
    if (schedule_ != nullptr) return schedule_->step();
    if (strategy_.mode == WaitMode::spin) return;
    if (words_.anyone_waits()) wake();
  }
  // Wakes all whatever the mode and count; for closing, stopping and failing.
  void ring_always() {
    if (schedule_ != nullptr) schedule_->step();
    wake();
  }

  // Waits until ready() or the deadline; answers whether ready. `ready` is called again and again, by this thread only.
  template <class Ready>
  [[nodiscard]] bool wait(Ready&& ready, std::uint64_t deadline_ns);

  [[nodiscard]] std::uint64_t now_ns() const { return schedule_ != nullptr ? schedule_->now_ns() : steady_now_ns(); }

 private:
  void wake() noexcept;
  void park(std::uint32_t seen, std::uint64_t deadline_ns) noexcept;

  const WaitStrategy strategy_;
  Schedule* const schedule_;
  BellWords<HostAtomics> words_;
};

template <class Ready>
bool Doorbell::wait(Ready&& ready, std::uint64_t deadline_ns) {
  for (std::uint32_t look = 0;; ++look) {
    if (ready()) return true;
    if (deadline_ns == 0) return false;
    if (schedule_ != nullptr) {
      if (schedule_->now_ns() >= deadline_ns) return ready();
      schedule_->idle(deadline_ns);
      continue;
    }
    HostAtomics::pause();
    if (look < strategy_.spins) continue;
    if (deadline_ns != no_deadline && steady_now_ns() >= deadline_ns) return ready();
    if (strategy_.mode == WaitMode::spin) {
      std::this_thread::yield();
      look = 0;
      continue;
    }
    const std::uint32_t seen = words_.join();
    const bool now_ready = ready();
    if (!now_ready) park(seen, deadline_ns);
    words_.part();
    if (now_ready) return true;
  }
}

}  // namespace cingulum::ring
