// Many messages at a time through actors, and through a bare ring: messages per second, one rate for each repetition;
// every message is checked. Called by the rows of `cingulum ring bench` and by bench_ring_cpu and bench_ring_gpu.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::measure {

// Who keeps the actors supplied on the host: threads that share them, each writing and reading its own; or one that
// writes and one that reads.
struct HostSide {
  std::uint32_t threads = 1;
  bool writer_and_reader = false;
};

struct Stream {
  std::uint64_t messages_each = 0;  // of every actor
  int repetitions = 3;
  HostSide host = {};
};

// Rates through actors that echo: as many messages a call as the queue takes, and a call for each.
[[nodiscard]] Result<std::vector<double>> batch_rates(std::span<const ring::ActorHandle> actors, const Stream& stream);
[[nodiscard]] Result<std::vector<double>> call_rates(std::span<const ring::ActorHandle> actors, const Stream& stream);

// Slots of 64 bytes through a bare bulk ring from one thread to another, which calls `begin` first. `batch` 1: by the
// calls that put and get one message.
struct BareStream {
  std::uint64_t messages = 0;
  int repetitions = 3;
  std::uint32_t capacity = 1024;
  std::uint32_t batch = 1;
};
[[nodiscard]] Result<std::vector<double>> bare_ring_rates(const BareStream& stream,
                                                          const std::function<void()>& begin = {});

}  // namespace cingulum::measure
