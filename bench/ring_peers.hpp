// What the rings and actors of one host are compared with, in the same run: moodycamel's queues and CAF. Each answers
// with nothing where it was not found when this was built.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cingulum::bench {

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
