// Failure, restart and stalls, under the deterministic schedule with virtual time, and a few with
// threads that run freely.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/log.hpp"
#include "ring/actor/runtime.hpp"
#include "ring/cpu/turn_schedule.hpp"
#include "ring/small_actors.hpp"
#include "support/long_tests.hpp"
#include "support/own_child.hpp"

namespace cingulum::ring::supervision_tests {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: small actors

// Answers, and fails on negative numbers: with a code on even ones, by an exception on odd ones.
struct Fragile {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::int64_t value = payload<Number>(message).value;
      if (value < 0) {
        if (value % 2 == 0) return 42;
        throw std::runtime_error("a number below zero");
      }
      context.send(message);
    }
    return 0;
  }
};
struct Stage {
  explicit Stage(std::uint64_t seed = 1) : schedule(seed) {
    RuntimeOptions options;
    options.schedule = &schedule;
    options.max_requests = 64;
    runtime = Runtime::create(options).value();
  }
  ActorHandle start(const char* name, RestartPolicy restart, std::uint32_t capacity = 64) {
    ActorOptions options = small(capacity);
    options.restart = restart;
    return activated(runtime->launch(name, Fragile{}, options));
  }
  void pass(Nanoseconds duration) {
    schedule.advance(duration);
    runtime->tick();
    schedule.run_until_idle();
  }
  TurnSchedule schedule;
  std::unique_ptr<Runtime> runtime;
};

// The fault to catch: a failure is swallowed, the state stays active, and senders fill the queue.
TEST(supervision, a_failure_is_kept_counted_and_wakes_those_who_wait) {
  Stage stage;
  const ActorHandle actor = stage.start("fragile", {});
  ASSERT_TRUE(actor->deactivate());
  ASSERT_TRUE(actor->send(number(-1)));
  for (std::int64_t i = 0; i < 5; ++i) ASSERT_TRUE(actor->send(number(i)));
  auto pending = stage.runtime->request_later(*actor, number(7));
  ASSERT_TRUE(pending);
  ASSERT_TRUE(actor->reactivate());
  stage.schedule.run_until_idle();
  EXPECT_EQ(actor->state(), ActorState::failed);
  ASSERT_TRUE(actor->failure());
  EXPECT_EQ(actor->failure()->message, "a number below zero");
  const ActorTelemetry telemetry = actor->telemetry();
  EXPECT_EQ(telemetry.failures, 1u);
  EXPECT_EQ(telemetry.loss.dead_letters, 7u) << "the one in the body, five queued, one request";
  const auto answer = pending->wait(1s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::closed);
  const Status late = actor->send(number(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message(), "actor 'fragile': cannot send in state failed; terminate it and launch a new one");
  const auto output = actor->receive(1s);
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message().find("a number below zero"), std::string::npos) << output.error().message();
  ASSERT_TRUE(stage.runtime->terminate("fragile"));
}

TEST(supervision, a_code_that_is_not_zero_is_a_failure) {
  Stage stage;
  const ActorHandle actor = stage.start("fragile", {});
  const auto answer = stage.runtime->request(*actor, number(-2), 1s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(actor->failure()->code, 42);
  EXPECT_EQ(answer.error().message(), "actor 'fragile' failed: its body returned 42");
}

TEST(supervision, a_restart_keeps_the_queue_and_loses_only_the_message_that_failed) {
  Stage stage;
  RestartPolicy policy;
  policy.kind = RestartKind::limited;
  policy.back_off = 1ms;
  const ActorHandle actor = stage.start("fragile", policy);
  ASSERT_TRUE(actor->deactivate());
  for (const std::int64_t value : {1, -1, 2, 3}) ASSERT_TRUE(actor->send(number(value)));
  ASSERT_TRUE(actor->reactivate());
  stage.schedule.run_until_idle();
  EXPECT_EQ(actor->state(), ActorState::active) << "a restart is on its way";
  EXPECT_EQ(actor->telemetry().restarts, 0u);
  stage.pass(500us);
  EXPECT_EQ(actor->telemetry().restarts, 0u) << "not before the back-off";
  stage.pass(600us);
  EXPECT_EQ(actor->telemetry().restarts, 1u);
  for (const std::int64_t value : {1, 2, 3}) EXPECT_EQ(value_of(actor->receive(1s).value()), value);
  EXPECT_EQ(actor->telemetry().loss.dead_letters, 1u);
}

TEST(supervision, back_off_doubles_and_the_fourth_failure_in_the_window_is_final) {
  Stage stage;
  RestartPolicy policy;
  policy.kind = RestartKind::limited;  // 3 in 60 s
  policy.back_off = 1ms;
  const ActorHandle actor = stage.start("fragile", policy);
  for (const Nanoseconds delay : {Nanoseconds(1ms), Nanoseconds(2ms), Nanoseconds(4ms)}) {
    ASSERT_TRUE(actor->send(number(-1)));
    stage.schedule.run_until_idle();
    const std::uint64_t before = actor->telemetry().restarts;
    stage.pass(delay - 1us);
    EXPECT_EQ(actor->telemetry().restarts, before);
    stage.pass(2us);
    EXPECT_EQ(actor->telemetry().restarts, before + 1);
  }
  ASSERT_TRUE(actor->send(number(-1)));
  stage.pass(10s);
  EXPECT_EQ(actor->state(), ActorState::failed);
  EXPECT_EQ(actor->telemetry().failures, 4u);
  EXPECT_EQ(actor->telemetry().restarts, 3u);
}

TEST(supervision, failures_older_than_the_window_do_not_count) {
  Stage stage;
  RestartPolicy policy;
  policy.kind = RestartKind::limited;
  const ActorHandle actor = stage.start("fragile", policy);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(actor->send(number(-1)));
    stage.schedule.run_until_idle();
    stage.pass(25s);
    ASSERT_EQ(actor->state(), ActorState::active) << i;
  }
  EXPECT_EQ(actor->telemetry().restarts, 10u);
}

// A failure as old as the window is forgotten; one that is younger by a nanosecond is not.
TEST(supervision, the_window_ends_at_its_length) {
  for (const std::int64_t early_ns : {0, 1}) {
    Stage stage;
    RestartPolicy policy;
    policy.kind = RestartKind::limited;
    policy.max_restarts = 1;
    policy.back_off = 1ms;
    policy.window = 60s;
    const ActorHandle actor = stage.start("fragile", policy);
    ASSERT_TRUE(actor->send(number(-1)));
    stage.schedule.run_until_idle();
    stage.pass(1s);
    ASSERT_EQ(actor->telemetry().restarts, 1u);
    stage.pass(59s - Nanoseconds(early_ns));
    ASSERT_TRUE(actor->send(number(-1)));
    stage.schedule.run_until_idle();
    EXPECT_EQ(actor->state(), early_ns == 0 ? ActorState::active : ActorState::failed);
  }
}

// Fails at a message, but only after a second of work.
struct FailsLate {
  TurnSchedule* schedule;
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t until = context.time_ns() + 1'000'000'000;
      while (context.time_ns() < until) schedule->idle(until);
      if (payload<Number>(message).value < 0) return 42;
      context.send(message);
    }
    return 0;
  }
};

// Virtual time that passes is felt at once: who waited for it has gone on when advance() comes back.
TEST(supervision, a_body_that_waited_for_the_time_goes_on_as_it_passes) {
  Stage stage;
  ActorOptions options = small(8);
  const ActorHandle actor = activated(stage.runtime->launch("late", FailsLate{&stage.schedule}, options));
  ASSERT_TRUE(actor->send(number(5)));
  stage.schedule.run_until_idle();
  const std::uint64_t turns = stage.schedule.turns();
  stage.schedule.run_until_idle();
  EXPECT_EQ(stage.schedule.turns(), turns) << "nobody has anything to do";
  stage.schedule.advance(999ms);
  EXPECT_EQ(actor->telemetry().outbox_depth, 0u);
  stage.schedule.advance(1ms);
  EXPECT_GT(stage.schedule.turns(), turns);
  EXPECT_EQ(actor->telemetry().outbox_depth, 1u);
}

TEST(supervision, a_circuit_that_opened_while_the_actor_was_deactivated_closes_behind_its_gate) {
  Stage stage;
  ActorOptions options = small(8);
  options.restart.kind = RestartKind::circuit_breaker;
  options.restart.max_restarts = 0;
  options.restart.cool_down = 10s;
  const ActorHandle actor = activated(stage.runtime->launch("late", FailsLate{&stage.schedule}, options));
  ASSERT_TRUE(actor->send(number(-1)));
  stage.schedule.run_until_idle();
  ASSERT_TRUE(actor->deactivate());
  ASSERT_TRUE(actor->send(number(5)));
  stage.pass(1s);
  ASSERT_EQ(actor->state(), ActorState::failed);
  stage.pass(10s);
  EXPECT_EQ(actor->state(), ActorState::deactivated);
  stage.pass(5s);
  EXPECT_FALSE(actor->receive(0ns)) << "its gate is shut";
  ASSERT_TRUE(actor->reactivate());
  stage.schedule.run_until_idle();
  stage.pass(2s);
  EXPECT_EQ(value_of(actor->receive(0ns).value()), 5);
}

TEST(supervision, a_circuit_opens_after_too_many_failures_and_closes_after_its_rest) {
  Stage stage;
  RestartPolicy policy;
  policy.kind = RestartKind::circuit_breaker;
  policy.max_restarts = 1;
  policy.cool_down = 10s;
  const ActorHandle actor = stage.start("fragile", policy);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(actor->send(number(-1)));
    stage.schedule.run_until_idle();
    stage.pass(1s);
  }
  EXPECT_EQ(actor->state(), ActorState::failed);
  EXPECT_FALSE(actor->send(number(1)));
  stage.pass(8s);
  EXPECT_EQ(actor->state(), ActorState::failed);
  stage.pass(2s);
  EXPECT_EQ(actor->state(), ActorState::active);
  EXPECT_EQ(value_of(stage.runtime->request(*actor, number(5), 1s).value()), 5);
}

TEST(supervision, a_failing_neighbour_harms_nobody) {
  Stage stage;
  const ActorHandle bad = stage.start("bad", {});
  const ActorHandle good = stage.start("good", {});
  ASSERT_TRUE(bad->send(number(-1)));
  EXPECT_EQ(value_of(stage.runtime->request(*good, number(5), 1s).value()), 5);
  stage.schedule.run_until_idle();
  EXPECT_EQ(bad->state(), ActorState::failed);
  EXPECT_EQ(good->state(), ActorState::active);
}

// Failures are injected at random places; every message is answered or counted.
TEST(supervision, many_injected_failures_leave_no_wrong_count) {
  const int rounds = test::may_take_long() ? 300 : 10;
  std::uint64_t failures = 0;
  for (int seed = 1; seed <= rounds; ++seed) {
    Stage stage(static_cast<std::uint64_t>(seed));
    RestartPolicy policy;
    policy.kind = RestartKind::limited;
    policy.max_restarts = 1000;
    policy.max_back_off = 1ms;
    const ActorHandle actor = stage.start("fragile", policy, 8);
    std::uint64_t random = static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15u;
    std::uint64_t sent = 0;
    std::uint64_t poisoned = 0;
    std::uint64_t answered = 0;
    for (int i = 0; i < 100; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const bool poison = random >> 63 != 0;
      if (actor->try_send(number(poison ? -1 - static_cast<std::int64_t>(random >> 62 & 1) : i)) == PutStatus::stored) {
        ++sent;
        poisoned += poison ? 1 : 0;
      }
      if ((random >> 40) % 3 == 0) stage.pass(2ms);
      while (actor->receive(0ns)) ++answered;
    }
    for (int i = 0; i < 20; ++i) stage.pass(2ms);
    while (actor->receive(0ns)) ++answered;
    const ActorTelemetry telemetry = actor->telemetry();
    ASSERT_EQ(telemetry.failures, poisoned) << "seed " << seed;
    ASSERT_EQ(telemetry.loss.dead_letters, poisoned) << "seed " << seed;
    ASSERT_EQ(answered + poisoned, sent) << "seed " << seed;
    ASSERT_EQ(telemetry.restarts, poisoned) << "seed " << seed;
    failures += poisoned;
  }
  std::printf("%llu failures, no wrong count\n", static_cast<unsigned long long>(failures));
  EXPECT_GE(failures, test::may_take_long() ? 10000u : 200u);
}

TEST(supervision, one_seed_is_one_run_and_another_seed_another) {
  const auto run = [](std::uint64_t seed) {
    Stage stage(seed);
    const ActorHandle a = stage.start("a", {});
    const ActorHandle b = stage.start("b", {});
    for (std::int64_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(a->send(number(i)));
      EXPECT_TRUE(b->send(number(i)));
    }
    stage.schedule.run_until_idle();
    return stage.schedule.trace();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// The body leaves the schedule's world for as long as the test says: virtual time passes while it "works".
struct Sleeper {
  TurnSchedule* schedule;
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t until =
          context.time_ns() + static_cast<std::uint64_t>(payload<Number>(message).value) * 1'000'000;
      while (context.time_ns() < until) schedule->idle(until);
      context.send(message);
    }
    return 0;
  }
};

// A stall is found within twice the limit; silence while idle, a busy but living body and a stopped host are none.
TEST(supervision, stalls_are_found_in_time_and_nothing_else_is_taken_for_one) {
  Log::standard().set_level(LogLevel::error);
  Stage stage;
  ActorOptions options = small(16);
  options.stall_limit = 500ms;
  const ActorHandle actor = activated(stage.runtime->launch("sleeper", Sleeper{&stage.schedule}, options));
  for (int i = 0; i < 400; ++i) stage.pass(5ms);
  EXPECT_EQ(actor->telemetry().stalls, 0u) << "idle for two seconds";
  const int stalls = test::may_take_long() ? 1000 : 50;
  for (int i = 0; i < stalls; ++i) {
    ASSERT_TRUE(actor->send(number(3000)));
    stage.schedule.run_until_idle();
    Nanoseconds waited = 0ns;
    while (!actor->telemetry().stalled && waited < 2s) {
      stage.pass(5ms);
      waited += 5ms;
    }
    // The first look sees the beat of the message; from there it must be more than the limit.
    ASSERT_EQ(waited, 5ms + 500ms + 5ms);
    while (!actor->receive(0ns)) stage.pass(100ms);
    stage.pass(5ms);
    ASSERT_FALSE(actor->telemetry().stalled) << "it lives again";
  }
  // A host that was away cannot say that the actor lives again.
  ASSERT_TRUE(actor->send(number(60'000)));
  for (int i = 0; i < 110; ++i) stage.pass(5ms);
  ASSERT_TRUE(actor->telemetry().stalled);
  stage.pass(3s);
  EXPECT_TRUE(actor->telemetry().stalled);
  for (int i = 0; i < 200; ++i) stage.pass(5ms);
  EXPECT_EQ(actor->telemetry().stalls, static_cast<std::uint64_t>(stalls) + 1) << "it is one stall";
  while (!actor->receive(0ns)) stage.pass(100ms);
  stage.pass(5ms);
  EXPECT_EQ(actor->telemetry().stalls, static_cast<std::uint64_t>(stalls) + 1);
  // 200 ms of work, the host stopped in the middle, for longer than half the limit: the clock jumps between two looks.
  for (const auto away : {1s, 3s}) {
    ASSERT_TRUE(actor->send(number(200 + std::chrono::milliseconds(away).count())));
    stage.schedule.run_until_idle();
    stage.pass(100ms);
    stage.pass(away);
    EXPECT_FALSE(actor->telemetry().stalled);
    stage.pass(100ms);
    ASSERT_TRUE(actor->receive(0ns));
  }
  EXPECT_EQ(actor->telemetry().stalls, static_cast<std::uint64_t>(stalls) + 1);
}

// Works for 100 ms at each number, without a sign of life; 1200 ms at negative ones.
struct Worker {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      std::this_thread::sleep_for(payload<Number>(message).value < 0 ? 1200ms : 100ms);
      context.send(message);
    }
    return 0;
  }
};

// In a process of its own: the next test stops it.
TEST(supervision, DISABLED_works_while_it_is_stopped) {
  Log::standard().set_level(LogLevel::error);
  const auto runtime = Runtime::create().value();
  const ActorHandle worker = runtime->launch("worker", Worker{}).value();
  const ActorHandle echo = runtime->launch("echo", Echo{}).value();
  for (const ActorHandle& actor : {worker, echo}) ASSERT_TRUE(actor->activate());
  std::puts("ready");
  std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + 4s;
  for (std::int64_t i = 0; std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_EQ(value_of(runtime->request(*worker, number(i), 30s).value()), i);
    ASSERT_EQ(value_of(runtime->request(*echo, number(i), 30s).value()), i);
  }
  EXPECT_EQ(worker->telemetry().stalls, 0u);
  EXPECT_EQ(echo->telemetry().stalls, 0u);
  ASSERT_TRUE(runtime->request(*worker, number(-1), 30s));
  EXPECT_EQ(worker->telemetry().stalls, 1u) << "a true stall is seen by the same monitor";
}

// A host stopped for three seconds (a debugger, a laptop's lid) is no stall of its actors.
TEST(supervision, a_process_that_was_stopped_raises_no_false_alarm) {
  cingulum::testing::OwnChild child("supervision.DISABLED_works_while_it_is_stopped");
  ASSERT_TRUE(child.prints("ready", 30s)) << child.printed();
  child.stop_for(3s);
  EXPECT_TRUE(child.succeeds(60s)) << child.printed();
}

// Under virtual time: no time passes between the message at which a body fails and the report of it.
TEST(supervision, a_failure_is_told_at_the_time_at_which_it_happened) {
  for (const std::int64_t poison : {-1, -2}) {
    Stage stage;
    const ActorHandle actor = stage.start("fragile", {});
    stage.pass(3s);
    const std::uint64_t before_ns = stage.schedule.now_ns();
    const auto answer = stage.runtime->request(*actor, number(poison), 10s);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::closed);
    EXPECT_EQ(stage.schedule.now_ns(), before_ns) << "the one who asked waited";
    EXPECT_EQ(actor->state(), ActorState::failed);
    EXPECT_EQ(actor->failure()->time_ns, before_ns);
    const auto output = actor->receive(10s);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().kind(), ErrorKind::closed);
    EXPECT_EQ(stage.schedule.now_ns(), before_ns) << "the one who receives waited";
  }
}

// By the clock of the machine, which may be busy: one of many tries is enough to show that nothing makes it wait, and a
// delay that the code has makes them all late.
TEST(supervision, a_parked_actor_that_fails_is_seen_within_ten_milliseconds) {
  constexpr int tries = 30;
  std::chrono::nanoseconds quickest = 1h;
  for (int i = 0; i < tries && quickest > 10ms; ++i) {
    const auto runtime = Runtime::create().value();
    const ActorHandle actor = activated(runtime->launch("fragile", Fragile{}, small(16)));
    std::this_thread::sleep_for(5ms);  // it waits, and is parked
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(actor->send(number(-1)));
    const auto woken = actor->receive(30s);  // by the failure, not by the time
    quickest = std::min<std::chrono::nanoseconds>(quickest, std::chrono::steady_clock::now() - start);
    ASSERT_FALSE(woken);
    ASSERT_EQ(woken.error().kind(), ErrorKind::closed);
    ASSERT_EQ(actor->state(), ActorState::failed);
  }
  EXPECT_LE(quickest, 10ms) << "the quickest of " << tries;
}

// With a monitor that looks once an hour: the failure itself wakes it.
TEST(supervision, a_failure_wakes_the_monitor) {
  RuntimeOptions seldom;
  seldom.monitor_interval = 1h;
  const auto runtime = Runtime::create(seldom).value();
  ActorOptions options = small(16);
  options.restart.kind = RestartKind::limited;
  const ActorHandle actor = activated(runtime->launch("fragile", Fragile{}, options));
  ASSERT_TRUE(actor->send(number(-1)));
  const auto answer = runtime->request(*actor, number(5), 60s);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(value_of(*answer), 5);
  EXPECT_EQ(actor->telemetry().restarts, 1u);
}

TEST(supervision, the_monitor_restarts_freely_running_actors) {
  const auto runtime = Runtime::create().value();
  ActorOptions options = small(16);
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 1000;
  options.restart.max_back_off = 200us;
  const ActorHandle actor = activated(runtime->launch("fragile", Fragile{}, options));
  for (std::int64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(actor->send(number(-1)));
    ASSERT_EQ(value_of(runtime->request(*actor, number(i), 30s).value()), i);
  }
  EXPECT_EQ(actor->telemetry().failures, 50u);
  EXPECT_EQ(actor->telemetry().restarts, 50u);
}

struct Stubborn {
  std::atomic<bool>* let_go;
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      while (!let_go->load()) std::this_thread::sleep_for(1ms);
    }
    return 0;
  }
};

// A body that never returns, as far as a process can go with its own threads: the call returns, the process lives on.
TEST(supervision, a_body_that_ignores_stop_is_left_behind_and_reported) {
  auto let_go = std::make_unique<std::atomic<bool>>(false);
  const auto runtime = Runtime::create().value();
  const ActorHandle actor = activated(runtime->launch("stubborn", Stubborn{let_go.get()}));
  ASSERT_TRUE(actor->send(number(1)));
  while (actor->telemetry().received == 0) std::this_thread::sleep_for(1ms);
  const auto report = runtime->terminate("stubborn", Termination::discard(20ms));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind(), ErrorKind::timed_out);
  EXPECT_EQ(actor->state(), ActorState::failed);
  ASSERT_TRUE(runtime->launch("other", Echo{}));
  ASSERT_TRUE(runtime->activate("other"));
  EXPECT_EQ(value_of(runtime->request("other", number(5), 10s).value()), 5);
  let_go->store(true);
  while (actor->telemetry().blocked || actor.use_count() > 1) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // its thread sees the stop and ends before what it points to is gone
}

// Each has its share of the time: one that never ends leaves the rest of it to the others.
TEST(supervision, a_body_that_ignores_stop_leaves_the_others_their_time_at_a_shutdown) {
  auto let_go = std::make_unique<std::atomic<bool>>(false);
  const auto runtime = Runtime::create().value();
  const ActorHandle stubborn = runtime->launch("a stubborn one", Stubborn{let_go.get()}).value();
  ASSERT_TRUE(runtime->launch("b", Echo{}) && runtime->launch("c", Echo{}));
  ASSERT_TRUE(stubborn->activate() && runtime->activate("b") && runtime->activate("c"));
  ASSERT_TRUE(stubborn->send(number(1)));
  while (stubborn->telemetry().received == 0) std::this_thread::sleep_for(1ms);
  const ShutdownReport report = runtime->shutdown(Termination::discard(3s));
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_NE(report.errors[0].find("a stubborn one"), std::string::npos) << report.errors[0];
  let_go->store(true);
  while (stubborn->telemetry().blocked || stubborn.use_count() > 1) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // its thread sees the stop and ends before what it points to is gone
}

struct OneShot {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    if (context.receive(message)) context.send(message);
    return 0;
  }
};

TEST(supervision, a_body_that_returns_by_itself_has_ended_and_its_queue_is_counted) {
  Stage stage;
  ActorOptions options = small(8);
  const ActorHandle actor = activated(stage.runtime->launch("once", OneShot{}, options));
  ASSERT_TRUE(actor->deactivate());
  for (std::int64_t i = 0; i < 4; ++i) ASSERT_TRUE(actor->send(number(i)));
  ASSERT_TRUE(actor->reactivate());
  stage.schedule.run_until_idle();
  EXPECT_EQ(actor->state(), ActorState::terminated);
  EXPECT_EQ(actor->telemetry().loss.discarded, 3u);
  EXPECT_EQ(value_of(actor->receive(0ns).value()), 0);
  EXPECT_FALSE(actor->receive(0ns));
}

// What was queued behind the failure was dropped, since nobody was there to be drained.
TEST(supervision, a_drain_that_comes_before_a_restart_makes_it) {
  Stage stage;
  RestartPolicy slow;
  slow.kind = RestartKind::limited;
  slow.back_off = slow.max_back_off = 10s;
  const ActorHandle actor = stage.start("fragile", slow);
  ASSERT_TRUE(actor->send(number(-2)));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(actor->send(number(i)));
  stage.schedule.run_until_idle();
  ASSERT_EQ(actor->telemetry().failures, 1u);
  const auto report = actor->terminate(Termination::drain(1s));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->drained, 5u);
  EXPECT_EQ(report->dropped, 0u);
  EXPECT_EQ(actor->telemetry().restarts, 1u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value_of(actor->receive(1s).value()), i);
}

struct FailAtNegative {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (payload<Number>(message).value < 0) return 7;
      context.send(message);
    }
    return 0;
  }
};

// A body that had failed again before the drain looked was taken for one that had ended, and the rest was dropped.
TEST(supervision, bodies_that_fail_again_at_once_are_drained_to_the_end) {
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100;
  options.restart.back_off = options.restart.max_back_off = 10s;
  for (int round = 0; round < 300; ++round) {
    const auto runtime = Runtime::create().value();
    const ActorHandle actor = activated(runtime->launch("fragile", FailAtNegative{}, options));
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(actor->send(number(i % 2 == 0 ? -1 : i)));
    while (actor->telemetry().failures == 0) std::this_thread::yield();
    const auto report = actor->terminate(Termination::drain(20s));
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->dropped, 0u) << "round " << round;
    ASSERT_EQ(actor->telemetry().failures, 3u);
    for (const int i : {1, 3, 5}) ASSERT_EQ(value_of(actor->receive(1s).value()), i);
  }
}

}  // namespace
}  // namespace cingulum::ring::supervision_tests
