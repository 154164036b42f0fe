// The row of a body that fails, in bench_ring_cpu and bench_ring_gpu; and the packets that benches send and check.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/elapsed.hpp"
#include "bench/program.hpp"
#include "bench/ring_bodies.hpp"
#include "ring/actor/runtime.hpp"

namespace cingulum::bench {

inline ring::Message packet(std::uint64_t number) {
  Packet made;
  made.number = number;
  for (std::uint64_t i = 0; i < 5; ++i) made.words[i] = number + i;
  return ring::make_message(made);
}
inline bool is_packet(const ring::Message& message, std::uint64_t number) {
  const auto got = ring::payload<Packet>(message);
  return got.number == number && got.words[4] == number + 4;
}

// Restarts without a pause, however often it fails.
inline ring::ActorOptions restarting_at_once(ring::ActorOptions options) {
  options.restart.kind = ring::RestartKind::limited;
  options.restart.max_restarts = ~0u;
  options.restart.back_off = options.restart.max_back_off = std::chrono::nanoseconds(1);
  return options;
}

// FailingBody returns an error for one message and answers the next, which waits in its queue meanwhile: from the first
// to the answer.
inline std::vector<double> restart_seconds(ring::Runtime& runtime, ring::Actor& actor, std::uint32_t count) {
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    require(actor.send(packet(FailingBody::fatal)));
    const ring::Message answer = require(runtime.request(actor, packet(i), std::chrono::seconds(10)));
    seconds.push_back(seconds_since(start));
    require(is_packet(answer, i), "the check of an answer");
  }
  const ring::ActorTelemetry told = actor.telemetry();
  require(told.failures == count && told.restarts == count, "the count of failures");
  return seconds;
}

}  // namespace cingulum::bench
