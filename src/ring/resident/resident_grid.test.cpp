// Actors on a resident grid through the whole runtime: the same tests on the emulated grid and on CUDA. Every kernel
// has a time limit of its own.
#include "ring/resident/resident_grid.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "ring/each_grid.hpp"
#include "ring/resident/emulated_backend.hpp"
#include "ring/resident/resident_actor.hpp"
#include "ring/resident_bodies.hpp"
#include "support/own_child.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;
using cingulum::testing::fails_with;
using testing::Add;
using testing::BatchEcho;
using testing::Bounce;
using testing::Busy;
using testing::Echo;
using testing::FailEvery;
using testing::Flood;
using testing::LookUp;
using testing::number_of;
using testing::Numbered;
using testing::numbered;
using testing::Sum;
using testing::Swallow;
using testing::Three;

// How many messages, say: CINGULUM_TEST_RING_MESSAGES sets another count, for slow tools.
std::uint64_t count_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class ResidentGrids : public testing::EachGrid {
 protected:
  void open(GridOptions options = {}) {
    if (options.time_limit == 0ns) options.time_limit = 20s;
    if (is_emulated()) options.seats = std::min(options.seats, 8u);
    open_on(testing::make_test_backend(GetParam()), options);
  }
  [[nodiscard]] bool is_emulated() const { return !is("cuda"); }

  template <class Body>
  ActorHandle start(const std::string& name, const char* body_name, const Body& body, RingKind kind = RingKind::fast,
                    const ActorOptions& options = {}) {
    return testing::activated(grid_->launch(*runtime_, name, body_name, body, kind, options));
  }
  static bool comes_true(const std::function<bool()>& what, Nanoseconds patience = 5s) {
    return testing::comes_true(what, patience);
  }
};
CGL_FOR_DEVICES(ResidentGrids, "emulated", "cuda");

#define OPEN(...)    \
  open(__VA_ARGS__); \
  if (::testing::Test::IsSkipped() || HasFatalFailure()) return

TEST_P(ResidentGrids, an_echo_answers_every_message_whole_and_in_order) {
  OPEN();
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    const auto echo = start(kind == RingKind::fast ? "fast" : "bulk", "echo", Echo{}, kind);
    ASSERT_TRUE(echo);
    for (std::uint64_t i = 0; i < 200; ++i) {
      ASSERT_OK(echo->send(message(i)));
      ASSERT_EQ(number_of(echo->receive(5s)), i);
    }
  }
}

TEST_P(ResidentGrids, requests_are_answered_by_correlation_through_the_runtime) {
  OPEN();
  ASSERT_TRUE(start("sum", "sum", Sum{}));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i < 100; ++i) {
    sum += i + (i % 256) * ((i % 256) - 1) / 2;
    ASSERT_EQ(number_of(runtime_->request("sum", message(i), 5s)), sum);
  }
}

// Whether the answer comes while the requester polls, or after it has polled in vain.
TEST_P(ResidentGrids, watched_requests_are_answered_during_the_look_and_behind_it) {
  OPEN();
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_TRUE(echo);
  for (std::uint64_t i = 0; i < 50; ++i) {
    auto pending = runtime_->request_watched(*echo, message(i), 5s);
    ASSERT_TRUE(pending);
    EXPECT_EQ(number_of(pending->wait(5s)), i);
  }
  ASSERT_TRUE(echo->deactivate(5s));
  auto waiting = runtime_->request_watched(*echo, message(7), 10us);
  ASSERT_TRUE(waiting);
  EXPECT_FALSE(waiting->is_done());
  ASSERT_TRUE(echo->reactivate());
  // Nobody polls: the service thread was called.
  for (int i = 0; i < 5000 && !waiting->is_done(); ++i) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(waiting->is_done());
  EXPECT_EQ(number_of(waiting->wait(0ns)), 7u);
}

// Capacities down to 1, both kinds, more messages than laps of the smallest, with the reader pausing.
TEST_P(ResidentGrids, rings_wrap_and_fill_without_loss_at_every_capacity) {
  OPEN();
  std::mt19937 random(7);
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    for (const std::uint32_t capacity : {1u, 2u, 4u, 64u, 1024u}) {
      ActorOptions options;
      options.inbox_capacity = capacity;
      options.outbox_capacity = capacity;
      const std::string name = fmt::format("echo {} {}", static_cast<int>(kind), capacity);
      const auto echo = start(name, "echo", Echo{}, kind, options);
      ASSERT_TRUE(echo);
      const std::uint64_t count = is_emulated() ? 500 : 20000;
      std::thread sender([&] {
        for (std::uint64_t i = 0; i < count; ++i) {
          const Status sent = echo->send(message(i), {.timeout = 10s});
          if (!sent) {
            ADD_FAILURE() << sent.error().message();
            return;
          }
        }
      });
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t number = number_of(echo->receive(10s));
        EXPECT_EQ(number, i);
        if (number != i) break;
        if (random() % 512 == 0) std::this_thread::sleep_for(1ms);
      }
      sender.join();
      ASSERT_OK(runtime_->terminate(name, Termination::discard()));
    }
  }
}

TEST_P(ResidentGrids, a_full_inbox_rejects_drops_or_times_out_and_counts_it) {
  OPEN();
  ActorOptions options;
  options.inbox_capacity = 4;
  options.inbox_policy = FullPolicy::reject;
  const auto rejecting = start("rejecting", "echo", Echo{}, RingKind::fast, options);
  options.inbox_policy = FullPolicy::drop_new;
  const auto dropping = start("dropping", "echo", Echo{}, RingKind::bulk, options);
  options.inbox_policy = FullPolicy::block;
  const auto blocking = start("blocking", "echo", Echo{}, RingKind::fast, options);
  options.inbox_policy = FullPolicy::drop_oldest;
  const auto overwriting = start("overwriting", "echo", Echo{}, RingKind::fast, options);
  for (const auto& actor : {rejecting, dropping, blocking, overwriting}) {
    ASSERT_TRUE(actor);
    ASSERT_OK(actor->deactivate());
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_OK(actor->send(message(i)));
  }
  EXPECT_TRUE(fails_with(rejecting->send(message(4)), ErrorKind::full, "full"));
  EXPECT_TRUE(fails_with(dropping->send(message(4)), ErrorKind::full, "dropped"));
  EXPECT_TRUE(fails_with(blocking->send(message(4), {.timeout = 1ms}), ErrorKind::timed_out, "room"));
  for (std::uint64_t i = 4; i < 10; ++i) ASSERT_OK(overwriting->send(message(i)));
  EXPECT_EQ(rejecting->telemetry().loss.rejected, 1u);
  EXPECT_EQ(dropping->telemetry().loss.dropped_new, 1u);
  for (const auto& actor : {rejecting, dropping, blocking}) {
    ASSERT_OK(actor->reactivate());
    for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(number_of(actor->receive(5s)), i);
  }
  // Six were overwritten: the oldest that can be there is the seventh.
  ASSERT_OK(overwriting->reactivate());
  for (std::uint64_t i = 6; i < 10; ++i) EXPECT_EQ(number_of(overwriting->receive(5s)), i);
  ASSERT_OK(overwriting->terminate(Termination::drain(1s)));
  EXPECT_EQ(overwriting->telemetry().loss.dropped_oldest, 6u);
}

TEST_P(ResidentGrids, a_deactivated_actor_is_given_nothing_and_keeps_its_messages) {
  OPEN();
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    const auto echo = start(kind == RingKind::fast ? "fast" : "bulk", "echo", Echo{}, kind);
    ASSERT_TRUE(echo);
    for (int round = 0; round < 20; ++round) {
      ASSERT_OK(echo->deactivate());
      for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(echo->send(message(i)));
      EXPECT_TRUE(fails_with(echo->receive(3ms), ErrorKind::timed_out, "no message"));
      ASSERT_OK(echo->reactivate());
      for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(number_of(echo->receive(5s)), i);
    }
  }
}

TEST_P(ResidentGrids, terminating_drains_or_discards_and_every_message_is_accounted_for) {
  OPEN();
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    const std::string ring = kind == RingKind::fast ? "fast" : "bulk";
    const auto drained = start("drained " + ring, "echo", Echo{}, kind);
    const auto discarded = start("discarded " + ring, "echo", Echo{}, kind);
    for (const auto& actor : {drained, discarded}) {
      ASSERT_TRUE(actor);
      ASSERT_OK(actor->deactivate());
      for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(actor->send(message(i)));
    }
    ASSERT_OK_AND_ASSIGN(const TerminationReport of_drained,
                         runtime_->terminate("drained " + ring, Termination::drain(5s)));
    EXPECT_EQ(of_drained.drained, 100u);
    EXPECT_EQ(of_drained.dropped, 0u);
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(number_of(drained->receive(1s)), i);
    EXPECT_TRUE(fails_with(drained->receive(1s), ErrorKind::closed, "ended"));
    ASSERT_OK_AND_ASSIGN(const TerminationReport of_discarded,
                         runtime_->terminate("discarded " + ring, Termination::discard()));
    EXPECT_EQ(of_discarded.drained, 0u);
    EXPECT_EQ(of_discarded.dropped, 100u);
    EXPECT_EQ(discarded->telemetry().loss.discarded, 100u);
    EXPECT_TRUE(fails_with(discarded->send(message(1)), ErrorKind::invalid_state, "terminated"));
  }
}

// Drain while nobody reads an outbox that is smaller than what is to come.
TEST_P(ResidentGrids, draining_does_not_wait_for_someone_to_read_the_output) {
  OPEN();
  ActorOptions options;
  options.outbox_capacity = 2;
  for (const RingKind kind : {RingKind::fast, RingKind::bulk}) {
    const std::string name = kind == RingKind::fast ? "fast" : "bulk";
    const auto echo = start(name, "echo", Echo{}, kind, options);
    ASSERT_TRUE(echo);
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_OK(echo->send(message(i)));
    ASSERT_OK(runtime_->terminate(name, Termination::drain(10s)));
    for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(number_of(echo->receive(1s)), i);
  }
}

TEST_P(ResidentGrids, a_failed_body_restarts_in_place_and_its_neighbours_go_on) {
  OPEN();
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100000;
  options.restart.max_back_off = options.restart.back_off;
  const auto failing = start("failing", "fail_every", FailEvery{10, 7}, RingKind::fast, options);
  const auto neighbour = start("neighbour", "echo", Echo{});
  ASSERT_TRUE(failing && neighbour);
  const std::uint64_t count = is_emulated() ? 200 : 10000;
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_OK(failing->send(message(i)));
    if (i % 10 == 9) {
      ASSERT_OK(neighbour->send(message(i)));
      ASSERT_EQ(number_of(neighbour->receive(5s)), i);
      continue;
    }
    const std::uint64_t number = number_of(failing->receive(5s));
    ASSERT_EQ(number, i);
    ++expected;
  }
  ASSERT_TRUE(comes_true([&] { return failing->telemetry().restarts == count / 10; }))
      << failing->telemetry().restarts << " restarts";
  const ActorTelemetry telemetry = failing->telemetry();
  EXPECT_EQ(telemetry.failures, count / 10);
  EXPECT_EQ(telemetry.loss.dead_letters, count / 10);
  EXPECT_EQ(telemetry.state, ActorState::active);
  ASSERT_TRUE(failing->failure());
  EXPECT_EQ(failing->failure()->code, 7);
  ASSERT_OK_AND_ASSIGN(const TerminationReport report, failing->terminate(Termination::drain(5s)));
  EXPECT_EQ(report.dropped, 0u);
  EXPECT_EQ(failing->telemetry().received, count);
  EXPECT_EQ(failing->telemetry().sent, expected);
}

// The seat's state was still that of the failure, and was taken for the end of the body.
TEST_P(ResidentGrids, a_drain_that_comes_before_a_restart_makes_it) {
  OPEN();
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100;
  options.restart.back_off = options.restart.max_back_off = 10s;
  for (int round = 0; round < 20; ++round) {
    const std::string name = std::to_string(round);
    const auto failing = start(name, "fail_every", FailEvery{3, 7}, RingKind::fast, options);
    ASSERT_TRUE(failing);
    ASSERT_OK(failing->deactivate());
    for (std::uint64_t i = 0; i < 9; ++i) ASSERT_OK(failing->send(message(i)));
    ASSERT_OK(failing->reactivate());
    ASSERT_TRUE(comes_true([&] { return failing->telemetry().failures == 1; }));
    ASSERT_OK_AND_ASSIGN(const TerminationReport report, runtime_->terminate(name, Termination::drain(5s)));
    ASSERT_EQ(report.dropped, 0u) << "round " << round;
    ASSERT_EQ(failing->telemetry().failures, 3u);
    ASSERT_EQ(failing->telemetry().received, 9u);
    for (const std::uint64_t i : {0u, 1u, 3u, 4u, 6u, 7u}) ASSERT_EQ(number_of(failing->receive(1s)), i);
  }
}

TEST_P(ResidentGrids, a_final_failure_wakes_who_waits_and_counts_what_was_queued) {
  OPEN();
  const auto failing = start("failing", "fail_every", FailEvery{1, 42});
  ASSERT_TRUE(failing);
  ASSERT_OK(failing->deactivate());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_OK(failing->send(message(i)));
  ASSERT_OK(failing->reactivate());
  EXPECT_TRUE(fails_with(failing->receive(5s), ErrorKind::closed, "returned 42"));
  ASSERT_TRUE(comes_true([&] { return failing->state() == ActorState::failed; }));
  EXPECT_TRUE(comes_true([&] { return failing->telemetry().loss.dead_letters == 5; }));
  const auto other = start("other", "fail_every", FailEvery{1, 43});
  EXPECT_TRUE(fails_with(runtime_->request("other", message(0), 5s), ErrorKind::closed, "43"));
  // The seat is free again.
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_OK(echo->send(message(3)));
  EXPECT_EQ(number_of(echo->receive(5s)), 3u);
}

TEST_P(ResidentGrids, a_body_that_returns_by_itself_gives_its_seat_back) {
  GridOptions options;
  options.seats = 1;
  OPEN(options);
  for (int round = 0; round < 5; ++round) {
    const std::string name = fmt::format("three {}", round);
    const auto three = start(name, "three", Three{});
    ASSERT_TRUE(three);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_OK(three->send(message(i)));
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(number_of(three->receive(5s)), i);
    ASSERT_TRUE(comes_true([&] { return three->state() == ActorState::terminated; }));
    ASSERT_OK(runtime_->terminate(name));
  }
}

TEST_P(ResidentGrids, a_pipeline_passes_messages_from_kernel_to_kernel) {
  OPEN();
  std::vector<std::string> names;
  for (std::uint64_t stage = 0; stage < 4; ++stage) {
    names.push_back(fmt::format("stage {}", stage));
    ASSERT_OK(grid_->launch(*runtime_, names.back(), "add", Add{std::uint64_t{1} << (8 * stage)}));
  }
  ASSERT_OK(runtime_->pipeline(names));
  for (const auto& name : names) ASSERT_OK(runtime_->activate(name));
  const std::uint64_t count = count_from_environment("CINGULUM_TEST_RING_MESSAGES", is_emulated() ? 500 : 20000);
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < count; ++i) static_cast<void>(runtime_->send(names.front(), message(i << 32)));
  });
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = number_of(runtime_->receive(names.back(), 10s));
    EXPECT_EQ(number, (i << 32) + 0x01010101u);
    if (number != (i << 32) + 0x01010101u) break;
  }
  sender.join();
  // In the order of the flow, so that each drains into the next.
  for (const auto& name : names) {
    ASSERT_OK_AND_ASSIGN(const TerminationReport report, runtime_->terminate(name, Termination::drain(5s)));
    EXPECT_EQ(report.dropped, 0u);
  }
}

TEST_P(ResidentGrids, two_actors_bounce_a_message_without_the_host) {
  OPEN();
  ASSERT_OK_AND_ASSIGN(const auto a, grid_->launch(*runtime_, "a", "bounce", Bounce{}));
  ASSERT_OK_AND_ASSIGN(const auto b, grid_->launch(*runtime_, "b", "bounce", Bounce{}));
  ASSERT_OK(runtime_->fan_out("a", 1, {"b"}));
  ASSERT_OK(runtime_->fan_out("b", 1, {"a"}));
  ASSERT_OK(a->activate());
  ASSERT_OK(b->activate());
  const std::uint64_t bounces = 2 * count_from_environment("CINGULUM_TEST_RING_MESSAGES", is_emulated() ? 500 : 50000);
  ASSERT_OK(a->send(message(bounces)));
  // An even number ends where it began.
  ASSERT_EQ(number_of(a->receive(10s)), 0u);
  ASSERT_OK(a->terminate(Termination::discard()));
  ASSERT_OK(b->terminate(Termination::discard()));
  EXPECT_EQ(a->telemetry().emitted + b->telemetry().emitted, bounces);
}

// A stream between actors that never pauses: both still beat and apply commands, and every message is accounted for at
// the end.
TEST_P(ResidentGrids, a_stream_without_a_pause_keeps_neither_orders_nor_beats_waiting) {
  OPEN();
  ActorOptions options;
  options.stall_limit = 500ms;
  ASSERT_OK_AND_ASSIGN(const auto flood, grid_->launch(*runtime_, "flood", "flood", Flood{}, RingKind::fast, options));
  ASSERT_OK_AND_ASSIGN(const auto swallow,
                       grid_->launch(*runtime_, "swallow", "swallow", Swallow{}, RingKind::bulk, options));
  ASSERT_OK(runtime_->pipeline({"flood", "swallow"}));
  for (const auto& actor : {flood, swallow}) ASSERT_OK(actor->activate());
  ASSERT_OK(flood->send(message(std::uint64_t{1} << 40)));
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(swallow->telemetry().stalls, 0u);
  EXPECT_EQ(flood->telemetry().stalls, 0u);
  EXPECT_GT(swallow->telemetry().received, 1000u);
  ASSERT_OK(swallow->deactivate(2s));
  std::this_thread::sleep_for(20ms);  // its counters are published once a millisecond
  const std::uint64_t received = swallow->telemetry().received;
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(swallow->telemetry().received, received) << "nothing is delivered to a deactivated actor";
  ASSERT_OK(swallow->reactivate());
  ASSERT_TRUE(comes_true([&] { return swallow->telemetry().received > received; }));
  ASSERT_OK_AND_ASSIGN(const TerminationReport of_swallow, swallow->terminate(Termination::discard()));
  ASSERT_OK_AND_ASSIGN(const TerminationReport of_flood, flood->terminate(Termination::discard()));
  EXPECT_EQ(flood->telemetry().emitted, swallow->telemetry().received + of_swallow.dropped + of_flood.dropped)
      << of_swallow.dropped << " and " << of_flood.dropped << " were left in the wire";
  EXPECT_EQ(flood->telemetry().loss.discarded, of_flood.dropped);
}

TEST_P(ResidentGrids, a_restart_of_a_deactivated_actor_keeps_its_gate_shut) {
  OPEN();
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.back_off = 100ms;
  const auto failing = start("failing", "fail_every", FailEvery{5, 7}, RingKind::fast, options);
  ASSERT_TRUE(failing);
  ASSERT_OK(failing->send(message(4)));
  ASSERT_TRUE(comes_true([&] { return failing->telemetry().failures == 1; }));
  ASSERT_OK(failing->deactivate());
  ASSERT_OK(failing->send(message(1)));
  ASSERT_TRUE(comes_true([&] { return failing->telemetry().restarts == 1; }));
  EXPECT_TRUE(fails_with(failing->receive(50ms), ErrorKind::timed_out, "no message"));
  ASSERT_OK(failing->reactivate());
  EXPECT_EQ(number_of(failing->receive(5s)), 1u);
}

TEST_P(ResidentGrids, one_actor_fans_out_to_several) {
  OPEN();
  ASSERT_OK_AND_ASSIGN(const auto source, grid_->launch(*runtime_, "source", "add", Add{1}));
  std::vector<std::string> targets;
  for (int i = 0; i < 3; ++i) {
    targets.push_back(fmt::format("target {}", i));
    ASSERT_OK(grid_->launch(*runtime_, targets.back(), "echo", Echo{}));
  }
  ASSERT_OK(runtime_->fan_out("source", 1, targets));
  for (const auto& name : targets) ASSERT_OK(runtime_->activate(name));
  ASSERT_OK(source->activate());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(source->send(message(i)));
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(number_of(source->receive(5s)), i + 1);
    for (const auto& name : targets) ASSERT_EQ(number_of(runtime_->receive(name, 5s)), i + 1);
  }
  EXPECT_TRUE(fails_with(source->wire(2, {}), ErrorKind::invalid_state, ""));
}

TEST_P(ResidentGrids, a_handle_names_a_buffer_until_it_is_released) {
  OPEN();
  const auto look_up = start("look up", "look_up", LookUp{});
  ASSERT_TRUE(look_up);
  // Mapped memory of the grid serves as a buffer that both sides see: the last page of its rings is never used here.
  ASSERT_OK_AND_ASSIGN(const MappedMemory memory, grid_->scratch(64));
  *reinterpret_cast<std::uint64_t*>(memory.host) = 4711;
  ASSERT_OK_AND_ASSIGN(const BufferHandle handle, grid_->buffers().add_borrowed(memory.device, 64, 1, {}));
  const auto ask = [&](BufferHandle which) {
    Message asking = message(0);
    asking.header.flags |= mark_handle;
    std::memcpy(asking.payload, &which, sizeof which);
    return number_of(runtime_->request("look up", asking, 5s));
  };
  EXPECT_EQ(ask(handle), 4711u);
  ASSERT_OK(grid_->buffers().release(handle));
  EXPECT_EQ(ask(handle), LookUp::stale);
  ASSERT_OK_AND_ASSIGN(const BufferHandle again, grid_->buffers().add_borrowed(memory.device, 64, 1, {}));
  EXPECT_EQ(again.slot, handle.slot);
  EXPECT_EQ(ask(again), 4711u);
  EXPECT_EQ(ask(handle), LookUp::stale) << "an old generation";
  EXPECT_EQ(ask({1u << 30, 1, 8}), LookUp::stale) << "past the table";
}

// Under virtual time the limit itself is asserted (supervision.stalls_are_found_in_time...). A grid keeps real time, on
// a machine that may be busy: the quickest of several is within twice the limit, and none is before it.
TEST_P(ResidentGrids, a_stalled_actor_is_reported_within_twice_its_limit_and_an_idle_one_is_not) {
  OPEN();
  constexpr std::uint64_t limit_ms = 200;
  ActorOptions options;
  options.stall_limit = std::chrono::milliseconds(limit_ms);
  const auto busy = start("busy", "busy", Busy{}, RingKind::fast, options);
  const auto idle = start("idle", "echo", Echo{}, RingKind::fast, options);
  ASSERT_TRUE(busy && idle);
  ASSERT_OK(busy->send(message(limit_ms / 4)));
  ASSERT_EQ(number_of(busy->receive(5s)), limit_ms / 4);
  EXPECT_EQ(busy->telemetry().stalls, 0u) << "shorter than the limit";
  std::uint64_t quickest_ns = ~std::uint64_t{0};
  std::uint64_t stalls = 0;
  for (int i = 0; i < 8 && quickest_ns > 2 * limit_ms * 1'000'000; ++i) {
    const std::uint64_t start_ns = steady_now_ns();
    ASSERT_OK(busy->send(message(5 * limit_ms)));
    ASSERT_TRUE(comes_true([&] { return busy->telemetry().stalled; }));
    const std::uint64_t took_ns = steady_now_ns() - start_ns;
    EXPECT_GT(took_ns, limit_ms * 1'000'000) << "before the limit";
    quickest_ns = std::min(quickest_ns, took_ns);
    ASSERT_EQ(number_of(busy->receive(5s)), 5 * limit_ms);
    EXPECT_TRUE(comes_true([&] { return !busy->telemetry().stalled; }));
    EXPECT_EQ(busy->telemetry().stalls, ++stalls);
  }
  EXPECT_LE(quickest_ns, 2 * limit_ms * 1'000'000);
  EXPECT_EQ(idle->telemetry().stalls, 0u);
}

// Neither beats: a parked seat is not on the device, a held one gives its body nothing.
// They acted on every 8th call.
TEST_P(ResidentGrids, a_body_that_beats_within_its_limit_is_not_stalled_and_sees_at_once_that_it_shall_stop) {
  OPEN();
  ActorOptions options;
  options.stall_limit = 200ms;
  const auto beating = start("beating", "beating", testing::Beating{50}, RingKind::fast, options);
  ASSERT_TRUE(beating);
  ASSERT_OK(beating->send(message(1000)));
  ASSERT_EQ(number_of(beating->receive(10s)), 1000u);
  EXPECT_EQ(beating->telemetry().stalls, 0u);
  // Every second call of 100 ms is a look: eight calls would take longer than the time given.
  const auto looking = start("looking", "beating", testing::Beating{100}, RingKind::fast, options);
  ASSERT_TRUE(looking);
  ASSERT_OK(looking->send(message(100'000)));
  ASSERT_TRUE(comes_true([&] { return looking->telemetry().received == 1; }));
  ASSERT_OK(looking->terminate(Termination::discard(700ms)));
}

// A writer without room was given credit when the seat had looked 512 times for messages that could not come.
TEST_P(ResidentGrids, a_small_bulk_inbox_gives_its_room_back_before_it_naps) {
  GridOptions grid;
  grid.longest_nap_ns = 50'000'000;
  open(grid);
  if (::testing::Test::IsSkipped() || HasFatalFailure()) return;
  for (const std::uint32_t capacity : {16u, 64u, 256u}) {
    ActorOptions options;
    options.inbox_capacity = capacity;
    const auto echo = start(std::to_string(capacity), "echo", Echo{}, RingKind::bulk, options);
    ASSERT_TRUE(echo);
    for (std::uint64_t i = 0; i < 4 * capacity; ++i) ASSERT_OK(echo->send(message(i), {.timeout = 5s}));
    for (std::uint64_t i = 0; i < 4 * capacity; ++i) ASSERT_EQ(number_of(echo->receive(10s)), i);
  }
}

TEST_P(ResidentGrids, a_body_of_another_type_than_its_name_says_is_refused) {
  OPEN();
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "wrong", "sum", Echo{}), ErrorKind::invalid_argument, "is of type"));
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "wrong", "add", FailEvery{}), ErrorKind::invalid_argument, "bytes"));
  ASSERT_OK(grid_->launch(*runtime_, "right", "sum", Sum{}));
}

struct Names {
  static constexpr const char* message_name = "Names";
  BufferHandle handle;
};

TEST_P(ResidentGrids, a_handle_of_the_runtimes_table_names_no_buffer_of_the_grid) {
  OPEN();
  const auto look_up = start("look_up", "look_up", LookUp{});
  ASSERT_TRUE(look_up);
  ASSERT_OK_AND_ASSIGN(const MappedMemory memory, grid_->scratch(64));
  ASSERT_OK_AND_ASSIGN(const BufferHandle own, grid_->buffers().add_borrowed(memory.device, 64, 0, {}));
  ASSERT_OK_AND_ASSIGN(const BufferHandle others, runtime_->buffers().add(64));
  EXPECT_EQ(own.slot, others.slot);
  EXPECT_EQ(own.generation, others.generation);
  reinterpret_cast<std::uint64_t*>(memory.host)[0] = 4711;
  EXPECT_TRUE(make_message(Names{own}).has(mark_handle)) << "a payload that begins with a handle marks itself";
  EXPECT_FALSE(make_message(numbered(1)).has(mark_handle));
  EXPECT_EQ(number_of(runtime_->request("look_up", make_message(Names{own}), 5s)), 4711u);
  EXPECT_EQ(number_of(runtime_->request("look_up", make_message(Names{others}), 5s)), LookUp::stale);
}

struct Other {
  static constexpr const char* message_name = "Other";
  std::uint64_t number = 3;
};

TEST_P(ResidentGrids, a_typed_receive_refuses_what_is_of_another_type) {
  OPEN();
  const auto typed = start("typed", "typed_echo", testing::TypedEcho{});
  ASSERT_TRUE(typed);
  ASSERT_OK(typed->send(make_message(Other{})));
  EXPECT_TRUE(fails_with(runtime_->request("typed", make_message(Other{}), 5s), ErrorKind::device, "failure -22"));
  EXPECT_EQ(number_of(runtime_->request("typed", message(5), 5s)), 5u);
}

TEST_P(ResidentGrids, an_actor_that_is_parked_or_deactivated_for_longer_than_its_limit_is_not_stalled) {
  GridOptions grid_options;
  grid_options.mode = GridOptions::Mode::event;
  grid_options.seats = 2;
  OPEN(grid_options);
  ActorOptions options;
  options.stall_limit = 50ms;
  const auto parked = start("parked", "echo", Echo{}, RingKind::fast, options);
  const auto held = start("held", "echo", Echo{}, RingKind::fast, options);
  ASSERT_TRUE(parked && held);
  ASSERT_OK(held->deactivate());
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(parked->telemetry().stalled);
  EXPECT_FALSE(held->telemetry().stalled);
}

// As on the CPU (supervision.a_parked_actor_that_fails_is_seen_within_ten_milliseconds): the quickest of many, since a
// delay in the code makes them all late.
TEST_P(ResidentGrids, a_failure_is_told_within_twenty_milliseconds) {
  OPEN();
  std::uint64_t quickest_ns = ~std::uint64_t{0};
  for (int i = 0; i < 40 && quickest_ns > 20'000'000; ++i) {
    const std::string name = fmt::format("failing {}", i);
    const auto failing = start(name, "fail_every", FailEvery{1, 42});
    ASSERT_TRUE(failing);
    const std::uint64_t start_ns = steady_now_ns();
    ASSERT_OK(failing->send(message(0)));
    EXPECT_TRUE(fails_with(failing->receive(30s), ErrorKind::closed, "returned 42"));
    quickest_ns = std::min(quickest_ns, steady_now_ns() - start_ns);
    EXPECT_EQ(failing->state(), ActorState::failed);
    ASSERT_OK(runtime_->terminate(name, Termination::discard()));
  }
  EXPECT_LE(quickest_ns, 20'000'000u);
}

// In a process of its own: the next test stops it.
TEST_P(ResidentGrids, DISABLED_works_while_it_is_stopped) {
  OPEN();
  const auto busy = start("busy", "busy", Busy{});
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_TRUE(busy && echo);
  std::puts("ready");
  std::fflush(stdout);
  const std::uint64_t end_ns = deadline_from_now(4s);
  while (steady_now_ns() < end_ns) {
    ASSERT_EQ(number_of(runtime_->request("busy", message(100), 10s)), 100u);
    ASSERT_EQ(number_of(runtime_->request("echo", message(1), 10s)), 1u);
  }
  EXPECT_EQ(busy->telemetry().stalls, 0u);
  EXPECT_EQ(echo->telemetry().stalls, 0u);
  EXPECT_FALSE(grid_->has_ended()) << "three seconds are within the lease";
  ASSERT_EQ(number_of(runtime_->request("busy", message(1500), 10s)), 1500u);
  EXPECT_EQ(busy->telemetry().stalls, 1u) << "a true stall is seen by the same monitor";
}

TEST_P(ResidentGrids, a_host_that_was_stopped_raises_no_false_alarm_and_keeps_its_grid) {
  OPEN();
  static_cast<void>(grid_->close());
  cingulum::testing::OwnChild child(fmt::format("On/ResidentGrids.DISABLED_works_while_it_is_stopped/{}", GetParam()));
  ASSERT_TRUE(child.prints("ready", 30s)) << child.printed();
  child.stop_for(3s);
  EXPECT_TRUE(child.succeeds(60s)) << child.printed();
}

TEST_P(ResidentGrids, a_host_that_falls_silent_ends_the_kernel_after_the_lease) {
  GridOptions options;
  options.lease = is_emulated() ? 300ms : 2s;
  OPEN(options);
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_TRUE(echo);
  ASSERT_OK(echo->send(message(1)));
  ASSERT_EQ(number_of(echo->receive(5s)), 1u);
  // Longer than the lease, with the beat: it stays, and so does every seat.
  const std::uint32_t seats = grid_->options().seats;
  for (std::uint32_t i = 1; i < seats; ++i) ASSERT_TRUE(start(fmt::format("{}", i), "echo", Echo{}));
  std::this_thread::sleep_for(options.lease + options.lease / 4);
  ASSERT_FALSE(grid_->has_ended());
  EXPECT_EQ(number_of(runtime_->request("echo", message(2), 5s)), 2u);
  for (std::uint32_t i = 1; i < seats; ++i) {
    EXPECT_EQ(number_of(runtime_->request(fmt::format("{}", i), message(i), 5s)), i);
  }
  const std::uint64_t start_ns = steady_now_ns();
  grid_->stop_beat();
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }, options.lease + options.lease / 2));
  EXPECT_GE(steady_now_ns() - start_ns + 30'000'000u, static_cast<std::uint64_t>(options.lease.count()) * 9 / 10);
  EXPECT_EQ(grid_->leave_reason(), LeaveReason::host_silent);
  // The host lives and gets the error.
  ASSERT_TRUE(comes_true([&] { return echo->state() == ActorState::failed; }));
  EXPECT_NE(echo->failure()->message.find("silent"), std::string::npos) << echo->failure()->message;
  EXPECT_TRUE(fails_with(echo->receive(1s), ErrorKind::closed, "silent"));
}

TEST_P(ResidentGrids, actors_that_still_sit_when_their_grid_is_closed_are_told) {
  OPEN();
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_TRUE(echo);
  ASSERT_OK(grid_->close());
  EXPECT_EQ(echo->state(), ActorState::failed);
  ASSERT_TRUE(echo->failure());
  EXPECT_NE(echo->failure()->message.find("was closed"), std::string::npos) << echo->failure()->message;
  EXPECT_TRUE(fails_with(echo->receive(1s), ErrorKind::closed, "was closed"));
}

TEST_P(ResidentGrids, a_grid_ends_at_its_own_time_limit) {
  GridOptions options;
  options.time_limit = 300ms;
  OPEN(options);
  const auto echo = start("echo", "echo", Echo{});
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }, 2s));
  EXPECT_EQ(grid_->leave_reason(), LeaveReason::time_limit);
  ASSERT_TRUE(comes_true([&] { return echo->state() == ActorState::failed; }));
}

TEST_P(ResidentGrids, event_mode_leaves_the_device_when_idle_and_comes_back_with_the_next_message) {
  GridOptions options;
  options.mode = GridOptions::Mode::event;
  options.park_after = 2ms;
  options.seats = 3;
  OPEN(options);
  EXPECT_TRUE(grid_->in_event_mode());
  const auto sum = start("sum", "sum", Sum{});
  const auto echo = start("echo", "echo", Echo{}, RingKind::bulk);
  ASSERT_TRUE(sum && echo);
  std::uint64_t expected = 0;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_OK(sum->send(message(i)));
    expected += i + (i % 256) * ((i % 256) - 1) / 2;
    ASSERT_EQ(number_of(sum->receive(5s)), expected) << "its state outlasts parking";
    ASSERT_OK(echo->send(message(i)));
    ASSERT_EQ(number_of(echo->receive(5s)), i);
    if (i % 4 == 0) {
      ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
    }
  }
  EXPECT_GE(grid_->launches(), 5u);
  EXPECT_EQ(sum->telemetry().stalls, 0u) << "parked is not stalled";
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
  ASSERT_OK(echo->deactivate());
  ASSERT_OK(echo->send(message(7)));
  ASSERT_OK(echo->reactivate());
  EXPECT_EQ(number_of(echo->receive(5s)), 7u);
  ASSERT_OK_AND_ASSIGN(const TerminationReport report, runtime_->terminate("sum", Termination::drain(5s)));
  EXPECT_EQ(report.dropped, 0u);
  EXPECT_EQ(sum->telemetry().received, 20u);
  // A restart and then a park; stopping what is parked.
  ActorOptions restarting;
  restarting.restart.kind = RestartKind::limited;
  const auto failing = start("failing", "fail_every", FailEvery{5, 7}, RingKind::fast, restarting);
  ASSERT_TRUE(failing);
  ASSERT_OK(failing->send(message(4)));
  ASSERT_TRUE(comes_true([&] { return failing->telemetry().restarts == 1; }));
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
  ASSERT_OK(failing->send(message(5)));
  EXPECT_EQ(number_of(failing->receive(5s)), 5u);
  EXPECT_EQ(failing->telemetry().failures, 1u);
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
  ASSERT_OK(runtime_->terminate("failing", Termination::discard()));
  ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
  ASSERT_OK(runtime_->terminate("echo", Termination::discard()));
}

// Parked after every few messages, over more than a lap of the ring between two actors: each goes on where it was.
TEST_P(ResidentGrids, event_mode_loses_nothing_between_actors) {
  GridOptions options;
  options.mode = GridOptions::Mode::event;
  options.park_after = 1ms;
  options.seats = 2;
  options.edge_capacity = 32;
  OPEN(options);
  for (const char* name : {"first", "second"}) ASSERT_OK(grid_->launch(*runtime_, name, "add", Add{1}));
  ASSERT_OK(runtime_->pipeline({"first", "second"}));
  for (const char* name : {"first", "second"}) ASSERT_OK(runtime_->activate(name));
  for (std::uint64_t i = 0; i < 80; ++i) {
    ASSERT_OK(runtime_->send("first", message(i)));
    ASSERT_EQ(number_of(runtime_->receive("second", 5s)), i + 2);
    if (i % 4 == 3) {
      ASSERT_TRUE(comes_true([&] { return grid_->has_ended(); }));
    }
  }
}

// Parked at once: the reader votes in the moment when the message comes into its wire, and the grid closes over it.
TEST_P(ResidentGrids, event_mode_comes_back_for_what_lies_in_a_wire) {
  GridOptions options;
  options.mode = GridOptions::Mode::event;
  options.park_after = 1us;
  options.seats = 2;
  OPEN(options);
  for (const char* name : {"first", "second"}) ASSERT_OK(grid_->launch(*runtime_, name, "add", Add{1}));
  ASSERT_OK(runtime_->pipeline({"first", "second"}));
  for (const char* name : {"first", "second"}) ASSERT_OK(runtime_->activate(name));
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_OK(runtime_->send("first", message(i)));
    ASSERT_EQ(number_of(runtime_->receive("second", 5s)), i + 2);
  }
}

TEST_P(ResidentGrids, seats_are_checked_and_errors_name_what_is_wrong) {
  GridOptions options;
  options.seats = 2;
  OPEN(options);
  ASSERT_TRUE(start("a", "echo", Echo{}));
  ASSERT_TRUE(start("b", "echo", Echo{}));
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "c", "echo", Echo{}), ErrorKind::full, "all 2 seats"));
  ASSERT_OK(runtime_->terminate("a"));
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "c", "ecko", Echo{}), ErrorKind::not_found, "batch_echo"));
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "b", "echo", Echo{}), ErrorKind::already_exists, "b"));
  ActorOptions large;
  large.inbox_capacity = 1u << 16;
  EXPECT_TRUE(fails_with(grid_->launch(*runtime_, "c", "echo", Echo{}, RingKind::fast, large),
                         ErrorKind::invalid_argument, "ring_capacity"));
  ASSERT_OK(runtime_->launch("cpu", Echo{}));
  ASSERT_OK_AND_ASSIGN(const auto c, grid_->launch(*runtime_, "c", "echo", Echo{}));
  ASSERT_OK_AND_ASSIGN(const auto cpu, runtime_->find("cpu"));
  EXPECT_TRUE(fails_with(c->wire(0, {cpu}), ErrorKind::invalid_argument, "same grid"));
  EXPECT_TRUE(fails_with(c->send(message(1)), ErrorKind::invalid_state, "launched"));

  GridOptions too_many;
  too_many.seats = 1000;
  too_many.most_processors = 3;
  ASSERT_OK_AND_ASSIGN(auto backend, testing::make_test_backend(GetParam()));
  EXPECT_TRUE(fails_with(ResidentGrid::open(std::move(backend), too_many), ErrorKind::invalid_argument, "only 3"));
}

TEST_P(ResidentGrids, an_actor_has_sixteen_wires_and_no_more) {
  GridOptions options;
  options.seats = 4;
  OPEN(options);
  ASSERT_OK_AND_ASSIGN(const auto hub, grid_->launch(*runtime_, "hub", "echo", Echo{}));
  ASSERT_OK_AND_ASSIGN(const auto a, grid_->launch(*runtime_, "a", "echo", Echo{}));
  ASSERT_OK_AND_ASSIGN(const auto b, grid_->launch(*runtime_, "b", "echo", Echo{}));
  for (std::uint32_t port = 0; port < 7; ++port) ASSERT_OK(hub->wire(port, {a, b}));
  ASSERT_OK(hub->wire(7, {a}));
  EXPECT_TRUE(fails_with(hub->wire(8, {a, b}), ErrorKind::full, "'hub': 16 wires at most"));
  ASSERT_OK(hub->wire(8, {b}));
  EXPECT_TRUE(fails_with(hub->wire(9, {a}), ErrorKind::full, "'hub': 16 wires at most"));
}

TEST_P(ResidentGrids, stopping_many_idle_actors_is_quick_and_seats_are_reused) {
  GridOptions options;
  options.seats = 32;
  OPEN(options);
  for (int round = 0; round < 3; ++round) {
    const std::uint32_t seats = grid_->options().seats;
    for (std::uint32_t i = 0; i < seats; ++i) ASSERT_TRUE(start(fmt::format("{}", i), "echo", Echo{}));
    for (std::uint32_t i = 0; i < seats; ++i) {
      ASSERT_OK(runtime_->send(fmt::format("{}", i), message(i)));
      ASSERT_EQ(number_of(runtime_->receive(fmt::format("{}", i), 5s)), i);
    }
    for (std::uint32_t i = 0; i < seats; ++i) ASSERT_OK(runtime_->terminate(fmt::format("{}", i)));
  }
}

// Random traffic with pauses, full rings and deactivations through batches, checked message by message. In numbers, and
// with restarts: tests/ring/soak.
TEST_P(ResidentGrids, soak) {
  GridOptions options;
  options.time_limit = is_emulated() ? 60s : 20s;
  const std::uint64_t count = count_from_environment("CINGULUM_TEST_RING_MESSAGES", is_emulated() ? 20000 : 500000);
  OPEN(options);
  std::mt19937_64 random(20261115);
  for (const RingKind kind : {RingKind::bulk, RingKind::fast}) {
    const auto handle =
        kind == RingKind::bulk ? start("bulk", "batch_echo", BatchEcho{}, kind) : start("fast", "echo", Echo{}, kind);
    Actor* const actor = handle.get();
    // Most of the messages go through the bulk ring, as in the figure; the fast one gets an eighth.
    const std::uint64_t messages = kind == RingKind::bulk ? count : count / 8;
    std::atomic<bool> done = false;
    std::thread sender([&] {
      std::vector<Message> batch(256);
      for (std::uint64_t next = 0; next < messages && !done;) {
        const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch.size(), messages - next));
        for (std::uint32_t i = 0; i < size; ++i) batch[i] = message(next + i);
        for (std::uint32_t sent = 0; sent < size && !done;) {
          const std::uint32_t stored = actor->send_batch(std::span(batch).subspan(sent, size - sent));
          sent += stored;
          if (stored == 0) std::this_thread::yield();
        }
        next += size;
      }
    });
    std::vector<Message> got(256);
    std::uint64_t next = 0;
    std::uint64_t wrong = 0;
    std::uint64_t last_ns = steady_now_ns();
    while (next < messages && wrong == 0) {
      const std::uint32_t taken = actor->receive_batch(got);
      for (std::uint32_t i = 0; i < taken; ++i) {
        const auto value = payload<Numbered>(got[i]);
        wrong += value.number != next || !testing::is_whole(value);
        ++next;
      }
      if (taken != 0) {
        last_ns = steady_now_ns();
      } else {
        if (steady_now_ns() - last_ns > 10'000'000'000u) break;
        std::this_thread::yield();
      }
      const std::uint64_t draw = random() % 20000;
      if (draw == 0) std::this_thread::sleep_for(2ms);
      if (draw == 1) {
        EXPECT_TRUE(handle->deactivate());
        EXPECT_TRUE(handle->reactivate());
      }
    }
    done = true;
    sender.join();
    ASSERT_EQ(wrong, 0u);
    ASSERT_EQ(next, messages);
  }
}

// A thread's words hand over by themselves: that a device is told to is counted.
struct CountingMachine : EmulatedMachine {
  static inline std::atomic<int> fences = 0;
  static void fence() { ++fences; }
};

TEST(ResidentBatches, that_name_buffers_are_behind_a_fence_on_fast_rings_too) {
  ASSERT_OK_AND_ASSIGN(const auto runtime, Runtime::create());
  GridOptions options;
  options.seats = 1;
  options.time_limit = 20s;
  ASSERT_OK_AND_ASSIGN(
      const auto grid,
      ResidentGrid::open(std::make_unique<ThreadBackend<CountingMachine, BatchEcho>>(std::vector<std::string>{"echo"}),
                         options));
  ASSERT_OK_AND_ASSIGN(const auto echo, grid->launch(*runtime, "echo", "echo", BatchEcho{}));
  ASSERT_OK(echo->activate());
  ASSERT_OK(echo->send(make_message(numbered(1))));
  ASSERT_OK(echo->receive(5s));
  EXPECT_EQ(CountingMachine::fences, 0);
  Message message = make_message(numbered(1));
  message.header.flags |= mark_handle;
  ASSERT_OK(echo->send(message));
  ASSERT_OK(echo->receive(5s));
  EXPECT_EQ(CountingMachine::fences, 1);
  ASSERT_OK(runtime->terminate("echo"));
  ASSERT_OK(grid->close());
}

TEST(ResidentGridOptions, are_checked) {
  const auto with = [](auto change) {
    GridOptions options;
    change(options);
    return check_options(options);
  };
  EXPECT_TRUE(check_options(GridOptions{}));
  EXPECT_TRUE(fails_with(with([](GridOptions& o) { o.seats = 0; }), ErrorKind::invalid_argument, "seats"));
  EXPECT_TRUE(fails_with(with([](GridOptions& o) { o.lanes = 48; }), ErrorKind::invalid_argument, "lanes"));
  EXPECT_TRUE(fails_with(with([](GridOptions& o) { o.ring_capacity = 3; }), ErrorKind::invalid_argument, "power"));
  EXPECT_TRUE(fails_with(with([](GridOptions& o) { o.lease = 99ms; }), ErrorKind::invalid_argument, "lease"));
  EXPECT_TRUE(with([](GridOptions& o) { o.lease = 100ms; }));
  EXPECT_TRUE(with([](GridOptions& o) { o.seats = 1024; }));
  EXPECT_FALSE(with([](GridOptions& o) { o.seats = 1025; }));
  EXPECT_TRUE(with([](GridOptions& o) { o.lanes = 256; }));
  EXPECT_FALSE(with([](GridOptions& o) { o.lanes = 288; }));
  EXPECT_FALSE(with([](GridOptions& o) { o.lanes = 0; }));
  EXPECT_TRUE(with([](GridOptions& o) { o.edge_capacity = 1u << 20; }));
  EXPECT_FALSE(with([](GridOptions& o) { o.edge_capacity = 1u << 21; }));
  EXPECT_FALSE(with([](GridOptions& o) { o.buffers = 0; }));
}

TEST(ResidentGridMemory, scratch_is_given_out_by_whole_lines_up_to_its_end) {
  GridOptions options;
  options.scratch_bytes = 4 * line_bytes;
  options.time_limit = 20s;
  ASSERT_OK_AND_ASSIGN(auto backend, testing::make_test_backend("emulated"));
  ASSERT_OK_AND_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), options));
  ASSERT_OK_AND_ASSIGN(const MappedMemory first, grid->scratch(1));
  ASSERT_OK_AND_ASSIGN(const MappedMemory second, grid->scratch(line_bytes));
  EXPECT_EQ(second.host - first.host, static_cast<std::ptrdiff_t>(line_bytes));
  EXPECT_TRUE(fails_with(grid->scratch(2 * line_bytes + 1), ErrorKind::full, "are left of scratch_bytes"));
  EXPECT_FALSE(grid->scratch(~std::uint64_t{0}));
  EXPECT_TRUE(grid->scratch(2 * line_bytes));
  EXPECT_FALSE(grid->scratch(1));
}

TEST(ResidentGridModes, a_display_gpu_gets_event_mode_and_refuses_to_be_resident) {
  GridOptions options;
  options.longest_nap_ns = 50000;
  options.time_limit = 20s;
  ASSERT_OK_AND_ASSIGN(auto backend, testing::make_test_backend("emulated-display"));
  ASSERT_OK_AND_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), options));
  EXPECT_TRUE(grid->in_event_mode());
  ASSERT_OK_AND_ASSIGN(backend, testing::make_test_backend("emulated-display"));
  options.mode = GridOptions::Mode::resident;
  EXPECT_TRUE(fails_with(ResidentGrid::open(std::move(backend), options), ErrorKind::unavailable, "event mode"));
}

}  // namespace
}  // namespace cingulum::ring
