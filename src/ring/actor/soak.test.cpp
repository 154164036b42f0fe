// Messages in numbers, each checked: sender, sequence and a checksum over the payload; full and empty phases, pauses,
// deactivation and restarts in between; no message is lost, doubled or reordered uncounted. Long mode: 10^8 over the
// four paths.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "ring/actor/runtime.hpp"
#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"
#include "support/long_tests.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;

std::uint64_t message_count(std::uint64_t quick) {
  if (!test::may_take_long()) return quick;
  const char* count = std::getenv("CINGULUM_TEST_MESSAGES");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : 30'000'000;
}

struct Sample {
  static constexpr const char* message_name = "Sample";
  std::uint64_t sequence = 0;
  std::uint32_t sender = 0;
  std::uint32_t words = 0;  // of `filling` that count
  std::uint64_t filling[3] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Sample) == 48);

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15u;
  return value ^ (value >> 29);
}
Message make_sample(std::uint32_t sender, std::uint64_t sequence) {
  Sample sample;
  sample.sequence = sequence;
  sample.sender = sender;
  sample.words = static_cast<std::uint32_t>(sequence % 4);
  std::uint64_t sum = mix(sequence + sender);
  for (std::uint32_t i = 0; i < sample.words; ++i) sum = mix(sum ^ (sample.filling[i] = mix(sequence * 3 + i)));
  sample.checksum = sum;
  return make_message(sample, sequence);
}

// Accepts the numbers of each sender in order: exactly 0, 1, 2, ...
class Judge {
 public:
  explicit Judge(std::uint32_t senders) : next_(senders, 0) {}
  // Also for streams with counted gaps: `may_skip`.
  bool accept(const Message& message, bool may_skip = false) {
    if (!holds<Sample>(message)) return complain("not a sample");
    const Sample sample = payload<Sample>(message);
    if (sample.sender >= next_.size()) return complain(fmt::format("sender {}", sample.sender));
    if (payload<Sample>(make_sample(sample.sender, sample.sequence)).checksum != sample.checksum ||
        message.header.correlation != sample.sequence) {
      return complain(fmt::format("torn: {} of sender {}", sample.sequence, sample.sender));
    }
    std::uint64_t sum = mix(sample.sequence + sample.sender);
    for (std::uint32_t i = 0; i < sample.words && i < 3; ++i) sum = mix(sum ^ sample.filling[i]);
    if (sum != sample.checksum)
      return complain(fmt::format("damaged: {} of sender {}", sample.sequence, sample.sender));
    std::uint64_t& next = next_[sample.sender];
    if (may_skip ? sample.sequence < next : sample.sequence != next) {
      return complain(fmt::format("sender {}: {} came when {} was next", sample.sender, sample.sequence, next));
    }
    next = sample.sequence + 1;
    ++accepted_;
    return true;
  }
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  bool complain(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
    return false;
  }
  std::vector<std::uint64_t> next_;
  std::uint64_t accepted_ = 0;
  std::string complaint_;
};

// Now and then a thread does nothing for a while, so that rings run full and empty.
class Pauses {
 public:
  explicit Pauses(std::uint64_t seed) : random_(seed) {}
  void maybe() {
    if (--until_ > 0) return;
    until_ = static_cast<int>(random_() % 20000) + 1;
    if (random_() % 4 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
    } else {
      std::this_thread::yield();
    }
  }

 private:
  std::mt19937_64 random_;
  int until_ = 1000;
};

template <class Writer, class Reader>
void soak_pair(Writer& writer, Reader& reader, std::uint64_t count) {
  std::thread producer([&] {
    Pauses pauses(1);
    for (std::uint64_t i = 0; i < count; ++i) {
      pauses.maybe();
      const Message message = make_sample(0, i);
      for (std::uint32_t look = 0; writer.try_put(message) != PutStatus::stored; ++look) {
        if (look % 64 == 63) std::this_thread::yield();
      }
    }
    writer.close();
  });
  Judge judge(1);
  Pauses pauses(2);
  Message message;
  for (std::uint32_t look = 0;;) {
    const GetStatus status = reader.try_get(message);
    if (status == GetStatus::closed) break;
    if (status == GetStatus::taken) {
      pauses.maybe();
      if (!judge.accept(message)) break;
    } else if (++look % 64 == 63) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(judge.complaint(), "");
  EXPECT_EQ(judge.accepted(), count);
  reader.leave();
  producer.join();
}

TEST(soak, bulk_rings_of_every_size_deliver_each_message_once_and_in_order) {
  for (const std::uint32_t capacity : {1u, 2u, 64u, 4096u}) {
    RingLine lines[2];
    std::vector<Message> slots(capacity);
    const std::uint64_t start = (std::uint64_t{1} << 32) - 500;
    lines[0].position = lines[1].position = start;
    const BulkRingView<Message> view{slots.data(), &lines[0], &lines[1], capacity};
    BulkWriter<Message> writer(view, start);
    BulkReader<Message> reader(view, start, capacity >= 64 ? capacity / 4 : 1);
    soak_pair(writer, reader, message_count(capacity < 64 ? 20'000 : 400'000) / (capacity < 64 ? 16 : 3));
  }
}

TEST(soak, fast_rings_deliver_each_message_once_and_in_order_across_the_wrap) {
  for (const std::uint32_t capacity : {1u, 2u, 64u, 4096u}) {
    RingLine lines[2];
    std::vector<FastSlot<Message>> slots(capacity);
    const std::uint64_t start = ((std::uint64_t{1} << 31) - 3) * capacity;
    lines[1].position = start;
    const FastRingView<Message> view{slots.data(), &lines[0], &lines[1], capacity};
    FastWriter<Message> writer(view, start);
    FastReader<Message> reader(view, start, capacity >= 64 ? capacity / 4 : 1);
    soak_pair(writer, reader, message_count(capacity < 64 ? 20'000 : 400'000) / (capacity < 64 ? 16 : 3));
  }
}

TEST(soak, an_overwritten_ring_loses_nothing_that_it_does_not_count) {
  for (const std::uint32_t capacity : {1u, 4u, 256u}) {
    RingLine lines[2];
    std::vector<FastSlot<Message>> slots(capacity);
    const FastRingView<Message> view{slots.data(), &lines[0], &lines[1], capacity};
    const std::uint64_t count = message_count(200'000) / 4;
    std::thread producer([&] {
      FastWriter<Message> writer(view);
      Pauses pauses(3);
      for (std::uint64_t i = 0; i < count; ++i) {
        pauses.maybe();
        writer.put_over(make_sample(0, i));
      }
      writer.close();
    });
    FastReader<Message> reader(view);
    Judge judge(1);
    Message message;
    for (;;) {
      const GetStatus status = reader.try_get(message);
      if (status == GetStatus::closed) break;
      if (status == GetStatus::taken && !judge.accept(message, true)) break;
      if (status == GetStatus::empty) std::this_thread::yield();
    }
    producer.join();
    EXPECT_EQ(judge.complaint(), "");
    EXPECT_EQ(judge.accepted() + reader.lost(), count) << "capacity " << capacity;
  }
}

// Passes on what it gets; fails now and then (before it has taken anything) when told to by a message of another type.
struct Poison {
  static constexpr const char* message_name = "Poison";
};
struct Relay {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (holds<Poison>(message)) return 1;
      context.send(message);
    }
    return 0;
  }
};

// Host threads -> actor -> actor -> host, while the actors are deactivated, reactivated and fail.
TEST(soak, chains_of_actors_lose_nothing_under_deactivation_and_restarts) {
  for (const WaitMode mode : {WaitMode::spin, WaitMode::spin_then_park}) {
    const auto runtime = Runtime::create().value();
    ActorOptions options;
    options.inbox_capacity = options.outbox_capacity = 64;
    options.waiting = {mode, 200};
    options.restart.kind = RestartKind::limited;
    options.restart.max_restarts = 1u << 30;
    options.restart.back_off = 10us;
    options.restart.max_back_off = 100us;
    for (const char* name : {"first", "second"}) ASSERT_TRUE(runtime->launch(name, Relay{}, options));
    ASSERT_TRUE(runtime->pipeline({"first", "second"}));
    for (const char* name : {"first", "second"}) ASSERT_TRUE(runtime->activate(name));
    const ActorHandle first = runtime->find("first").value();
    const ActorHandle second = runtime->find("second").value();
    constexpr std::uint32_t senders = 3;
    const std::uint64_t each = message_count(60'000) / senders / 2;
    std::vector<std::thread> threads;
    std::atomic<bool> done{false};
    for (std::uint32_t sender = 0; sender < senders; ++sender) {
      threads.emplace_back([&, sender] {
        Pauses pauses(10 + sender);
        for (std::uint64_t i = 0; i < each; ++i) {
          pauses.maybe();
          if (!first->send(make_sample(sender, i))) return;
        }
      });
    }
    std::atomic<std::uint64_t> poisons{0};
    std::atomic<std::uint64_t> deactivations{0};
    threads.emplace_back([&] {
      std::mt19937_64 random(99);
      while (!done.load()) {
        const ActorHandle& actor = random() % 2 == 0 ? first : second;
        switch (random() % 3) {
          case 0:
            if (actor->deactivate(1ms)) {
              ++deactivations;
              std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
              (void)actor->reactivate();
            }
            break;
          case 1:
            if (actor->try_send(make_message(Poison{}, 0, Band::high)) == PutStatus::stored) ++poisons;
            break;
          default: (void)actor->telemetry(); break;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 1500));
      }
    });
    Judge judge(senders);
    while (judge.accepted() < senders * each) {
      const auto message = second->receive(60s);
      ASSERT_TRUE(message) << message.error().message();
      if (!judge.accept(*message)) break;
    }
    done.store(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(judge.complaint(), "");
    EXPECT_EQ(judge.accepted(), senders * each);
    // One more for each, whatever came of the random ones; all of them are over when their restarts are.
    for (const ActorHandle& actor : {first, second}) {
      ASSERT_TRUE(actor->send(make_message(Poison{}, 0, Band::high), {.timeout = 60s}));
      ++poisons;
    }
    for (int look = 0; look < 60'000 && first->telemetry().restarts + second->telemetry().restarts < poisons.load();
         ++look) {
      std::this_thread::sleep_for(1ms);
    }
    const auto extra = second->receive(5ms);
    EXPECT_FALSE(extra) << "a message came twice";
    const RuntimeTelemetry telemetry = runtime->telemetry();
    EXPECT_EQ(telemetry.failures, poisons.load());
    EXPECT_EQ(first->telemetry().loss.dead_letters + second->telemetry().loss.dead_letters, poisons.load());
    EXPECT_GT(deactivations.load(), 0u);
    const ShutdownReport report = runtime->shutdown(Termination::drain(10s));
    EXPECT_TRUE(report.errors.empty());
  }
}

// Many to one and back: requests from several threads, each with its own answer.
TEST(soak, requests_from_many_threads_get_their_own_answers) {
  const auto runtime = Runtime::create().value();
  const ActorHandle actor = runtime->launch("relay", Relay{}).value();
  ASSERT_TRUE(actor->activate());
  constexpr std::uint32_t askers = 3;
  const std::uint64_t each = message_count(30'000) / 10 / askers;
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t asker = 0; asker < askers; ++asker) {
    threads.emplace_back([&, asker] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const Message question = make_sample(asker, i);
        const auto answer = runtime->request(*actor, question, 60s);
        if (!answer || answer->header.correlation != i ||
            std::memcmp(answer->payload, question.payload, payload_capacity) != 0) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(actor->telemetry().received, askers * each);
}

// Start and stop in a loop: threads, memory and names are given back.
TEST(soak, launching_and_terminating_in_a_loop_leaves_nothing_behind) {
  const auto runtime = Runtime::create().value();
  const std::uint64_t rounds = message_count(200) > 200 ? 5000 : 200;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    auto actor = runtime->launch("relay", Relay{});
    ASSERT_TRUE(actor);
    ASSERT_TRUE((*actor)->activate());
    ASSERT_TRUE((*actor)->send(make_sample(0, 0)));
    const auto report = runtime->terminate("relay", i % 2 == 0 ? Termination::drain(10s) : Termination::discard());
    ASSERT_TRUE(report);
    ASSERT_EQ((*actor)->telemetry().received + report->dropped, 1u);
    const std::weak_ptr<Actor> watch = *actor;
    actor->reset();
    // The runtime's monitor may be looking at it.
    for (int look = 0; look < 5000 && !watch.expired(); ++look) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(watch.expired());
  }
}

}  // namespace
}  // namespace cingulum::ring
