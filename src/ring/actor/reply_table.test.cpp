#include "ring/actor/reply_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace cingulum::ring::reply_table_tests {
namespace {

constexpr std::uint32_t slot_bits = 20;

Message message_of(std::uint32_t type) {
  Message message;
  message.header.type = type;
  return message;
}

bool complete(ReplyTable& table, std::uint64_t correlation, const Message& reply) {
  return table.deliver(correlation, reply) == Delivery::taken;
}

Error error_of(const char* text) {
  return Error(ErrorKind::unavailable, text);
}

TEST(reply_table, a_correlation_is_a_slot_and_how_often_it_was_used) {
  ReplyTable table(1);
  for (std::uint64_t generation = 1; generation <= 100; ++generation) {
    const std::uint64_t correlation = table.open(7).value();
    ASSERT_EQ(correlation, generation << slot_bits);
    if (generation % 2 == 0) {
      EXPECT_TRUE(complete(table, correlation, message_of(3)));
      EXPECT_EQ(table.wait(correlation, no_deadline).value().header.type, 3u);
    } else {
      EXPECT_EQ(table.wait(correlation, 0).error().kind(), ErrorKind::timed_out);
    }
  }
}

TEST(reply_table, as_many_requests_are_in_flight_as_it_has_slots) {
  ReplyTable table(3);
  std::set<std::uint64_t> slots;
  std::vector<std::uint64_t> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(table.open(1).value());
    slots.insert(open.back() & ((1u << slot_bits) - 1));
  }
  EXPECT_EQ(slots, (std::set<std::uint64_t>{0, 1, 2}));
  const auto refused = table.open(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::full);
  EXPECT_EQ(refused.error().message(), "3 requests are in flight already; wait for some, or allow more (max_requests)");
  // All are given back, the first without the lock, and are there again.
  for (const std::uint64_t correlation : open) table.abandon(correlation);
  slots.clear();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t correlation = table.open(1).value();
    EXPECT_EQ(correlation >> slot_bits, 2u);
    slots.insert(correlation & ((1u << slot_bits) - 1));
  }
  EXPECT_EQ(slots.size(), 3u);
  EXPECT_FALSE(table.open(1));
}

TEST(reply_table, the_first_answer_counts_and_later_ones_are_told) {
  ReplyTable table(2);
  const std::uint64_t first = table.open(1).value();
  EXPECT_FALSE(table.is_done(first));
  EXPECT_TRUE((table.deliver_own(first, message_of(10)) == Delivery::taken));
  EXPECT_TRUE(table.is_done(first));
  EXPECT_FALSE(complete(table, first, message_of(11)));
  EXPECT_FALSE((table.deliver_own(first, message_of(12)) == Delivery::taken));
  EXPECT_FALSE(table.fail(first, error_of("late")));
  EXPECT_EQ(table.wait(first, 0).value().header.type, 10u) << "an answer that is there needs no time";
  // The first request is over: its slot serves another one.
  EXPECT_FALSE(table.is_done(first));
  const std::uint64_t second = table.open(1).value();
  EXPECT_EQ(second & ((1u << slot_bits) - 1), first & ((1u << slot_bits) - 1));
  EXPECT_FALSE(complete(table, first, message_of(13)));
  EXPECT_FALSE(table.fail(first, error_of("late")));
  EXPECT_FALSE(table.is_done(second));
  EXPECT_TRUE(table.fail(second, error_of("it broke")));
  EXPECT_TRUE(table.is_done(second));
  const auto failed = table.wait(second, no_deadline);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::unavailable);
  EXPECT_EQ(failed.error().message(), "it broke");
  // The error went with its request.
  const std::uint64_t third = table.open(1).value();
  EXPECT_TRUE(complete(table, third, message_of(14)));
  EXPECT_EQ(table.wait(third, no_deadline).value().header.type, 14u);
}

TEST(reply_table, requests_that_were_never_made_are_answered_by_nobody) {
  ReplyTable table(2);
  for (const std::uint64_t correlation :
       {std::uint64_t{0}, std::uint64_t{1} << slot_bits, std::uint64_t{1} << slot_bits | 1, std::uint64_t{2},
        std::uint64_t{1} << slot_bits | 2, ~std::uint64_t{0}}) {
    EXPECT_FALSE(complete(table, correlation, message_of(1))) << correlation;
    EXPECT_FALSE(table.fail(correlation, error_of("none"))) << correlation;
    EXPECT_FALSE(table.is_done(correlation)) << correlation;
  }
  const auto unknown = table.wait(std::uint64_t{1} << slot_bits | 2, 0);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::not_found);
  EXPECT_EQ(unknown.error().message(), "request 1048578 was never made");
}

TEST(reply_table, an_actor_that_ends_fails_its_own_open_requests_alone) {
  ReplyTable table(5);
  const std::uint64_t of_another = table.open(2).value();
  const std::uint64_t answered = table.open(3).value();
  const std::uint64_t first = table.open(3).value();
  const std::uint64_t second = table.open(3).value();
  EXPECT_TRUE(complete(table, answered, message_of(20)));
  EXPECT_EQ(table.fail_all_to(3, error_of("it ended")), 2u);
  EXPECT_EQ(table.fail_all_to(3, error_of("it ended")), 0u);
  EXPECT_EQ(table.fail_all_to(4, error_of("it ended")), 0u);
  for (const std::uint64_t correlation : {first, second}) {
    EXPECT_EQ(table.wait(correlation, no_deadline).error().message(), "it ended");
  }
  EXPECT_EQ(table.wait(answered, no_deadline).value().header.type, 20u);
  EXPECT_FALSE(table.is_done(of_another));
  EXPECT_TRUE(complete(table, of_another, message_of(21)));
  EXPECT_EQ(table.wait(of_another, no_deadline).value().header.type, 21u);
  EXPECT_EQ(table.fail_all_to(2, error_of("it ended")), 0u) << "a request that was answered and taken";
}

TEST(reply_table, a_thread_that_waits_is_woken_by_an_answer_and_by_a_failure) {
  for (const bool fails : {false, true}) {
    ReplyTable table(1, {.spins = 0});
    const std::uint64_t correlation = table.open(1).value();
    std::jthread answers([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(fails ? table.fail(correlation, error_of("no")) : complete(table, correlation, message_of(5)));
    });
    const auto answer = table.wait(correlation, table.deadline(std::chrono::seconds(60)));
    ASSERT_EQ(answer.has_value(), !fails);
    if (fails) {
      EXPECT_EQ(answer.error().message(), "no");
    } else {
      EXPECT_EQ(answer->header.type, 5u);
    }
  }
}

TEST(reply_table, a_deadline_is_so_long_from_now) {
  const ReplyTable table(1);
  EXPECT_EQ(table.deadline(no_time_limit), no_deadline);
  const std::uint64_t before = steady_now_ns();
  const std::uint64_t deadline = table.deadline(std::chrono::seconds(5));
  const std::uint64_t after = steady_now_ns();
  EXPECT_GE(deadline, before + 5'000'000'000u);
  EXPECT_LE(deadline, after + 5'000'000'000u);
}

}  // namespace
}  // namespace cingulum::ring::reply_table_tests
