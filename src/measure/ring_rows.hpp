// The rows of `cingulum ring bench`: the runtime beside what the machine itself allows in the same run. On a CPU the
// limits are two threads that pass a word, or slots of a bare ring, without any runtime; the alternative to an actor is
// a thread that is made and joined for each piece of work. On a device they are bare kernels, measured before the
// actors came (WorkloadPlace::limits), and a kernel launched for each piece of work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::measure {

struct RingRow {
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

struct RingCounts {
  std::uint32_t round_trips = 50000;
  std::uint32_t stream_messages = 1000000;
  std::uint32_t hops = 50000;
  std::uint32_t many_actors = 8;
  std::uint32_t idle_actors = 32;  // of the row about stopping
  std::uint32_t failures = 1000;   // of the row about restarting
};

// All rows about single answers, and all about many messages.
[[nodiscard]] Result<std::vector<RingRow>> ring_answer_rows(ring::WorkloadPlace& place, const RingCounts& counts);
[[nodiscard]] Result<std::vector<RingRow>> ring_stream_rows(ring::WorkloadPlace& place, const RingCounts& counts);

}  // namespace cingulum::measure
