// What a body may ask for (ring/actor/actor_context.hpp): a look at the next message, reply buffers, the block's
// memory, several seats. The same stories for CPU actors, for grids of threads with one lane and with several, and on
// CUDA.
#include <gtest/gtest.h>

#include <deque>

#include "ring/ability_bodies.hpp"
#include "ring/actor/reply_buffer.hpp"
#include "ring/each_grid.hpp"

namespace cingulum::ring::ability_tests {
namespace {

using namespace std::chrono_literals;
using cingulum::testing::fails_with;
using testing::BlockDigest;
using testing::Large;
using testing::LargeAnswers;
using testing::NewestWins;
using testing::number_of;
using testing::Numbered;
using testing::numbered;
using testing::Peeker;
using testing::scramble;
using testing::Spread;

constexpr std::uint32_t buffer_count = 4;
constexpr std::uint64_t buffer_bytes = 4096;

class Abilities : public testing::EachGrid {
 protected:
  void SetUp() override {
    EachGrid::SetUp();
    if (is("cpu")) return;
    GridOptions options;
    options.seats = 4;
    options.lanes = is("lanes") ? 64 : 128;
    options.time_limit = 60s;
    options.reply_buffers = buffer_count;
    options.reply_buffer_bytes = buffer_bytes;
    open_on(testing::make_ability_backend(GetParam()), options);
  }
  [[nodiscard]] std::uint32_t most_seats() const { return is("cpu") ? 1 : 4; }
  [[nodiscard]] std::vector<RingKind> kinds() const {
    return is("cpu") ? std::vector{RingKind::fast} : std::vector{RingKind::fast, RingKind::bulk};
  }

  template <class Body>
  Result<ActorHandle> launch(const std::string& name, const char* body_name, const Body& body, ActorOptions options,
                             RingKind kind = RingKind::fast) {
    options.reply_buffers = buffer_count;
    options.reply_buffer_bytes = buffer_bytes;
    if (grid_ == nullptr) return runtime_->launch(name, body, options);
    return grid_->launch(*runtime_, name, body_name, body, kind, options);
  }
  template <class Body>
  ActorHandle start(const char* body_name, const Body& body, const ActorOptions& options = {},
                    RingKind kind = RingKind::fast) {
    return testing::activated(launch(body_name, body_name, body, options, kind));
  }
  static void expect_large(const Message& answer, const ReplyBuffer& buffer, std::uint64_t number, std::uint64_t part) {
    ASSERT_TRUE(holds<Large>(answer));
    EXPECT_EQ(payload<Large>(answer).number, number);
    EXPECT_EQ(payload<Large>(answer).part, part);
    const auto words = buffer.as<std::uint64_t>();
    ASSERT_EQ(words.size(), buffer_bytes / 8 - part % 8);
    for (std::size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(words[i], testing::large_word(number, part, i)) << "word " << i << " of part " << part;
    }
  }
  // All parts of a request, each given back before the next is read.
  void read_all(Actor& actor, std::uint64_t number) {
    ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime_->request_stream(actor, message(number), {.window = 2}));
    for (std::uint64_t part = 0; part < number; ++part) {
      ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
      ASSERT_TRUE(answer) << part;
      ASSERT_OK_AND_ASSIGN(const ReplyBuffer buffer, ReplyBuffer::of(*answer));
      expect_large(*answer, buffer, number, part);
      if (HasFatalFailure()) return;
    }
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> last, stream.next(10s));
    ASSERT_TRUE(last);
    EXPECT_EQ(payload<Numbered>(*last).number, number);
  }
};
CGL_FOR_DEVICES(Abilities, "cpu", "emulated", "lanes", "cuda");

TEST_P(Abilities, a_look_at_the_next_message_leaves_it_where_it_is) {
  for (const RingKind kind : kinds()) {
    const ActorHandle peeker = start("peeker", Peeker{}, {}, kind);
    ASSERT_TRUE(peeker);
    constexpr std::uint64_t count = 40;
    for (std::uint64_t i = 1; i <= count; ++i) ASSERT_OK(peeker->send(message(i)));
    ASSERT_OK(peeker->send(message(0)));
    for (std::uint64_t i = 1; i < count; ++i) ASSERT_EQ(number_of(peeker->receive(10s)), i + 1);
    EXPECT_EQ(number_of(peeker->receive(10s)), 0u) << "of the last but one, which sees the one of number 0";
    EXPECT_EQ(number_of(peeker->receive(10s)), 0u);
    ASSERT_OK(runtime_->terminate("peeker"));
    EXPECT_EQ(peeker->telemetry().received, count + 1);
  }
}

TEST_P(Abilities, nothing_is_seen_behind_a_gate_that_is_shut) {
  const ActorHandle peeker = start("peeker", Peeker{});
  ASSERT_TRUE(peeker);
  ASSERT_OK(peeker->send(message(1)));
  ASSERT_OK(runtime_->deactivate("peeker"));
  ASSERT_OK(peeker->send(message(0)));
  EXPECT_EQ(peeker->receive(50ms).error().kind(), ErrorKind::timed_out);
  ASSERT_OK(runtime_->reactivate("peeker"));
  EXPECT_EQ(number_of(peeker->receive(10s)), 0u);
}

TEST_P(Abilities, an_old_request_is_dropped_for_a_newer_one) {
  ActorOptions overwrites;
  overwrites.inbox_policy = FullPolicy::drop_oldest;
  overwrites.inbox_capacity = 2;
  for (const ActorOptions& options : {ActorOptions{}, overwrites}) {
    const ActorHandle newest = start("newest_wins", NewestWins{}, options);
    ASSERT_TRUE(newest);
    std::deque<PendingReply> old;
    for (std::uint64_t i = 1; i <= 20; ++i) {
      ASSERT_OK_AND_ASSIGN(PendingReply pending, runtime_->request_later(*newest, message(i)));
      old.push_back(std::move(pending));
    }
    EXPECT_EQ(number_of(runtime_->request(*newest, message(0), 10s)), 0u);
    const bool loses = options.inbox_policy == FullPolicy::drop_oldest;
    for (PendingReply& pending : old) {
      const auto answer = pending.wait(loses ? Nanoseconds(1ms) : Nanoseconds(10s));
      ASSERT_FALSE(answer);
      if (!loses) {
        EXPECT_TRUE(fails_with(answer, ErrorKind::device, "failure -125"));
      }
    }
    ASSERT_OK(runtime_->terminate("newest_wins"));
  }
}

TEST_P(Abilities, large_answers_come_whole_in_buffers_that_are_used_again) {
  for (const RingKind kind : kinds()) {
    const ActorHandle actor = start("large_answers", LargeAnswers{}, {}, kind);
    ASSERT_TRUE(actor);
    for (const std::uint64_t number : {0u, 1u, 3u, 50u}) {
      read_all(*actor, number);
      if (HasFatalFailure()) return;
    }
    ASSERT_OK(runtime_->terminate("large_answers"));
  }
}

TEST_P(Abilities, an_actor_waits_for_a_buffer_until_a_reader_gives_one_back) {
  const ActorHandle actor = start("large_answers", LargeAnswers{});
  ASSERT_TRUE(actor);
  ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime_->request_stream(*actor, message(20), {.window = 32}));
  std::deque<std::pair<Message, ReplyBuffer>> held;
  for (std::uint64_t part = 0; part < 20; ++part) {
    if (part >= buffer_count) {
      EXPECT_EQ(stream.next(10ms).error().kind(), ErrorKind::timed_out) << "all buffers are held";
      const Message oldest = held.front().first;
      held.pop_front();
      EXPECT_TRUE(fails_with(ReplyBuffer::of(oldest), ErrorKind::not_found, "stale"));
    }
    ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
    ASSERT_TRUE(answer);
    ASSERT_OK_AND_ASSIGN(ReplyBuffer buffer, ReplyBuffer::of(*answer));
    held.emplace_back(*answer, std::move(buffer));
    // What is held is nobody else's.
    const std::uint64_t first = part + 1 - held.size();
    for (std::size_t i = 0; i < held.size(); ++i) expect_large(held[i].first, held[i].second, 20, first + i);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Abilities, answers_that_nobody_reads_give_their_buffers_back) {
  const ActorHandle actor = start("large_answers", LargeAnswers{});
  ASSERT_TRUE(actor);
  for (int round = 0; round < 3; ++round) {
    {
      ASSERT_OK_AND_ASSIGN(ReplyStream cancelled, runtime_->request_stream(*actor, message(30), {.window = 32}));
      ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, cancelled.next(10s));
      ASSERT_TRUE(answer);
      ASSERT_OK_AND_ASSIGN(const ReplyBuffer buffer, ReplyBuffer::of(*answer));
      while (!cancelled.is_ready()) std::this_thread::sleep_for(1ms);
    }
    // Who asks for one answer leaves the rest, and this one as well.
    { ASSERT_OK_AND_ASSIGN(PendingReply dropped, runtime_->request_later(*actor, message(2))); }
    {
      ASSERT_OK_AND_ASSIGN(PendingReply dropped, runtime_->request_later(*actor, message(2)));
      while (!dropped.is_done()) std::this_thread::sleep_for(1ms);
    }
    read_all(*actor, 12);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Abilities, a_body_that_fails_with_a_buffer_in_hand_loses_none) {
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100;
  const ActorHandle actor = start("large_answers", LargeAnswers{5}, options);
  ASSERT_TRUE(actor);
  for (int round = 0; round < 10; ++round) EXPECT_FALSE(runtime_->request(*actor, message(5), 10s));
  read_all(*actor, 12);
}

TEST_P(Abilities, buffers_that_are_read_after_their_actor_has_ended_are_good_and_come_back) {
  for (int round = 0; round < 3; ++round) {
    const ActorHandle actor = start("large_answers", LargeAnswers{});
    ASSERT_TRUE(actor);
    ASSERT_OK_AND_ASSIGN(ReplyStream stream, runtime_->request_stream(*actor, message(buffer_count), {.window = 8}));
    ASSERT_OK(runtime_->terminate("large_answers", Termination::drain(10s)));
    std::deque<ReplyBuffer> held;
    for (std::uint64_t part = 0; part < buffer_count; ++part) {
      ASSERT_OK_AND_ASSIGN(const std::optional<Message> answer, stream.next(10s));
      ASSERT_TRUE(answer);
      ASSERT_OK_AND_ASSIGN(ReplyBuffer buffer, ReplyBuffer::of(*answer));
      held.push_back(std::move(buffer));
      expect_large(*answer, held.back(), buffer_count, part);
      if (HasFatalFailure()) return;
    }
    // The next one in this seat has none until they are given back.
    const ActorHandle next = start("large_answers", LargeAnswers{});
    ASSERT_TRUE(next);
    held.clear();
    read_all(*next, 9);
    if (HasFatalFailure()) return;
    ASSERT_OK(runtime_->terminate("large_answers"));
  }
}

TEST_P(Abilities, only_reply_buffers_are_read_as_such) {
  EXPECT_TRUE(fails_with(ReplyBuffer::of(message(1)), ErrorKind::invalid_argument, "names no buffer"));
  ASSERT_OK_AND_ASSIGN(const BufferHandle plain, runtime_->buffers().add(64));
  EXPECT_TRUE(fails_with(ReplyBuffer::of(make_message(Large{plain})), ErrorKind::invalid_argument, "another buffer"));
  EXPECT_TRUE(runtime_->buffers().get(plain)) << "and it is left alone";
  BufferHandle elsewhere = plain;
  elsewhere.table = (plain.table + 7777) & 0xffffu;
  EXPECT_TRUE(fails_with(ReplyBuffer::of(make_message(Large{elsewhere})), ErrorKind::not_found, "is gone"));
}

TEST_P(Abilities, lanes_share_the_memory_of_their_block) {
  const ActorHandle actor = start("block_digest", BlockDigest{});
  ASSERT_TRUE(actor);
  for (std::uint64_t number = 0; number < 20; ++number) {
    std::uint64_t digest = 0;
    for (std::uint32_t i = BlockDigest::words; i-- > 0;) digest = BlockDigest::mix(digest, scramble(number + i));
    ASSERT_EQ(number_of(runtime_->request(*actor, message(number), 10s)), digest);
  }
}

std::uint64_t sum_below(std::uint64_t number) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < number; ++i) sum += scramble(i);
  return sum;
}

TEST_P(Abilities, several_seats_share_the_work_of_a_message) {
  for (std::uint32_t seats = 1; seats <= 4; ++seats) {
    ActorOptions options;
    options.seats = seats;
    const ActorHandle actor = start("spread", Spread{}, options);
    ASSERT_TRUE(actor);
    for (const std::uint64_t number : {0u, 1u, 2u, 63u, 1000u, 5000u}) {
      ASSERT_EQ(number_of(runtime_->request(*actor, message(number), 10s)), sum_below(number)) << seats << " seats";
    }
    // One after the other, without an answer in between.
    for (std::uint64_t number = 0; number < 30; ++number) ASSERT_OK(actor->send(message(number)));
    for (std::uint64_t number = 0; number < 30; ++number) {
      ASSERT_EQ(number_of(actor->receive(10s)), sum_below(number));
    }
    EXPECT_EQ(actor->telemetry().loss.late_replies, 0u);
    ASSERT_OK_AND_ASSIGN(const TerminationReport report, runtime_->terminate("spread", Termination::drain(10s)));
    EXPECT_EQ(report.dropped, 0u);
  }
}

TEST_P(Abilities, several_seats_are_drained_and_hold_as_one_does) {
  ActorOptions options;
  options.seats = most_seats();
  const ActorHandle actor = start("spread", Spread{}, options);
  ASSERT_TRUE(actor);
  ASSERT_OK(runtime_->deactivate("spread"));
  for (std::uint64_t number = 0; number < 20; ++number) ASSERT_OK(actor->send(message(number)));
  EXPECT_EQ(actor->receive(50ms).error().kind(), ErrorKind::timed_out);
  ASSERT_OK(runtime_->reactivate("spread"));
  ASSERT_OK(runtime_->terminate("spread", Termination::drain(10s)));
  for (std::uint64_t number = 0; number < 20; ++number) ASSERT_EQ(number_of(actor->receive(10s)), sum_below(number));
}

TEST_P(Abilities, a_seat_that_fails_fails_the_actor_and_all_of_them_start_again) {
  ActorOptions options;
  options.seats = most_seats();
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100;
  for (std::uint32_t which = 0; which < most_seats(); ++which) {
    Spread body;
    body.fail_at = 77;
    body.which_seat = which;
    const ActorHandle actor = start("spread", body, options);
    ASSERT_TRUE(actor);
    for (std::uint64_t round = 0; round < 5; ++round) {
      EXPECT_TRUE(fails_with(runtime_->request(*actor, message(77), 10s), ErrorKind::closed, "returned 7"));
      ASSERT_EQ(number_of(runtime_->request(*actor, message(100 + round), 10s)), sum_below(100 + round));
    }
    EXPECT_EQ(actor->telemetry().failures, 5u);
    ASSERT_OK(runtime_->terminate("spread"));
  }
}

TEST_P(Abilities, a_seat_that_is_told_to_stop_lets_the_others_go) {
  ActorOptions options;
  options.seats = most_seats();
  Spread body;
  body.leave_at = 5;
  const ActorHandle actor = start("spread", body, options);
  ASSERT_TRUE(actor);
  ASSERT_OK(actor->send(message(5)));
  EXPECT_EQ(actor->receive(20ms).error().kind(), ErrorKind::timed_out);
  ASSERT_OK(runtime_->terminate("spread", Termination::discard(10s)));
  // Its seats are there for the next.
  ASSERT_OK(start("spread", Spread{}, options)->send(message(9)));
  EXPECT_EQ(number_of(runtime_->receive("spread", 10s)), sum_below(9));
}

TEST_P(Abilities, a_seat_that_stands_still_is_a_stall_of_its_actor) {
  if (most_seats() == 1) return;  // of one seat: resident_grid.test.cpp
  ActorOptions options;
  options.seats = 3;
  options.stall_limit = 100ms;
  Spread body;
  body.slow_at = 50;
  body.which_seat = 2;
  const ActorHandle actor = start("spread", body, options);
  ASSERT_TRUE(actor);
  EXPECT_EQ(number_of(runtime_->request(*actor, message(49), 10s)), sum_below(49));
  EXPECT_EQ(number_of(runtime_->request(*actor, message(50), 10s)), sum_below(50));
  EXPECT_GE(actor->telemetry().stalls, 1u);
}

TEST_P(Abilities, several_seats_see_the_same_messages_and_fill_one_buffer) {
  ActorOptions options;
  options.seats = most_seats();
  const ActorHandle peeker = start("peeker", Peeker{}, options);
  ASSERT_TRUE(peeker);
  for (const std::uint64_t number : {1u, 2u, 3u, 0u}) ASSERT_OK(peeker->send(message(number)));
  for (const std::uint64_t number : {2u, 3u, 0u, 0u}) ASSERT_EQ(number_of(peeker->receive(10s)), number);
  ASSERT_OK(runtime_->terminate("peeker"));
  const ActorHandle large = start("large_answers", LargeAnswers{}, options);
  ASSERT_TRUE(large);
  read_all(*large, 30);
}

TEST_P(Abilities, seats_are_checked_and_come_back) {
  if (grid_ == nullptr) return;  // a thread is one seat whatever is asked for
  ActorOptions options;
  options.seats = 3;
  ASSERT_TRUE(start("spread", Spread{}, options));
  EXPECT_TRUE(fails_with(launch("second", "spread", Spread{}, options), ErrorKind::full, "3 seats are not free of 4"));
  ASSERT_OK(runtime_->terminate("spread"));
  ASSERT_OK(launch("second", "spread", Spread{}, options));  // never activated
  ASSERT_OK(runtime_->terminate("second"));
  options.seats = 4;
  ASSERT_OK(launch("third", "spread", Spread{}, options));
  options.seats = 2;
  EXPECT_TRUE(fails_with(launch("bulk", "spread", Spread{}, options, RingKind::bulk), ErrorKind::invalid_argument,
                         "several seats need fast rings"));
  options.seats = 0;
  EXPECT_TRUE(fails_with(launch("none", "spread", Spread{}, options), ErrorKind::invalid_argument, "seats 0"));
}

}  // namespace
}  // namespace cingulum::ring::ability_tests
