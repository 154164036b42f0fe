// Actors as the runtime's users see them: life cycle, talking, wiring, termination. Failures: supervision.test.cpp.
#include "ring/actor/runtime.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "ring/actor/typed_actor.hpp"
#include "ring/small_actors.hpp"

namespace cingulum::ring::runtime_tests {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: small actors

struct Doubler {
  template <class Context>
  CGL_HD void operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      Message out = message;
      const Number doubled{2 * payload<Number>(message).value};
      memcpy(out.payload, &doubled, sizeof(doubled));
      context.send(out);
    }
  }
};
// Keeps a running sum in the actor's state.
struct Summer {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    auto& sum = context.template state<std::int64_t>();
    while (context.receive(message)) {
      sum += payload<Number>(message).value;
      context.send(make_reply(message, Number{sum}));
    }
    return 0;
  }
};

std::unique_ptr<Runtime> make_runtime() {
  return Runtime::create().value();
}

TEST(runtime, every_state_allows_what_the_table_says_and_names_what_it_does_not) {
  const auto runtime = make_runtime();
  const ActorHandle actor = runtime->launch("echo", Echo{}, small()).value();
  EXPECT_EQ(actor->state(), ActorState::launched);
  const Status early = actor->send(number(1));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().kind(), ErrorKind::invalid_state);
  EXPECT_EQ(early.error().message(), "actor 'echo': cannot send in state launched; activate it first");
  EXPECT_FALSE(actor->launch());
  EXPECT_FALSE(actor->deactivate());
  EXPECT_FALSE(actor->reactivate());
  EXPECT_FALSE(actor->receive(0ns));
  ASSERT_TRUE(actor->activate());
  EXPECT_FALSE(actor->activate());
  EXPECT_FALSE(actor->reactivate());
  EXPECT_FALSE(actor->wire(1, {}));
  ASSERT_TRUE(actor->deactivate());
  EXPECT_EQ(actor->state(), ActorState::deactivated);
  EXPECT_FALSE(actor->deactivate());
  ASSERT_TRUE(actor->reactivate());
  ASSERT_TRUE(actor->terminate(Termination::discard()));
  EXPECT_EQ(actor->state(), ActorState::terminated);
  ASSERT_TRUE(actor->terminate(Termination::discard())) << "a second time does nothing";
  for (const Status& status :
       {actor->launch(), actor->activate(), actor->deactivate(), actor->reactivate(), actor->send(number(1))}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::invalid_state);
    EXPECT_NE(status.error().message().find("in state terminated"), std::string::npos) << status.error().message();
  }
}

TEST(runtime, batches_are_taken_as_far_as_there_is_room_and_come_back_in_order) {
  const auto runtime = make_runtime();
  const ActorHandle actor = runtime->launch("echo", Echo{}, small(4)).value();
  std::vector<Message> batch;
  for (int i = 0; i < 6; ++i) batch.push_back(number(i));
  EXPECT_EQ(actor->send_batch(batch), 0u);  // launched only
  ASSERT_TRUE(actor->activate());
  ASSERT_TRUE(actor->deactivate());
  EXPECT_EQ(actor->send_batch(batch), 4u);
  EXPECT_EQ(actor->send_batch(std::span(batch).subspan(4)), 0u);
  EXPECT_EQ(actor->telemetry().loss.rejected, 0u);  // they are still the sender's
  std::vector<Message> got(6);
  EXPECT_EQ(actor->receive_batch(got), 0u);
  ASSERT_TRUE(actor->reactivate());
  std::uint32_t count = 0;
  for (const auto end = std::chrono::steady_clock::now() + 10s; count < 4 && std::chrono::steady_clock::now() < end;) {
    count += actor->receive_batch(std::span(got).subspan(count));
    std::this_thread::yield();
  }
  ASSERT_EQ(count, 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(value_of(got[static_cast<std::size_t>(i)]), i);
  ASSERT_TRUE(runtime->terminate("echo").has_value());
  EXPECT_EQ(actor->send_batch(batch), 0u);
}

TEST(runtime, an_actor_can_be_terminated_in_every_state) {
  for (const int steps : {0, 1, 2}) {
    const auto runtime = make_runtime();
    const ActorHandle actor = runtime->launch("echo", Echo{}, small()).value();
    if (steps > 0) {
      ASSERT_TRUE(actor->activate());
    }
    if (steps > 1) {
      ASSERT_TRUE(actor->deactivate());
    }
    ASSERT_TRUE(runtime->terminate("echo"));
    EXPECT_EQ(actor->state(), ActorState::terminated);
    EXPECT_TRUE(runtime->names().empty());
    EXPECT_TRUE(runtime->launch("echo", Echo{}, small())) << "the name is free again";
  }
}

TEST(runtime, names_are_unique_and_unknown_ones_list_the_known) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("one", Echo{}, small()));
  const auto twice = runtime->launch("one", Echo{}, small());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().kind(), ErrorKind::already_exists);
  const Status unknown = runtime->activate("two");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::not_found);
  EXPECT_NE(unknown.error().message().find("known: one"), std::string::npos);
  runtime->register_body("echo", Echo{});
  EXPECT_TRUE(runtime->launch_registered("two", "echo", small()));
  EXPECT_EQ(runtime->launch_registered("three", "none", small()).error().kind(), ErrorKind::not_found);
}

TEST(runtime, options_out_of_range_are_refused_with_the_value) {
  const auto runtime = make_runtime();
  for (const std::uint32_t capacity : {0u, 3u, 1u << 21}) {
    ActorOptions options;
    options.inbox_capacity = capacity;
    const auto launched = runtime->launch("echo", Echo{}, options);
    ASSERT_FALSE(launched) << capacity;
    EXPECT_EQ(launched.error().kind(), ErrorKind::invalid_argument);
    EXPECT_NE(launched.error().message().find(std::to_string(capacity)), std::string::npos);
  }
}

// Each duration has to be above nothing, and the message says which was not.
TEST(runtime, every_option_is_checked_and_named) {
  EXPECT_TRUE(check_options("echo", {}));
  const auto expect_refused = [](const char* what, const auto& change) {
    ActorOptions options;
    change(options);
    const Status checked = check_options("echo", options);
    ASSERT_FALSE(checked) << what;
    EXPECT_EQ(checked.error().kind(), ErrorKind::invalid_argument) << what;
    EXPECT_EQ(checked.error().message().find(std::string("actor 'echo': ") + what), 0u) << checked.error().message();
  };
  expect_refused("inbox_capacity 3 is not a power of two", [](ActorOptions& o) { o.inbox_capacity = 3; });
  expect_refused("outbox_capacity 0 is not a power of two", [](ActorOptions& o) { o.outbox_capacity = 0; });
  expect_refused("stall_limit of 0 ns is not above 0", [](ActorOptions& o) { o.stall_limit = 0ns; });
  expect_refused("restart.window of -1 ns is not above 0", [](ActorOptions& o) { o.restart.window = -1ns; });
  expect_refused("restart.back_off of 0 ns is not above 0", [](ActorOptions& o) { o.restart.back_off = 0ns; });
  expect_refused("restart.max_back_off of 0 ns is not above 0", [](ActorOptions& o) { o.restart.max_back_off = 0ns; });
  expect_refused("restart.cool_down of 0 ns is not above 0", [](ActorOptions& o) { o.restart.cool_down = 0ns; });
  expect_refused("fairness_interval 0 is not at least 1", [](ActorOptions& o) { o.fairness_interval = 0; });
  EXPECT_FALSE(check_options("", {}));
}

TEST(runtime, what_is_sent_comes_back_through_the_output) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("double", Doubler{}, small()));
  ASSERT_TRUE(runtime->activate("double"));
  for (std::int64_t i = 0; i < 10; ++i) ASSERT_TRUE(runtime->send("double", number(i)));
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(value_of(runtime->receive("double", 5s).value()), 2 * i);
  const auto nothing = runtime->receive("double", 1ms);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind(), ErrorKind::timed_out);
}

// The fault to catch: a body that simply receives goes on while it is deactivated.
TEST(runtime, deactivation_gates_a_body_that_knows_nothing_of_it) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, small()));
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(actor->deactivate(5s));
    for (std::int64_t i = 0; i < 5; ++i) ASSERT_TRUE(actor->send(number(i)));
    const auto none = actor->receive(1ms);
    ASSERT_FALSE(none);
    EXPECT_EQ(actor->telemetry().inbox_depth, 5u);
    ASSERT_TRUE(actor->reactivate());
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(value_of(actor->receive(5s).value()), i);
  }
}

TEST(runtime, requests_get_their_own_answers_with_many_in_flight) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("double", Doubler{}, small()));
  std::vector<PendingReply> pending;
  for (std::int64_t i = 0; i < 50; ++i) {
    Message message = number(i);
    message.header.correlation = 1000 + static_cast<std::uint64_t>(i);
    pending.push_back(runtime->request_later(*actor, message).value());
  }
  for (std::int64_t i = 49; i >= 0; --i) {  // asked for in another order than answered
    const Message answer = pending[static_cast<std::size_t>(i)].wait(5s).value();
    EXPECT_EQ(value_of(answer), 2 * i);
    EXPECT_EQ(answer.header.correlation, 1000 + static_cast<std::uint64_t>(i));
    EXPECT_FALSE(answer.has(mark_request));
  }
  std::vector<std::thread> askers;
  std::atomic<int> wrong{0};
  for (std::int64_t asker = 0; asker < 4; ++asker) {
    askers.emplace_back([&, asker] {
      for (std::int64_t i = 0; i < 200; ++i) {
        const auto answer = runtime->request("double", number(1000 * asker + i), 10s);
        if (!answer || value_of(*answer) != 2 * (1000 * asker + i)) ++wrong;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong.load(), 0);
  ASSERT_TRUE(actor->terminate(Termination::drain(5s)));  // an answer is counted after it was given
  EXPECT_EQ(actor->telemetry().received, 850u);
  EXPECT_EQ(actor->telemetry().sent, 850u);
}

TEST(runtime, a_late_answer_is_counted_and_never_given_to_another) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("double", Doubler{}, small()));
  ASSERT_TRUE(actor->deactivate(5s));
  const auto late = runtime->request(*actor, number(1), 1ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
  auto next = runtime->request_later(*actor, number(21));
  ASSERT_TRUE(next);
  ASSERT_TRUE(actor->reactivate());
  EXPECT_EQ(value_of(next->wait(5s).value()), 42);
  EXPECT_EQ(actor->telemetry().loss.late_replies, 1u);
}

TEST(runtime, state_is_kept_between_messages) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("sum", Summer{}, small()));
  ASSERT_TRUE(runtime->activate("sum"));
  std::int64_t sum = 0;
  for (std::int64_t i = 1; i <= 20; ++i) {
    sum += i;
    EXPECT_EQ(value_of(runtime->request("sum", number(i), 5s).value()), sum);
  }
}

TEST(runtime, draining_gives_all_that_was_queued_to_the_body) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, small()));
  ASSERT_TRUE(actor->deactivate(5s));
  for (std::int64_t i = 0; i < 40; ++i) ASSERT_TRUE(actor->send(number(i)));
  const TerminationReport report = runtime->terminate("echo", Termination::drain(10s)).value();
  EXPECT_EQ(report.drained, 40u);
  EXPECT_EQ(report.dropped, 0u);
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(value_of(actor->receive(0ns).value()), i) << "left in the output";
  const auto after = actor->receive(1s);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind(), ErrorKind::closed);
}

TEST(runtime, discarding_counts_what_the_body_never_saw) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, small()));
  ASSERT_TRUE(actor->deactivate(5s));
  for (std::int64_t i = 0; i < 40; ++i) ASSERT_TRUE(actor->send(number(i)));
  const TerminationReport report = actor->terminate(Termination::discard()).value();
  EXPECT_EQ(report.drained, 0u);
  EXPECT_EQ(report.dropped, 40u);
  EXPECT_EQ(actor->telemetry().loss.discarded, 40u);
}

TEST(runtime, a_drain_that_cannot_end_stops_at_its_time_and_counts_the_rest) {
  const auto runtime = make_runtime();
  const ActorHandle actor = runtime->launch("echo", Echo{}, small(4)).value();
  const ActorHandle shut = runtime->launch("shut", Echo{}, small(4)).value();  // takes nothing
  ASSERT_TRUE(runtime->pipeline({"echo", "shut"}));
  for (const ActorHandle& each : {shut, actor}) {
    ASSERT_TRUE(each->activate());
    ASSERT_TRUE(each->deactivate(5s));
  }
  for (std::int64_t i = 0; i < 4; ++i) ASSERT_TRUE(actor->send(number(i)));
  ASSERT_TRUE(actor->reactivate());
  for (std::int64_t i = 4; i < 8; ++i) ASSERT_TRUE(actor->send(number(i), {5s, no_time_limit}));
  const TerminationReport report = actor->terminate(Termination::drain(20ms)).value();
  const ActorTelemetry telemetry = actor->telemetry();
  EXPECT_EQ(telemetry.received + report.dropped, 8u);
  EXPECT_EQ(telemetry.emitted + telemetry.refused, telemetry.received);
  EXPECT_EQ(telemetry.emitted, 4u);
}

TEST(runtime, draining_does_not_wait_for_someone_to_read_the_output) {
  const auto runtime = make_runtime();
  ActorOptions options = small(64);
  options.outbox_capacity = 2;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  ASSERT_TRUE(actor->deactivate(5s));
  for (std::int64_t i = 0; i < 64; ++i) ASSERT_TRUE(actor->send(number(i)));
  const TerminationReport report = actor->terminate(Termination::drain(30s)).value();
  EXPECT_EQ(report.drained, 64u);
  EXPECT_EQ(report.dropped, 0u);
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(value_of(actor->receive(0ns).value()), i);
  EXPECT_FALSE(actor->receive(0ns));
}

// A receive or request that waits at the end is woken with an error.
TEST(runtime, termination_wakes_all_who_wait) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, small(1)));
  ASSERT_TRUE(actor->deactivate(5s));
  ASSERT_TRUE(actor->send(number(1)));
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  waiters.emplace_back([&] { woken += actor->receive() ? 0 : 1; });
  waiters.emplace_back([&] { woken += actor->send(number(2)) ? 0 : 1; });
  Message urgent = number(3);
  urgent.set_band(Band::high);
  waiters.emplace_back([&] { woken += runtime->request(*actor, urgent) ? 0 : 1; });
  std::this_thread::sleep_for(20ms);
  ASSERT_TRUE(actor->terminate(Termination::discard()));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken.load(), 3);
}

TEST(runtime, a_pipeline_runs_without_the_host) {
  const auto runtime = make_runtime();
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(runtime->launch(name, Doubler{}, small()));
  ASSERT_TRUE(runtime->pipeline({"a", "b", "c"}));
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(runtime->activate(name));
  for (std::int64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(runtime->send("a", number(i)));
    EXPECT_EQ(value_of(runtime->receive("c", 5s).value()), 8 * i);
  }
  // What is passed on is counted after it has gone, maybe after the last of the chain has it.
  ASSERT_TRUE(comes_true([&] { return runtime->telemetry("a").value().emitted >= 100; }));
  EXPECT_EQ(runtime->telemetry("a").value().emitted, 100u);
  // A body that answers a request itself completes it at the first stage.
  EXPECT_EQ(value_of(runtime->request("a", number(5), 5s).value()), 10);
}

struct Forwarder {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (context.emit(1, message) != PutStatus::stored) return 7;
    }
    return 0;
  }
};

// Answers with the number of who sent the message.
struct SourceTeller {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) context.send(make_reply(message, Number{message.source()}));
    return 0;
  }
};

TEST(runtime, a_forwarded_request_is_answered_by_the_last_in_the_chain) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("first", Forwarder{}, small()));
  ASSERT_TRUE(runtime->launch("last", Doubler{}, small()));
  ASSERT_TRUE(runtime->fan_out("first", 1, {"last"}));
  ASSERT_TRUE(runtime->activate("first"));
  ASSERT_TRUE(runtime->activate("last"));
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(value_of(runtime->request("first", number(i), 5s).value()), 2 * i);
}

TEST(runtime, fan_out_gives_each_receiver_a_copy_and_topics_do_so_by_name) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("source", Forwarder{}, small()));
  for (const char* name : {"x", "y"}) {
    ASSERT_TRUE(runtime->launch(name, Echo{}, small()));
    ASSERT_TRUE(runtime->activate(name));
  }
  ASSERT_TRUE(runtime->fan_out("source", 1, {"x", "y"}));
  ASSERT_TRUE(runtime->activate("source"));
  ASSERT_TRUE(runtime->send("source", number(3)));
  for (const char* name : {"x", "y"}) {
    const Message got = runtime->receive(name, 5s).value();
    EXPECT_EQ(value_of(got), 3);
  }
  ASSERT_TRUE(runtime->subscribe("news", "x"));
  ASSERT_TRUE(runtime->subscribe("news", "x"));
  EXPECT_EQ(runtime->publish("news", number(4)).value(), 1u);
  ASSERT_TRUE(runtime->subscribe("news", "y"));
  EXPECT_EQ(runtime->publish("news", number(5)).value(), 2u);
  EXPECT_EQ(value_of(runtime->receive("x", 5s).value()), 4);
  EXPECT_EQ(value_of(runtime->receive("x", 5s).value()), 5);
  EXPECT_EQ(value_of(runtime->receive("y", 5s).value()), 5);
  ASSERT_TRUE(runtime->unsubscribe("news", "x"));
  EXPECT_FALSE(runtime->unsubscribe("news", "x"));
  ASSERT_TRUE(runtime->deactivate("source"));
  ASSERT_TRUE(runtime->wire_to_topic("source", 1, "news"));
  ASSERT_TRUE(runtime->reactivate("source"));
  ASSERT_TRUE(runtime->send("source", number(6)));
  EXPECT_EQ(value_of(runtime->receive("y", 5s).value()), 6);
  ASSERT_TRUE(runtime->terminate("y"));
  EXPECT_EQ(runtime->publish("news", number(7)).value(), 0u) << "who is gone has unsubscribed";
}

// What emit answers and counts: a port without wires, and a fan-out of which one end is gone, whichever it is.
TEST(runtime, emit_answers_the_worst_of_its_receivers_and_counts_each) {
  const auto runtime = make_runtime();
  const ActorHandle unwired = activated(runtime->launch("unwired", Forwarder{}, small()));
  const auto refused = runtime->request(*unwired, number(1), 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(unwired->failure()->code, 7);
  EXPECT_EQ(unwired->telemetry().emitted, 0u);
  EXPECT_EQ(unwired->telemetry().refused, 1u);
  for (const bool first_is_gone : {true, false}) {
    const std::string name = first_is_gone ? "source a" : "source b";
    for (const char* end : {"x", "y"}) {
      ASSERT_TRUE(runtime->launch(end, Echo{}, small()));
      ASSERT_TRUE(runtime->activate(end));
    }
    const ActorHandle source = runtime->launch(name, Forwarder{}, small()).value();
    ASSERT_TRUE(runtime->fan_out(name, 1, {"x", "y"}));
    ASSERT_TRUE(source->activate());
    const std::string gone = first_is_gone ? "x" : "y";
    const std::string there = first_is_gone ? "y" : "x";
    ASSERT_TRUE(runtime->terminate(gone));
    ASSERT_TRUE(source->send(number(3)));
    EXPECT_EQ(value_of(runtime->receive(there, 5s).value()), 3) << "the other end still gets it";
    const auto ended = source->receive(5s);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind(), ErrorKind::closed);
    EXPECT_EQ(source->failure()->code, 7) << "the body was told";
    EXPECT_EQ(source->telemetry().emitted, 1u);
    EXPECT_EQ(source->telemetry().refused, 1u);
    ASSERT_TRUE(runtime->terminate(there));
  }
}

// Passes the message on and fails at once: the request is the receiver's by then.
struct ForwardAndFail {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (context.emit(1, message) == PutStatus::stored) return 8;
    }
    return 0;
  }
};

TEST(runtime, a_request_that_was_passed_on_is_answered_though_the_one_who_passed_it_failed) {
  const auto runtime = make_runtime();
  // With a restart: a final failure ends all requests to the one who was asked.
  ActorOptions restarting = small();
  restarting.restart.kind = RestartKind::limited;
  const ActorHandle first = runtime->launch("first", ForwardAndFail{}, restarting).value();
  const ActorHandle last = runtime->launch("last", Doubler{}, small()).value();
  ASSERT_TRUE(runtime->fan_out("first", 1, {"last"}));
  ASSERT_TRUE(last->activate());
  ASSERT_TRUE(last->deactivate(5s));
  ASSERT_TRUE(first->activate());
  auto pending = runtime->request_later(*first, number(4));
  ASSERT_TRUE(pending);
  ASSERT_TRUE(comes_true([&] { return first->telemetry().failures != 0; }));
  ASSERT_EQ(first->failure()->code, 8);
  ASSERT_TRUE(last->reactivate());
  const auto answer = pending->wait(5s);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(value_of(*answer), 8);
}

// Counts in its state, fails at negative numbers.
struct FragileCounter {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      auto& count = context.template state<std::int64_t>();
      ++count;
      if (payload<Number>(message).value < 0) return 9;
      context.send(make_reply(message, Number{count}));
    }
    return 0;
  }
};

TEST(runtime, a_restart_begins_with_a_cleared_state) {
  const auto runtime = make_runtime();
  ActorOptions options = small();
  options.restart.kind = RestartKind::limited;
  const ActorHandle actor = activated(runtime->launch("counter", FragileCounter{}, options));
  for (std::int64_t i = 1; i <= 3; ++i) EXPECT_EQ(value_of(runtime->request(*actor, number(0), 5s).value()), i);
  ASSERT_TRUE(actor->send(number(-1)));
  EXPECT_EQ(value_of(runtime->request(*actor, number(0), 30s).value()), 1);
}

TEST(runtime, the_output_has_its_own_policy_and_its_losses_are_told) {
  const auto runtime = make_runtime();
  ActorOptions options = small();
  options.outbox_capacity = 2;
  options.outbox_policy = FullPolicy::drop_oldest;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  for (std::int64_t i = 0; i < 5; ++i) ASSERT_TRUE(actor->send(number(i)));
  ASSERT_TRUE(comes_true([&] { return actor->telemetry().sent >= 5; }));
  for (std::int64_t i = 3; i < 5; ++i) EXPECT_EQ(value_of(actor->receive(5s).value()), i);
  EXPECT_EQ(actor->telemetry().loss.dropped_oldest, 3u);
  options.outbox_policy = FullPolicy::drop_new;
  const ActorHandle other = activated(runtime->launch("other", Echo{}, options));
  for (std::int64_t i = 0; i < 5; ++i) ASSERT_TRUE(other->send(number(i)));
  ASSERT_TRUE(comes_true([&] { return other->telemetry().sent + other->telemetry().refused >= 5; }));
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_EQ(value_of(other->receive(5s).value()), i);
  EXPECT_EQ(other->telemetry().loss.dropped_new, 3u);
  EXPECT_EQ(other->telemetry().refused, 3u);
}

TEST(runtime, a_scope_terminates_its_actor_whatever_way_it_is_left) {
  const auto runtime = make_runtime();
  ActorHandle kept;
  {
    auto scope = ScopedActor::start(*runtime, "inner", Echo{}, small());
    ASSERT_TRUE(scope);
    EXPECT_EQ((*scope)->state(), ActorState::active);
    kept = runtime->find("inner").value();
  }
  EXPECT_EQ(kept->state(), ActorState::terminated);
  EXPECT_FALSE(runtime->find("inner"));
}

TEST(runtime, shutdown_ends_all_and_nothing_can_be_launched_after) {
  const auto runtime = make_runtime();
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(runtime->launch(name, Echo{}, small()));
    ASSERT_TRUE(runtime->activate(name));
    ASSERT_TRUE(runtime->deactivate(name));
    ASSERT_TRUE(runtime->send(name, number(1)));
  }
  const ShutdownReport report = runtime->shutdown(Termination::drain(5s));
  EXPECT_EQ(report.messages.drained, 2u);
  EXPECT_TRUE(report.errors.empty());
  EXPECT_FALSE(runtime->launch("c", Echo{}, small()));
  EXPECT_TRUE(runtime->shutdown().errors.empty());
}

// A runtime whose counters all stay zero looks healthy: each must count.
TEST(runtime, telemetry_counts_the_traffic) {
  const auto runtime = make_runtime();
  ActorOptions options = small();
  options.latency_sample_interval = 1;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  for (std::int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(actor->send(number(i)));
    ASSERT_TRUE(actor->receive(5s));
  }
  ASSERT_TRUE(actor->terminate(Termination::drain(5s)));  // what is sent is counted after it has gone
  const RuntimeTelemetry all = runtime->telemetry();
  ASSERT_EQ(all.actors.size(), 1u);
  const ActorTelemetry& one = all.actors[0];
  EXPECT_EQ(one.received, 30u);
  EXPECT_EQ(one.sent, 30u);
  EXPECT_EQ(one.latency.count, 30u);
  EXPECT_GT(one.latency.max_ns, 0u);
  EXPECT_GT(one.uptime_s, 0.0);
  EXPECT_GT(one.messages_per_s, 0.0);
  EXPECT_EQ(one.backend, "cpu");
  EXPECT_EQ(one.loss.discarded + one.loss.dead_letters + one.loss.rejected, 0u);
  EXPECT_EQ(all.received, 30u);
}

// Bands through the whole actor: depths are counted by band, the most urgent is given first, and an answer keeps its
// band.
TEST(runtime, a_body_is_given_the_most_urgent_band_first_and_each_band_is_counted) {
  const auto runtime = make_runtime();
  ActorOptions options = small();
  options.fairness_interval = 1000;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  ASSERT_TRUE(actor->deactivate(5s));
  const std::vector<Band> bands = {Band::low, Band::normal, Band::high, Band::system};
  for (std::size_t i = 0; i < bands.size(); ++i) {
    for (std::size_t count = 0; count <= i; ++count) {  // as many as its place says, so that no two depths are alike
      Message message = number(static_cast<std::int64_t>(10 * i + count));
      message.set_band(bands[i]);
      ASSERT_TRUE(actor->send(message));
    }
  }
  const ActorTelemetry waiting = actor->telemetry();
  for (std::size_t i = 0; i < bands.size(); ++i) {
    EXPECT_EQ(waiting.inbox_depth_of_band[static_cast<std::size_t>(bands[i])], i + 1);
  }
  EXPECT_EQ(waiting.inbox_depth, 10u);
  // The output has bands as well: they are taken one by one while the body waits, so drain first.
  ASSERT_TRUE(actor->terminate(Termination::drain(10s)));
  EXPECT_EQ(actor->telemetry().outbox_depth, 10u);
  for (std::size_t i = bands.size(); i-- > 0;) {
    for (std::size_t count = 0; count <= i; ++count) {
      const Message got = actor->receive(0ns).value();
      EXPECT_EQ(value_of(got), static_cast<std::int64_t>(10 * i + count));
      EXPECT_EQ(got.band(), bands[i]);
      EXPECT_EQ(got.source(), actor->number());
    }
  }
  EXPECT_FALSE(actor->receive(0ns));
}

TEST(runtime, a_message_names_the_actor_that_sent_it_last) {
  const auto runtime = make_runtime();
  const ActorHandle first = runtime->launch("first", Forwarder{}, small()).value();
  const ActorHandle last = runtime->launch("last", Forwarder{}, small()).value();
  const ActorHandle sink = runtime->launch("sink", SourceTeller{}, small()).value();
  ASSERT_TRUE(runtime->fan_out("first", 1, {"last"}) && runtime->fan_out("last", 1, {"sink"}));
  for (const ActorHandle& actor : {first, last, sink}) ASSERT_TRUE(actor->activate());
  ASSERT_TRUE(first->send(number(1)));
  EXPECT_EQ(value_of(sink->receive(5s).value()), last->number());
  ASSERT_TRUE(sink->send(number(1)));
  EXPECT_EQ(value_of(sink->receive(5s).value()), 0) << "from a thread of the host";
}

TEST(runtime, policies_of_the_options_reach_the_queues) {
  const auto runtime = make_runtime();
  ActorOptions options = small(2);
  options.inbox_policy = FullPolicy::reject;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  ASSERT_TRUE(actor->deactivate(5s));
  EXPECT_TRUE(actor->send(number(1)));
  EXPECT_TRUE(actor->send(number(2)));
  const Status third = actor->send(number(3));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind(), ErrorKind::full);
  EXPECT_EQ(actor->try_send(number(4)), PutStatus::full);
  EXPECT_EQ(actor->telemetry().loss.rejected, 2u);
  EXPECT_EQ(actor->telemetry().inbox_peak, 2u);
}

TEST(runtime, a_batch_goes_on_after_messages_that_the_policy_drops) {
  const auto runtime = make_runtime();
  ActorOptions options = small(2);
  options.inbox_policy = FullPolicy::drop_new;
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, options));
  ASSERT_TRUE(actor->deactivate(5s));
  std::vector<Message> batch;
  for (std::int64_t i = 0; i < 5; ++i) batch.push_back(number(i));
  EXPECT_EQ(actor->send_batch(batch), 5u) << "none of them is still the sender's";
  EXPECT_EQ(actor->telemetry().loss.dropped_new, 3u);
  EXPECT_EQ(runtime->telemetry().lost, 3u);
}

TEST(runtime, a_watched_request_is_answered_behind_its_look) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("double", Doubler{}, small()));
  ASSERT_TRUE(actor->deactivate(5s));
  auto pending = runtime->request_watched(*actor, number(3), 1us);
  ASSERT_TRUE(pending);
  EXPECT_FALSE(pending->is_done());
  ASSERT_TRUE(actor->reactivate());
  EXPECT_EQ(value_of(pending->wait(5s).value()), 6);
}

TEST(runtime, a_message_whose_time_ends_in_the_queue_is_lost_and_its_asker_is_told) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("double", Doubler{}, small()));
  ASSERT_TRUE(actor->deactivate(5s));
  ASSERT_TRUE(actor->send(number(1), {.timeout = 5s, .time_to_live = 1ms}));
  auto patient = runtime->request_later(*actor, number(3));
  ASSERT_TRUE(patient);
  std::this_thread::sleep_for(3ms);
  ASSERT_TRUE(actor->reactivate());
  EXPECT_EQ(value_of(patient->wait(5s).value()), 6);
  EXPECT_FALSE(actor->receive(0ns)) << "what had expired was answered";
  EXPECT_EQ(actor->telemetry().loss.expired, 1u);
  EXPECT_EQ(runtime->telemetry().lost, 1u);
}

// Who waits for room says why he stopped: his own patience, or the time that the message had to live.
TEST(runtime, a_send_without_room_tells_its_timeout_from_the_time_to_live) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("echo", Echo{}, small(1)));
  ASSERT_TRUE(actor->deactivate(5s));
  ASSERT_TRUE(actor->send(number(1)));
  const Status impatient = actor->send(number(2), {.timeout = 1ms, .time_to_live = 60s});
  ASSERT_FALSE(impatient);
  EXPECT_EQ(impatient.error().kind(), ErrorKind::timed_out);
  EXPECT_EQ(impatient.error().message(), "actor 'echo': no room in its queue of 1 messages in time");
  EXPECT_EQ(actor->telemetry().loss.rejected, 1u);
  EXPECT_EQ(actor->telemetry().loss.expired, 0u);
  const Status short_lived = actor->send(number(3), {.timeout = 60s, .time_to_live = 1ms});
  ASSERT_FALSE(short_lived);
  EXPECT_EQ(short_lived.error().kind(), ErrorKind::timed_out);
  EXPECT_EQ(short_lived.error().message(), "actor 'echo': the message's time to live ended before there was room");
  EXPECT_EQ(actor->telemetry().loss.rejected, 1u);
  EXPECT_EQ(actor->telemetry().loss.expired, 1u);
}

// The places for requests in flight: each way in which a request ends gives its place back, clean.
TEST(runtime, every_end_of_a_request_gives_its_place_to_the_next) {
  RuntimeOptions one_place;
  one_place.max_requests = 1;
  const auto runtime = Runtime::create(one_place).value();
  ActorOptions rejecting = small(1);
  rejecting.inbox_policy = FullPolicy::reject;
  const ActorHandle actor = runtime->launch("double", Doubler{}, rejecting).value();
  const ActorHandle failing = runtime->launch("failing", FragileCounter{}, small()).value();
  ASSERT_TRUE(actor->activate() && failing->activate());
  for (std::int64_t i = 0; i < 3; ++i) {
    // Answered.
    EXPECT_EQ(value_of(runtime->request(*actor, number(i), 30s).value()), 2 * i);
    ASSERT_TRUE(actor->deactivate(5s));
    // Out of time: it lies in the queue still, which is full from here on.
    const auto late = runtime->request(*actor, number(1), 1ms);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::timed_out) << late.error().message();
    // Refused by the queue, not for want of a place.
    const auto refused = runtime->request(*actor, number(1), 1ms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::full);
    EXPECT_EQ(refused.error().message().find("in flight"), std::string::npos) << refused.error().message();
    ASSERT_TRUE(actor->reactivate());
    ASSERT_TRUE(comes_true([&] { return actor->telemetry().loss.late_replies == static_cast<std::uint64_t>(i) + 1; }));
  }
  // Failed: the error is not the next one's.
  const auto failed = runtime->request(*failing, number(-1), 30s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::closed);
  EXPECT_EQ(value_of(runtime->request(*actor, number(21), 30s).value()), 42);
  // Taken, while it is still open.
  auto open = runtime->request_later(*actor, number(1));
  ASSERT_TRUE(open);
  const auto second = runtime->request_later(*actor, number(2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::full);
  EXPECT_NE(second.error().message().find("1 requests are in flight"), std::string::npos) << second.error().message();
  EXPECT_EQ(value_of(open->wait(30s).value()), 2);
}

TEST(runtime, an_actor_that_fails_ends_its_own_requests_alone) {
  const auto runtime = make_runtime();
  const ActorHandle good = runtime->launch("good", Doubler{}, small()).value();
  const ActorHandle bad = runtime->launch("bad", FragileCounter{}, small()).value();
  ASSERT_TRUE(good->activate() && bad->activate());
  ASSERT_TRUE(good->deactivate(5s));
  auto pending = runtime->request_later(*good, number(4));
  ASSERT_TRUE(pending);
  ASSERT_FALSE(runtime->request(*bad, number(-1), 30s));
  ASSERT_TRUE(comes_true([&] { return bad->state() == ActorState::failed; }));
  ASSERT_TRUE(good->reactivate());
  const auto answer = pending->wait(30s);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(value_of(*answer), 8);
}

// Takes a request and returns without an answer, as if all were well.
struct Quitter {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    static_cast<void>(context.receive(message));
    return 0;
  }
};

TEST(runtime, a_body_that_returns_without_an_answer_leaves_nobody_waiting) {
  const auto runtime = make_runtime();
  const ActorHandle actor = activated(runtime->launch("quitter", Quitter{}, small()));
  const auto answer = runtime->request(*actor, number(1), 60s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::closed) << answer.error().message();
  EXPECT_EQ(actor->state(), ActorState::terminated);
}

// Answers with a code of its own.
struct Refuser {
  template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      Message reply = make_reply(message, Number{-33});
      reply.set_payload_bytes(4);
      reply.header.flags |= mark_failed;
      context.send(reply);
    }
    return 0;
  }
};

TEST(runtime, an_answer_that_reports_a_failure_is_an_error_with_its_code) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("refuser", Refuser{}, small()));
  ASSERT_TRUE(runtime->activate("refuser"));
  const auto answer = runtime->request("refuser", number(1), 30s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::device);
  EXPECT_NE(answer.error().message().find("failure -33"), std::string::npos) << answer.error().message();
}

TEST(runtime, a_topic_answers_the_worst_of_its_subscribers) {
  const auto runtime = make_runtime();
  ActorOptions rejecting = small(1);
  rejecting.inbox_policy = FullPolicy::reject;
  ASSERT_TRUE(runtime->launch("full", Echo{}, rejecting));
  ASSERT_TRUE(runtime->launch("free", Echo{}, small()));
  const ActorHandle source = runtime->launch("source", Forwarder{}, small()).value();
  ASSERT_TRUE(runtime->wire_to_topic("source", 1, "news"));
  for (const char* name : {"full", "free", "source"}) ASSERT_TRUE(runtime->activate(name));
  ASSERT_TRUE(runtime->deactivate("full"));
  ASSERT_TRUE(runtime->send("full", number(1)));
  for (const char* name : {"full", "free"}) ASSERT_TRUE(runtime->subscribe("news", name));
  ASSERT_TRUE(source->send(number(2)));
  EXPECT_EQ(value_of(runtime->receive("free", 30s).value()), 2) << "the other one gets it";
  ASSERT_FALSE(source->receive(30s));
  EXPECT_EQ(source->failure()->code, 7) << "the body was told that one did not";
}

TEST(runtime, a_stop_wakes_a_body_that_waits_for_room_at_a_topic) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("full", Echo{}, small(1)));
  const ActorHandle source = runtime->launch("source", Forwarder{}, small()).value();
  ASSERT_TRUE(runtime->wire_to_topic("source", 1, "news"));
  for (const char* name : {"full", "source"}) ASSERT_TRUE(runtime->activate(name));
  ASSERT_TRUE(runtime->deactivate("full"));
  ASSERT_TRUE(runtime->send("full", number(1)));
  ASSERT_TRUE(runtime->subscribe("news", "full"));
  ASSERT_TRUE(source->send(number(2)));
  ASSERT_TRUE(comes_true([&] { return source->telemetry().blocked; }));
  std::this_thread::sleep_for(5ms);  // it spins a while before it sleeps
  const auto report = source->terminate(Termination::discard(20s));
  EXPECT_TRUE(report) << report.error().message();
}

// The actors ended in the order of their names: the source put into an inbox that was closed already.
TEST(runtime, shutting_down_drains_along_the_wires) {
  const auto runtime = make_runtime();
  for (const char* name : {"source", "m-middle", "a-down"}) ASSERT_TRUE(runtime->launch(name, Echo{}));
  ASSERT_TRUE(runtime->pipeline({"source", "m-middle"}));
  ASSERT_TRUE(runtime->subscribe("topic", "a-down"));
  ASSERT_TRUE(runtime->wire_to_topic("m-middle", 0, "topic"));
  const ActorHandle source = runtime->find("source").value();
  const ActorHandle down = runtime->find("a-down").value();
  for (const char* name : {"source", "m-middle", "a-down"}) ASSERT_TRUE(runtime->activate(name));
  ASSERT_TRUE(source->deactivate());
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(source->send(number(i)));
  const ShutdownReport report = runtime->shutdown(Termination::drain(20s));
  EXPECT_TRUE(report.errors.empty());
  EXPECT_TRUE(report.cycles.empty());
  EXPECT_EQ(report.messages.dropped, 0u);
  for (int i = 0; i < 500; ++i) {
    const auto got = down->receive(1s);
    ASSERT_TRUE(got) << i << ": " << got.error().message();
    ASSERT_EQ(value_of(*got), i);
  }
}

// Takes a number round, one less each time, and sends to the output when it is 0. Each hop takes as long as it is told.
struct Round {
  std::chrono::milliseconds work{0};
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      std::this_thread::sleep_for(work);
      const std::int64_t left = payload<Number>(message).value;
      if (left == 0) {
        context.send(message);
      } else {
        context.emit(1, make_message(Number{left - 1}));
      }
    }
    return 0;
  }
};

TEST(runtime, shutting_down_names_cycles_and_lets_them_come_to_rest) {
  const auto runtime = make_runtime();
  for (const char* name : {"a", "b", "c", "alone"}) ASSERT_TRUE(runtime->launch(name, Round{}));
  ASSERT_TRUE(runtime->fan_out("a", 1, {"b"}));
  ASSERT_TRUE(runtime->fan_out("b", 1, {"c"}));
  ASSERT_TRUE(runtime->fan_out("c", 1, {"a"}));
  ASSERT_TRUE(runtime->fan_out("alone", 1, {"alone"}));
  std::vector<ActorHandle> actors;
  for (const char* name : {"a", "b", "c", "alone"}) {
    actors.push_back(runtime->find(name).value());
    ASSERT_TRUE(runtime->activate(name));
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(actors[0]->send(number(3000)));
  ASSERT_TRUE(actors[3]->send(number(1000)));
  const ShutdownReport report = runtime->shutdown(Termination::drain(20s));
  EXPECT_TRUE(report.errors.empty());
  std::vector<std::string> cycles = report.cycles;
  std::sort(cycles.begin(), cycles.end());
  EXPECT_EQ(cycles, (std::vector<std::string>{"a, b, c", "alone"}));
  EXPECT_EQ(report.messages.dropped, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(actors[0]->receive(1s)) << "what went round came to its end";
  EXPECT_TRUE(actors[3]->receive(1s));
}

// Nothing had moved for 20 ms: the cycle was ended while its bodies worked.
TEST(runtime, a_cycle_whose_bodies_work_for_long_is_not_at_rest) {
  const auto runtime = make_runtime();
  for (const char* name : {"a", "b"}) ASSERT_TRUE(runtime->launch(name, Round{60ms}));
  ASSERT_TRUE(runtime->fan_out("a", 1, {"b"}));
  ASSERT_TRUE(runtime->fan_out("b", 1, {"a"}));
  const ActorHandle first = runtime->find("a").value();
  for (const char* name : {"a", "b"}) ASSERT_TRUE(runtime->activate(name));
  ASSERT_TRUE(first->send(number(4)));
  const ShutdownReport report = runtime->shutdown(Termination::drain(20s));
  EXPECT_TRUE(report.errors.empty());
  EXPECT_TRUE(first->receive(1s)) << "what went round came to its end";
}

// The source waited for room behind a shut gate until its time was over.
TEST(runtime, shutting_down_drains_through_actors_that_are_deactivated) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("source", Echo{}));
  ASSERT_TRUE(runtime->launch("down", Echo{}, small(1)));
  ASSERT_TRUE(runtime->pipeline({"source", "down"}));
  const ActorHandle source = runtime->find("source").value();
  const ActorHandle down = runtime->find("down").value();
  for (const char* name : {"source", "down"}) ASSERT_TRUE(runtime->activate(name));
  ASSERT_TRUE(down->deactivate());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(source->send(number(i)));
  const ShutdownReport report = runtime->shutdown(Termination::drain(20s));
  EXPECT_TRUE(report.errors.empty());
  EXPECT_EQ(report.messages.dropped, 0u);
  for (int i = 0; i < 50; ++i) {
    const auto got = down->receive(1s);
    ASSERT_TRUE(got) << i;
    EXPECT_EQ(value_of(*got), i);
  }
}

// After 65535 launches another actor had the number, and its end failed this one's request.
TEST(runtime, the_numbers_of_actors_go_round_without_meeting) {
  RuntimeOptions few;
  few.max_requests = 4;
  const auto runtime = Runtime::create(few).value();
  const ActorHandle first = activated(runtime->launch("first", Echo{}));
  ASSERT_TRUE(first->deactivate());
  auto pending = runtime->request_later(*first, number(5)).value();
  ActorOptions tiny;
  tiny.inbox_capacity = tiny.outbox_capacity = 1;
  for (int i = 0; i < 66000; ++i) {
    const ActorHandle other = runtime->launch("other", Echo{}, tiny).value();
    ASSERT_NE(other->number(), first->number());
    ASSERT_NE(other->number(), 0);
    ASSERT_TRUE(runtime->terminate("other"));
  }
  EXPECT_FALSE(pending.is_done());
  ASSERT_TRUE(first->reactivate());
  const auto answer = pending.wait(10s);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(value_of(*answer), 5);
}

struct Word {
  static constexpr const char* message_name = "Word";
  std::int64_t value = 0;
};

TEST(runtime, a_typed_actor_refuses_answers_of_another_type) {
  const auto runtime = make_runtime();
  const ActorHandle echo = activated(runtime->launch("echo", Echo{}));
  TypedActor<Number, Number> right(*runtime, echo);
  TypedActor<Word, Number> wrong(*runtime, echo);
  EXPECT_EQ(right.request(Number{4}, 10s).value().value, 4);
  ASSERT_TRUE(right.send(Number{5}));
  EXPECT_EQ(right.receive(10s).value().value, 5);
  const auto refused = wrong.request(Word{4}, 10s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::invalid_argument);
  EXPECT_NE(refused.error().message().find("is not a 'Number'"), std::string::npos) << refused.error().message();
  std::int64_t seen = 0;
  EXPECT_TRUE((visit<Word, Number>(number(9), [&](const auto& payload) { seen = payload.value; })));
  EXPECT_EQ(seen, 9);
  EXPECT_FALSE((visit<Word>(number(9), [&](const Word&) { seen = 0; })));
}

TEST(runtime, large_payloads_travel_as_handles_and_stale_ones_are_found_out) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(runtime->launch("echo", Echo{}, small()));
  ASSERT_TRUE(runtime->activate("echo"));
  const BufferHandle handle = runtime->buffers().add(1 << 20).value();
  runtime->buffers().get(handle).value()[12345] = std::byte{9};
  Message message;
  message.header.flags |= mark_handle;
  message.set_payload_bytes(sizeof(handle));
  std::memcpy(message.payload, &handle, sizeof(handle));
  const Message answer = runtime->request("echo", message, 5s).value();
  BufferHandle back;
  std::memcpy(&back, answer.payload, sizeof(back));
  EXPECT_EQ(runtime->buffers().get(back).value()[12345], std::byte{9});
  ASSERT_TRUE(runtime->buffers().release(handle));
  EXPECT_EQ(runtime->buffers().get(back).error().kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace cingulum::ring::runtime_tests
