// What `cingulum ring bench` measures: the runtime beside what the machine itself allows in the same run. On a CPU the
// limits are two threads that pass a word, or slots of a bare ring, without any runtime; the alternative to an actor is
// a thread that is made and joined for each piece of work. On a device they are bare kernels, measured before the
// actors came (WorkloadPlace::limits), and a kernel launched for each piece of work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {

struct BenchRow {
  std::string scenario;
  std::string place;
  std::string unit;  // "us", "ns", "messages/s", "ms"
  double value = 0;  // the median, or the rate
  double p99 = 0;    // of latencies; 0: not a latency
  double p999 = 0;
  double best = 0;         // the smallest latency or largest rate of the repetitions
  std::string limit_name;  // what the machine does without the runtime; empty: no limit
  double limit = 0;
};

struct BenchOptions {
  std::uint32_t round_trips = 50000;
  std::uint32_t stream_messages = 1000000;
  std::uint32_t hops = 50000;
  std::uint32_t many_actors = 8;
  std::uint32_t idle_actors = 32;  // of the row about stopping
  std::uint32_t failures = 1000;   // of the row about restarting
};

// Two threads that pass a word to and fro.
[[nodiscard]] BenchRow bench_word_ping_pong(std::uint32_t round_trips);
// All rows about single answers, and all about many messages.
[[nodiscard]] Result<std::vector<BenchRow>> bench_answers(WorkloadPlace& place, const BenchOptions& options);
[[nodiscard]] Result<std::vector<BenchRow>> bench_streams(WorkloadPlace& place, const BenchOptions& options);

// For any place: through the whole runtime, every answer checked.
[[nodiscard]] Result<BenchRow> bench_round_trip(WorkloadPlace& place, std::uint32_t round_trips);
[[nodiscard]] Result<BenchRow> bench_request(WorkloadPlace& place, std::uint32_t round_trips);
// One host thread and so many actors: many messages a call, and a call for each.
[[nodiscard]] Result<BenchRow> bench_batches(WorkloadPlace& place, std::uint32_t actors, std::uint32_t messages);
[[nodiscard]] Result<BenchRow> bench_stream(WorkloadPlace& place, std::uint32_t actors, std::uint32_t messages);
// From the message at which a body fails to the answer to the next, which waits in its queue meanwhile.
[[nodiscard]] Result<BenchRow> bench_restart(WorkloadPlace& place, std::uint32_t failures);
[[nodiscard]] Result<BenchRow> bench_stop(WorkloadPlace& place, std::uint32_t actors);

}  // namespace cingulum::ring
