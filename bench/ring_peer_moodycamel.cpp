#ifdef CINGULUM_BENCH_HAS_MOODYCAMEL
#include <concurrentqueue/concurrentqueue.h>
#include <readerwriterqueue/readerwriterqueue.h>
#endif

#include "bench/ring_peers.hpp"

#ifdef CINGULUM_BENCH_HAS_MOODYCAMEL
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/pin.hpp"
#include "ring/queue/message.hpp"
#endif

namespace cingulum::bench {

#ifdef CINGULUM_BENCH_HAS_MOODYCAMEL
namespace {

using Clock = std::chrono::steady_clock;
using ring::Message;
using Spsc = moodycamel::ReaderWriterQueue<Message>;
using Mpmc = moodycamel::ConcurrentQueue<Message>;

template <class Queue>
std::vector<double> put_get(int repetitions, std::uint64_t count) {
  Queue queue(1024);
  return put_get_nanoseconds(
      repetitions, count, [&](const Message& message) { queue.try_enqueue(message); },
      [&](Message& message) { queue.try_dequeue(message); });
}

template <class Queue>
std::vector<double> stream(int repetitions, std::uint64_t count) {
  std::vector<double> rates;
  for (int i = 0; i < repetitions; ++i) {
    Queue queue(4096);
    const auto start = Clock::now();
    std::thread reader([&] {
      pin(answering_processor);
      Message message;
      for (std::uint64_t n = 0; n < count;) n += queue.try_dequeue(message) ? 1u : 0u;
    });
    Message message;
    for (std::uint64_t n = 0; n < count;) {
      message.header.correlation = n;
      n += queue.try_enqueue(message) ? 1u : 0u;
    }
    reader.join();
    rates.push_back(static_cast<double>(count) / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return rates;
}

}  // namespace

std::optional<std::vector<double>> readerwriterqueue_put_get(int repetitions, std::uint64_t count) {
  return put_get<Spsc>(repetitions, count);
}
std::optional<std::vector<double>> concurrentqueue_put_get(int repetitions, std::uint64_t count) {
  return put_get<Mpmc>(repetitions, count);
}
std::optional<std::vector<double>> readerwriterqueue_stream(int repetitions, std::uint64_t count) {
  return stream<Spsc>(repetitions, count);
}
std::optional<std::vector<double>> concurrentqueue_stream(int repetitions, std::uint64_t count) {
  return stream<Mpmc>(repetitions, count);
}

std::optional<std::vector<double>> readerwriterqueue_round_trips(std::uint64_t count) {
  Spsc there(1024);
  Spsc back(1024);
  std::atomic<bool> stop{false};
  std::thread echo([&] {
    pin(answering_processor);
    Message message;
    while (!stop.load(std::memory_order_relaxed)) {
      if (there.try_dequeue(message)) back.try_enqueue(message);
    }
  });
  std::vector<double> ns;
  Message message;
  const auto end = Clock::now() + std::chrono::seconds(5);
  for (std::uint64_t n = 0; n < count && Clock::now() < end; ++n) {
    const auto start = Clock::now();
    there.try_enqueue(message);
    while (!back.try_dequeue(message)) {
    }
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  stop.store(true);
  echo.join();
  return ns;
}
#else
std::optional<std::vector<double>> readerwriterqueue_put_get(int, std::uint64_t) {
  return std::nullopt;
}
std::optional<std::vector<double>> concurrentqueue_put_get(int, std::uint64_t) {
  return std::nullopt;
}
std::optional<std::vector<double>> readerwriterqueue_round_trips(std::uint64_t) {
  return std::nullopt;
}
std::optional<std::vector<double>> readerwriterqueue_stream(int, std::uint64_t) {
  return std::nullopt;
}
std::optional<std::vector<double>> concurrentqueue_stream(int, std::uint64_t) {
  return std::nullopt;
}
#endif

}  // namespace cingulum::bench
