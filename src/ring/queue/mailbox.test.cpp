#include "ring/queue/mailbox.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "ring/cpu/turn_schedule.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;

struct Number {
  static constexpr const char* message_name = "Number";
  std::uint64_t value = 0;
};
Message number(std::uint64_t value, Band band = Band::normal) {
  return make_message(Number{value}, 0, band);
}
MailboxOptions options(std::uint32_t capacity, FullPolicy policy = FullPolicy::block) {
  MailboxOptions result;
  result.capacity = capacity;
  result.policy = policy;
  return result;
}
std::uint64_t soon(Nanoseconds timeout) {
  return deadline_after(steady_now_ns(), timeout);
}
std::vector<std::uint64_t> take_all(Mailbox& box) {
  std::vector<std::uint64_t> values;
  Envelope envelope;
  while (box.try_take(envelope) == GetStatus::taken) values.push_back(payload<Number>(envelope.message).value);
  return values;
}
using Values = std::vector<std::uint64_t>;
constexpr Band every_band[] = {Band::system, Band::high, Band::normal, Band::low};

TEST(mailbox, block_waits_for_room_and_times_out_without_growing) {
  Mailbox box(options(2));
  EXPECT_EQ(box.put(number(1)), PutStatus::stored);
  EXPECT_EQ(box.put(number(2)), PutStatus::stored);
  EXPECT_EQ(box.put(number(3), soon(5ms)), PutStatus::timed_out);  // must not grow
  EXPECT_EQ(box.depth(), 2u);
  EXPECT_EQ(box.losses().rejected, 1u);
  std::thread writer([&] { EXPECT_EQ(box.put(number(4)), PutStatus::stored); });
  std::this_thread::sleep_for(10ms);
  Envelope envelope;
  EXPECT_EQ(box.try_take(envelope), GetStatus::taken);
  writer.join();
  EXPECT_EQ(take_all(box), (Values{2, 4}));
}

TEST(mailbox, reject_refuses_and_drop_new_drops_each_counted) {
  Mailbox rejecting(options(1, FullPolicy::reject));
  EXPECT_EQ(rejecting.put(number(1)), PutStatus::stored);
  EXPECT_EQ(rejecting.put(number(2)), PutStatus::full);
  EXPECT_EQ(rejecting.losses().rejected, 1u);
  EXPECT_EQ(take_all(rejecting), Values{1});

  Mailbox dropping(options(1, FullPolicy::drop_new));
  EXPECT_EQ(dropping.put(number(1)), PutStatus::stored);
  EXPECT_EQ(dropping.put(number(2)), PutStatus::dropped_new);
  EXPECT_EQ(dropping.losses().dropped_new, 1u);
  EXPECT_EQ(take_all(dropping), Values{1});
}

TEST(mailbox, drop_oldest_drops_the_oldest_of_its_band_never_a_more_urgent_one) {
  Mailbox box(options(2, FullPolicy::drop_oldest));
  EXPECT_EQ(box.put(number(100, Band::high)), PutStatus::stored);
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(box.put(number(i, Band::low)), PutStatus::stored);
  EXPECT_EQ(take_all(box), (Values{100, 2, 3}));  // the most urgent stays
  EXPECT_EQ(box.losses().dropped_oldest, 1u);
}

TEST(mailbox, urgent_bands_come_first_and_each_keeps_its_order) {
  Mailbox box(options(8));
  std::uint64_t next = 0;
  for (const Band band : {Band::low, Band::normal, Band::high, Band::system}) {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(box.put(number(10 * static_cast<std::uint64_t>(band) + next++ % 3, band)), PutStatus::stored);
  }
  EXPECT_EQ(take_all(box), (Values{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}));
}

// One band at a time, and by each way in and out: a band that no loop comes to would keep its messages for ever.
TEST(mailbox, each_band_alone_is_drained_in_order) {
  for (const Band band : every_band) {
    for (const FullPolicy policy : {FullPolicy::block, FullPolicy::reject, FullPolicy::drop_oldest}) {
      MailboxOptions set = options(8, policy);
      set.fairness_interval = 3;  // so that turns come round while there is only this band
      Mailbox box(set);
      for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(box.put(number(i, band)), PutStatus::stored);
      std::vector<Message> batch;
      for (std::uint64_t i = 4; i < 8; ++i) batch.push_back(number(i, band));
      ASSERT_EQ(box.put_batch(batch.data(), 4), 4u);
      EXPECT_EQ(box.depth(), 8u);
      for (const Band other : every_band) EXPECT_EQ(box.depth(other), other == band ? 8u : 0u);
      EXPECT_EQ(take_all(box), (Values{0, 1, 2, 3, 4, 5, 6, 7})) << "band " << static_cast<int>(band);
      EXPECT_EQ(box.depth(), 0u);
      // What is left is cleared, and counted, whatever its band; and a closed box is closed when all of it is gone.
      ASSERT_EQ(box.put(number(9, band)), PutStatus::stored);
      box.close();
      EXPECT_EQ(box.put(number(10, band)), PutStatus::closed);
      Values cleared;
      EXPECT_EQ(box.clear([&](const Message& message) { cleared.push_back(payload<Number>(message).value); }), 1u);
      EXPECT_EQ(cleared, Values{9});
      Envelope envelope;
      EXPECT_EQ(box.try_take(envelope), GetStatus::closed);
    }
  }
}

// A reader that waits is woken by a message of any band, and a closed box is not over before each band is empty.
TEST(mailbox, a_message_of_any_band_wakes_the_reader_and_outlasts_the_closing) {
  for (const Band band : every_band) {
    Mailbox box(options(4));
    Envelope envelope;
    std::thread reader([&] { EXPECT_EQ(box.take(envelope, no_deadline), GetStatus::taken); });
    EXPECT_EQ(box.put(number(5, band)), PutStatus::stored);
    reader.join();
    EXPECT_EQ(payload<Number>(envelope.message).value, 5u);
    EXPECT_EQ(envelope.message.band(), band);
    EXPECT_EQ(box.put(number(6, band)), PutStatus::stored);
    box.close();
    EXPECT_EQ(box.take(envelope, no_deadline), GetStatus::taken) << "band " << static_cast<int>(band);
    EXPECT_EQ(box.take(envelope, no_deadline), GetStatus::closed);
  }
}

// Priority is strict but for the turns: of two bands that always have messages, the less urgent one is served at its
// turns and at no other take.
TEST(mailbox, a_flood_of_any_band_leaves_each_other_band_its_turn_and_nothing_more) {
  constexpr std::uint32_t interval = 4;
  for (const Band flood : every_band) {
    for (const Band other : every_band) {
      if (flood == other) continue;
      MailboxOptions set = options(64);
      set.fairness_interval = interval;
      Mailbox box(set);
      std::uint64_t of_other = 0;
      constexpr std::uint64_t rounds = 25;
      for (std::uint64_t take = 0; take < rounds * interval * band_count; ++take) {
        for (const Band band : {flood, other}) {
          if (box.depth(band) == 0) {
            ASSERT_EQ(box.put(number(1, band)), PutStatus::stored);
          }
        }
        Envelope envelope;
        ASSERT_EQ(box.try_take(envelope), GetStatus::taken);
        of_other += envelope.message.band() == other ? 1u : 0u;
      }
      // Every fairness_interval-th take is a turn; each band has one of four.
      const std::uint64_t all = rounds * interval * band_count;
      const std::uint64_t expected = flood < other ? rounds : all - rounds;
      EXPECT_EQ(of_other, expected) << "band " << static_cast<int>(other) << " beside a flood of "
                                    << static_cast<int>(flood);
    }
  }
}

TEST(mailbox, the_head_of_every_band_is_taken_within_four_intervals_though_all_are_full) {
  constexpr std::uint32_t interval = 4;
  MailboxOptions set = options(2);
  set.fairness_interval = interval;
  Mailbox box(set);
  std::uint64_t waited[band_count] = {};
  for (int take = 0; take < 400; ++take) {
    for (const Band band : every_band) {
      while (box.depth(band) < 2) ASSERT_EQ(box.put(number(1, band)), PutStatus::stored);
    }
    Envelope envelope;
    ASSERT_EQ(box.try_take(envelope), GetStatus::taken);
    for (std::uint64_t& each : waited) ++each;
    waited[static_cast<std::uint32_t>(envelope.message.band())] = 0;
    for (std::uint32_t band = 0; band < band_count; ++band) ASSERT_LE(waited[band], interval * band_count) << band;
  }
}

TEST(mailbox, the_peak_is_the_largest_depth_at_a_take_or_the_capacity_once_it_was_full) {
  MailboxOptions set = options(8);
  set.fairness_interval = 1;
  Mailbox box(set);
  EXPECT_EQ(box.peak(), 0u);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(box.put(number(i)), PutStatus::stored);
  EXPECT_EQ(take_all(box), (Values{0, 1, 2}));
  EXPECT_EQ(box.peak(), 3u);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(box.put(number(i)), PutStatus::stored);
  EXPECT_EQ(box.put(number(9), soon(0ms)), PutStatus::timed_out);
  EXPECT_EQ(box.peak(), 8u);
}

TEST(mailbox, a_full_band_leaves_room_in_the_others) {
  Mailbox box(options(1, FullPolicy::reject));
  EXPECT_EQ(box.put(number(1, Band::low)), PutStatus::stored);
  EXPECT_EQ(box.put(number(2, Band::low)), PutStatus::full);
  EXPECT_EQ(box.put(number(3, Band::system)), PutStatus::stored);
}

TEST(mailbox, a_message_that_outlived_its_time_is_counted_not_delivered) {
  std::uint64_t expired = 0;
  MailboxOptions set = options(4);
  set.on_expired = [&](const Message& message) { expired = payload<Number>(message).value; };
  Mailbox box(set);
  EXPECT_EQ(box.put(number(1), no_deadline, soon(-1ms)), PutStatus::stored);
  EXPECT_EQ(box.put(number(2), no_deadline, soon(1h)), PutStatus::stored);
  EXPECT_EQ(take_all(box), Values{2});
  EXPECT_EQ(expired, 1u);
  EXPECT_EQ(box.losses().expired, 1u);
  Mailbox full(options(1));
  EXPECT_EQ(full.put(number(1)), PutStatus::stored);
  EXPECT_EQ(full.put(number(2), no_deadline, soon(2ms)), PutStatus::expired);
  EXPECT_EQ(full.losses().expired, 1u);
}

// On virtual time, so that both moments are hit exactly.
TEST(mailbox, time_to_live_is_over_at_its_end_and_not_before) {
  for (const std::int64_t early_ns : {1, 0}) {
    TurnSchedule schedule(1);
    MailboxOptions set = options(4);
    set.schedule = &schedule;
    Mailbox box(set);
    ASSERT_EQ(box.put(number(1), no_deadline, schedule.now_ns() + 1000), PutStatus::stored);
    schedule.advance(Nanoseconds(1000 - early_ns));
    EXPECT_EQ(take_all(box), early_ns == 1 ? Values{1} : Values{});
    EXPECT_EQ(box.losses().expired, early_ns == 1 ? 0u : 1u);
  }
  // A put whose message ends with its patience is a dead letter, not a sender that did not wait.
  Mailbox full(options(1));
  ASSERT_EQ(full.put(number(1)), PutStatus::stored);
  const std::uint64_t both = soon(2ms);
  EXPECT_EQ(full.put(number(2), both, both), PutStatus::expired);
  EXPECT_EQ(full.losses().expired, 1u);
  EXPECT_EQ(full.losses().rejected, 0u);
}

// A wake that is lost leaves them waiting for the whole time limit. Each has a moment to fall asleep first, many times
// over, since whether it sleeps cannot be seen.
TEST(mailbox, batches_expiry_and_clearing_wake_who_waits) {
  for (int round = 0; round < 20; ++round) {
    MailboxOptions set = options(2);
    set.waiting = {WaitMode::spin_then_park, 1};
    Mailbox box(set);
    std::thread reader([&] {
      Envelope envelope;
      EXPECT_EQ(box.take(envelope, soon(10s)), GetStatus::taken) << "not woken by a batch";
    });
    std::this_thread::sleep_for(1ms);
    const Message one = number(1);
    ASSERT_EQ(box.put_batch(&one, 1), 1u);
    reader.join();

    for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(box.put(number(i), no_deadline, soon(-1ms)), PutStatus::stored);
    std::thread writer([&] { EXPECT_EQ(box.put(number(3), soon(10s)), PutStatus::stored) << "not woken by room"; });
    std::this_thread::sleep_for(1ms);
    if (round % 2 == 0) {
      EXPECT_EQ(box.clear(), 2u);
    } else {
      Envelope envelope;
      const GetStatus status = box.try_take(envelope);  // both have expired; what waited may be there already
      EXPECT_TRUE(status == GetStatus::empty || status == GetStatus::taken);
    }
    writer.join();
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(mailbox, a_shut_gate_keeps_messages_and_an_open_one_gives_them) {
  Mailbox box(options(4));
  std::atomic<int> taken{0};
  std::thread reader([&] {
    Envelope envelope;
    while (box.take(envelope, no_deadline) == GetStatus::taken) ++taken;
  });
  EXPECT_TRUE(box.set_gate(false, soon(5s)));
  EXPECT_EQ(box.put(number(1)), PutStatus::stored);
  EXPECT_EQ(box.put(number(2)), PutStatus::stored);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(taken.load(), 0);
  EXPECT_EQ(box.depth(), 2u);
  EXPECT_TRUE(box.set_gate(true, soon(5s)));
  box.close();
  reader.join();
  EXPECT_EQ(taken.load(), 2);
}

// The fault to catch: a receive that waits when the queue is closed hangs for ever.
TEST(mailbox, closing_wakes_readers_and_writers_that_wait) {
  for (const WaitMode mode : {WaitMode::spin, WaitMode::spin_then_park}) {
    MailboxOptions set = options(1);
    set.waiting = {mode, 10};
    Mailbox empty(set);
    std::thread reader([&] {
      Envelope envelope;
      EXPECT_EQ(empty.take(envelope, no_deadline), GetStatus::closed);
    });
    Mailbox full(set);
    EXPECT_EQ(full.put(number(1)), PutStatus::stored);
    std::vector<std::thread> writers;
    for (int i = 0; i < 3; ++i) writers.emplace_back([&] { EXPECT_EQ(full.put(number(2)), PutStatus::closed); });
    std::this_thread::sleep_for(10ms);
    empty.close();
    full.close();
    reader.join();
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(take_all(full), Values{1});
    EXPECT_EQ(full.losses().rejected, 3u);
  }
}

TEST(mailbox, a_reader_that_waits_times_out) {
  Mailbox box(options(1));
  Envelope envelope;
  EXPECT_EQ(box.take(envelope, soon(2ms)), GetStatus::timed_out);
}

TEST(mailbox, batches_stop_where_the_room_ends) {
  Mailbox box(options(4));
  std::vector<Message> in;
  for (std::uint64_t i = 0; i < 6; ++i) in.push_back(number(i));
  EXPECT_EQ(box.put_batch(in.data(), 6), 4u);
  Envelope out;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(box.try_take(out), GetStatus::taken);
    EXPECT_EQ(payload<Number>(out.message).value, i);
  }
  EXPECT_EQ(box.try_take(out), GetStatus::empty);
}

}  // namespace
}  // namespace cingulum::ring
