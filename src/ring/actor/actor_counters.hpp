// The line of counters that an actor itself writes, on the host or on a device. ring/telemetry/telemetry.hpp makes
// snapshots of it; the supervision sees stalls by it.
#pragma once

#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

// One writer: the actor. Relaxed stores by it, relaxed loads by others; on a device stored once per millisecond.
struct alignas(line_bytes) ActorCounters {
  std::uint64_t received = 0;   // messages given to the body
  std::uint64_t sent = 0;       // answered, to the output or to the requester
  std::uint64_t emitted = 0;    // passed on to other actors, each receiver counted
  std::uint64_t refused = 0;    // of send and emit: full, closed or dropped at the receiver
  std::uint64_t heartbeat = 0;  // changes whenever the body comes back to its context
  std::uint64_t busy_ns = 0;    // time between receive and the next receive
  std::uint64_t in_body = 0;    // 0 waiting for a message, 1 working on one, 2 waiting for room at a receiver
  std::uint64_t started = 0;    // how often the body began
};
static_assert(sizeof(ActorCounters) == line_bytes);

}  // namespace cingulum::ring
