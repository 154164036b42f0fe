// Peers of the ring benches, measured in the same run on one host: moodycamel's queues and CAF. Each function answers
// with nothing where the peer was not found when this was built.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "ring/queue/message.hpp"

namespace cingulum::bench {

// Nanoseconds of one put and get in one thread, for each queue alike. Messages are made before: a word that is written
// just before the whole message is read would be waited for, by every queue, longer than the queue takes.
template <class Put, class Get>
std::vector<double> put_get_nanoseconds(int repetitions, std::uint64_t count, Put&& put, Get&& get) {
  using Clock = std::chrono::steady_clock;
  std::vector<ring::Message> messages(64);
  for (std::size_t i = 0; i < messages.size(); ++i) messages[i].header.correlation = i;
  ring::Message taken;
  std::vector<double> ns;
  for (int i = -1; i < repetitions; ++i) {
    std::uint64_t wrong = 0;
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < count; ++n) {
      put(messages[n % 64]);
      get(taken);
      asm volatile("" ::"r"(&taken) : "memory");  // all of it is wanted, not only the word that is checked
      wrong += taken.header.correlation ^ (n % 64);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (i >= 0) ns.push_back(wrong == 0 ? 1e9 * seconds / static_cast<double>(count) : 0);
  }
  return ns;
}

// Nanoseconds of one put and get of 64 bytes in one thread, per repetition.
[[nodiscard]] std::optional<std::vector<double>> readerwriterqueue_put_get(int repetitions, std::uint64_t count);
[[nodiscard]] std::optional<std::vector<double>> concurrentqueue_put_get(int repetitions, std::uint64_t count);
// Nanoseconds of each round trip between two spinning threads, by a queue each way.
[[nodiscard]] std::optional<std::vector<double>> readerwriterqueue_round_trips(std::uint64_t count);
// Messages per second from one thread to another, per repetition.
[[nodiscard]] std::optional<std::vector<double>> readerwriterqueue_stream(int repetitions, std::uint64_t count);
[[nodiscard]] std::optional<std::vector<double>> concurrentqueue_stream(int repetitions, std::uint64_t count);

// The same of CAF: requests to an echo actor, and messages sent to an actor that counts.
[[nodiscard]] std::optional<std::vector<double>> caf_round_trips(std::uint64_t count);
[[nodiscard]] std::optional<std::vector<double>> caf_stream(int repetitions, std::uint64_t count);

}  // namespace cingulum::bench
