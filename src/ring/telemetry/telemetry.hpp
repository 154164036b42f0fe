// The counters of actors, as the snapshot that the runtime hands out, from which ring/telemetry/telemetry_export.* make
// JSON and Prometheus text. Every counter grows only; a message that does not arrive is in exactly one of the counters
// of loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/actor/actor_counters.hpp"
#include "ring/actor/life_cycle.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/ring_types.hpp"
#include "ring/telemetry/histogram.hpp"

namespace cingulum::ring {

// Why messages to an actor did not reach its body.
struct LossCounters {
  std::uint64_t rejected = 0;        // refused to the sender (full, timed out, closed): the sender knows
  std::uint64_t dropped_new = 0;     // policy drop_new
  std::uint64_t dropped_oldest = 0;  // policy drop_oldest: overwritten before they were read
  std::uint64_t expired = 0;         // time to live ended
  std::uint64_t dead_letters = 0;    // in the queue or in the body when the actor failed
  std::uint64_t discarded = 0;       // by terminate
  std::uint64_t late_replies = 0;    // answers that nobody waited for any more
};

struct ActorTelemetry {
  std::string name;
  std::uint16_t number = 0;
  std::string backend;  // "cpu", "cuda:0"
  ActorState state = ActorState::created;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t emitted = 0;
  std::uint64_t refused = 0;
  LossCounters loss;
  std::uint64_t inbox_depth = 0;
  std::uint64_t inbox_depth_of_band[band_count] = {};
  std::uint64_t inbox_peak = 0;
  std::uint64_t inbox_capacity = 0;  // of each band
  std::uint64_t outbox_depth = 0;
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
  std::string last_failure;
  bool stalled = false;  // working without a sign of life for longer than the limit
  bool blocked = false;  // waiting for room at a receiver
  std::uint64_t stalls = 0;
  double busy_share = 0;      // of the time since activation
  double uptime_s = 0;        // since launch
  double messages_per_s = 0;  // received / uptime
  // The time of sampled messages: on the CPU from send to the body's receive, on a device from a request to its answer.
  LatencySummary latency;
};

struct RuntimeTelemetry {
  double uptime_s = 0;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;  // all counters of loss but rejected
  std::uint64_t failures = 0;
  std::vector<ActorTelemetry> actors;
};

}  // namespace cingulum::ring
