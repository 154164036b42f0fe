// How an actor is set up: queue sizes and policies, waiting, restart, limits. Plain values with defaults, checked once
// at launch by check_options; the same for every backend.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "ring/queue/ring_types.hpp"
#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

enum class RestartKind : std::uint8_t {
  never,            // the first failure is final
  limited,          // up to max_restarts within window, each after its back-off; then the failure is final
  circuit_breaker,  // up to max_restarts within window; then closed to senders for cool_down, then one attempt; and so
                    // on
};

struct RestartPolicy {
  RestartKind kind = RestartKind::never;
  std::uint32_t max_restarts = 3;
  Nanoseconds window = std::chrono::seconds(60);
  Nanoseconds back_off = std::chrono::microseconds(100);  // doubled by each further failure within the window
  Nanoseconds max_back_off = std::chrono::seconds(1);
  Nanoseconds cool_down = std::chrono::seconds(1);
};

struct ActorOptions {
  std::uint32_t inbox_capacity = 4096;   // messages of each band; a power of two, 1 to 2^20
  std::uint32_t outbox_capacity = 4096;  // likewise
  FullPolicy inbox_policy = FullPolicy::block;
  FullPolicy outbox_policy = FullPolicy::block;
  WaitStrategy waiting;  // of the actor for messages and of senders for room
  RestartPolicy restart;
  Nanoseconds stall_limit = std::chrono::milliseconds(500);  // a body away longer is reported; found within twice this
  std::uint32_t fairness_interval = 16;        // every n-th receive begins at the next band in turn, so none starves
  std::uint32_t latency_sample_interval = 16;  // every n-th message is stamped for the latency histogram; 0: none
  int processor = -1;                          // pin the thread to this one; -1: none
  std::uint32_t seats = 1;                     // of a resident grid: blocks that run the body together; a thread is one
  std::uint32_t reply_buffers = 0;             // of a CPU actor, a power of two (of a grid: GridOptions); 0: none
  std::uint64_t reply_buffer_bytes = 0;        // of each
};

[[nodiscard]] Status check_options(std::string_view actor, const ActorOptions& options);

struct SendOptions {
  Nanoseconds timeout = no_time_limit;       // of waiting for room under policy block; 0: do not wait
  Nanoseconds time_to_live = no_time_limit;  // not given to the body later than this: counted as expired
};

struct Termination {
  enum class Mode : std::uint8_t { drain, discard };
  Mode mode = Mode::drain;
  Nanoseconds timeout = std::chrono::seconds(5);

  // The body gets what is queued; what is left after `timeout` is discarded and counted.
  [[nodiscard]] static Termination drain(Nanoseconds timeout) { return {Mode::drain, timeout}; }
  // The body is told to stop at once. `timeout`: how long to wait for it to return.
  [[nodiscard]] static Termination discard(Nanoseconds timeout = std::chrono::seconds(5)) {
    return {Mode::discard, timeout};
  }
};

struct TerminationReport {
  std::uint64_t drained = 0;  // given to the body after terminate was called
  std::uint64_t dropped = 0;  // never given to it
};

}  // namespace cingulum::ring
