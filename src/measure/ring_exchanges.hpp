// Single exchanges with actors, each timed by itself: round trips, requests, hops from actor to actor, restarts, ends;
// and what the machine does without actors. In seconds per exchange; every answer is checked. Called by the rows of
// `cingulum ring bench` and by bench_ring_cpu and bench_ring_gpu, which choose the actors and the counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "base/result.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::measure {

// How many exchanges are timed, after some that are not. On a machine whose processors are taken an exchange lasts as
// long as the others' turns: after `longest` the series ends with those that it has.
struct Series {
  std::uint64_t count = 0;
  std::uint64_t warm_up = 0;
  std::chrono::nanoseconds longest = std::chrono::hours(24);
};

// `exchange(i)` is timed; `check(i)` is not. Both return a Status.
template <class Exchange, class Check>
[[nodiscard]] Result<std::vector<double>> time_exchanges(const Series& series, Exchange&& exchange, Check&& check) {
  std::vector<double> seconds;
  seconds.reserve(std::min<std::uint64_t>(series.count, std::uint64_t{1} << 20U));
  const auto end = std::chrono::steady_clock::now() + series.longest;
  for (std::uint64_t i = 0; i < series.warm_up + series.count; ++i) {
    CGL_TRY(check_interrupt());
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY(exchange(i));
    const double took = seconds_since(start);
    CGL_TRY(check(i));
    if (i >= series.warm_up) seconds.push_back(took);
    if (start > end && !seconds.empty()) break;
  }
  return seconds;
}

// Seconds of exchanges with an actor that echoes: send and receive; the call of send alone; a request matched by its
// correlation, by the actor's name or its handle.
[[nodiscard]] Result<std::vector<double>> round_trip_seconds(ring::Actor& echo, const Series& series);
[[nodiscard]] Result<std::vector<double>> send_seconds(ring::Actor& echo, const Series& series);
[[nodiscard]] Result<std::vector<double>> request_seconds(ring::Runtime& runtime, const std::string& echo,
                                                          const Series& series);
[[nodiscard]] Result<std::vector<double>> request_seconds(ring::Runtime& runtime, ring::Actor& echo,
                                                          const Series& series);

// Restarts without a pause, however often the body fails.
[[nodiscard]] ring::ActorOptions restarting_at_once(ring::ActorOptions options);
// Seconds in which an actor with WorkloadBody::hop restarts: from the message at which its body fails to the answer to
// the next, which waits in its queue meanwhile. Failures and restarts must be as many as were caused.
[[nodiscard]] Result<std::vector<double>> restart_seconds(ring::Runtime& runtime, ring::Actor& hop,
                                                          std::uint32_t failures);

// Two actors pass a message to each other: seconds of one way there and back, the mean over `hops` in each repetition.
[[nodiscard]] Result<std::vector<double>> hop_seconds(ring::WorkloadPlace& place, std::uint32_t hops, int repetitions,
                                                      const ring::ActorOptions& options);

// Starts so many actors that wait for messages, and measures how long it takes to end them one after the other.
[[nodiscard]] Result<std::vector<ring::ActorHandle>> start_idle(ring::WorkloadPlace& place, std::uint32_t actors);
[[nodiscard]] Result<double> terminate_seconds(ring::WorkloadPlace& place,
                                               const std::vector<ring::ActorHandle>& actors);

// Exchanges without the runtime: a word passed between two threads and back, the other of which calls `begin` first;
// and a thread that is made and joined, the alternative to an actor.
[[nodiscard]] Result<std::vector<double>> word_seconds(const Series& series, const std::function<void()>& begin = {});
[[nodiscard]] Result<std::vector<double>> thread_seconds(const Series& series);

// Ends an actor of the place and waits for what is in its queues.
[[nodiscard]] Status stop_actor(ring::WorkloadPlace& place, const std::string& name);

}  // namespace cingulum::measure
