// Every interleaving of the rings' atomic steps, with the rings themselves: capacities 1, 2 and 4, from zeroed memory
// and across the wrap of the 32-bit sequence.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/queue/mpsc_ring.hpp"
#include "ring/queue/waiting.hpp"
#include "support/interleaver.hpp"
#include "support/long_tests.hpp"

namespace cingulum::ring {
namespace {

using test::Interleaver;
using test::SteppedAtomics;
using test::SteppedValue;
using Findings = Interleaver::Findings;

constexpr std::uint64_t torn = 1u << 30;  // in a list of what was read: a value whose halves do not fit
constexpr std::uint64_t lost_mark = 1u << 29;

// The last lap before the sequence wraps, or the first of all.
std::uint64_t start_of(std::uint32_t capacity, bool at_wrap) {
  return at_wrap ? ((std::uint64_t{1} << 31) - 1) * capacity : 0;
}

struct Pair {
  std::uint32_t value = 0;
  std::uint32_t inverse = ~0u;
};
std::uint64_t checked(const Pair& pair) {
  return pair.inverse == ~pair.value ? pair.value : torn;
}
std::uint64_t checked(const SteppedValue& value) {
  return value.is_whole() ? value.low : torn;
}

void wait() {
  SteppedAtomics::pause();
}

// Reads to the end, waiting where there is nothing.
template <class Value, class Reader>
void read_until_closed(Reader& reader, Findings& read) {
  for (;;) {
    Value value;
    const GetStatus status = reader.try_get(value);
    if (status == GetStatus::closed) return;
    if (status == GetStatus::taken) {
      read.push_back(checked(value));
    } else {
      wait();
    }
  }
}

void expect_clean(Interleaver& all, const Interleaver::Judge& judge, const std::string& what, double least = 1) {
  const Interleaver::Outcome outcome = all.explore(judge);
  EXPECT_EQ(outcome.complaint, "") << what << " in schedule " << outcome.schedule;
  EXPECT_GE(outcome.schedules, least) << what;
  ::testing::Test::RecordProperty(what, fmt::format("{} schedules, {} states", outcome.schedules, outcome.states));
  fmt::print("  {:<44} {:>14.6g} schedules {:>9} states\n", what, outcome.schedules, outcome.states);
}

// The reader's list must be 1, 2, ..., count.
std::string judge_in_order(const Findings& read, std::uint64_t count) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i] != i + 1) return fmt::format("message {} read as {}", i + 1, read[i]);
  }
  return read.size() == count ? "" : fmt::format("{} of {} messages read", read.size(), count);
}

struct BulkMemory {
  RingLine writer;
  RingLine reader;
  SteppedValue slots[4];
};

TEST(interleaving, a_bulk_ring_delivers_all_in_order_under_every_schedule) {
  for (const std::uint32_t capacity : {1u, 2u, 4u}) {
    for (const bool at_wrap : {false, true}) {
      BulkMemory memory;
      const std::uint64_t start = at_wrap ? (std::uint64_t{1} << 32) - 1 : 0;
      memory.writer.position = start;
      memory.reader.position = start;
      const BulkRingView<SteppedValue> view{memory.slots, &memory.writer, &memory.reader, capacity};
      const std::uint32_t count = capacity + (test::may_take_long() ? 3 : 1);
      Interleaver all(&memory, sizeof(memory));
      all.add_thread([=](Findings&) {
        BulkWriter<SteppedValue, SteppedAtomics> writer(view, start);
        for (std::uint32_t i = 1; i <= count; ++i) {
          while (writer.try_put(SteppedValue(i)) != PutStatus::stored) wait();
        }
        writer.close();
      });
      all.add_thread([=](Findings& read) {
        BulkReader<SteppedValue, SteppedAtomics> reader(view, start);
        read_until_closed<SteppedValue>(reader, read);
      });
      expect_clean(
          all, [=](const auto& lists) { return judge_in_order(lists[1], count); },
          fmt::format("bulk, capacity {}{}", capacity, at_wrap ? ", at 2^32" : ""));
    }
  }
}

TEST(interleaving, batches_of_a_bulk_ring_with_rare_credit_neither_stop_nor_lose) {
  BulkMemory memory;
  const BulkRingView<SteppedValue> view{memory.slots, &memory.writer, &memory.reader, 4};
  Interleaver all(&memory, sizeof(memory));
  all.add_thread([=](Findings&) {
    BulkWriter<SteppedValue, SteppedAtomics> writer(view);
    SteppedValue values[6];
    for (std::uint32_t i = 0; i < 6; ++i) values[i] = SteppedValue(i + 1);
    for (std::uint32_t done = 0; done < 6;) {
      const std::uint32_t put = writer.put_batch(values + done, 6 - done);
      if (put == 0) wait();
      done += put;
    }
    writer.close();
  });
  all.add_thread([=](Findings& read) {
    BulkReader<SteppedValue, SteppedAtomics> reader(view, 0, 4);  // says every fourth time how far it is
    for (;;) {
      SteppedValue values[2];
      const std::uint32_t taken = reader.get_batch(values, 2);
      for (std::uint32_t i = 0; i < taken; ++i) read.push_back(checked(values[i]));
      if (taken == 0) {
        if (reader.ended()) break;
        wait();
      }
    }
  });
  expect_clean(
      all, [](const auto& lists) { return judge_in_order(lists[1], 6); }, "bulk, batches, credit every fourth");
}

struct FastMemory {
  RingLine writer;
  RingLine reader;
  FastSlot<Pair> slots[4];
};

TEST(interleaving, a_fast_ring_delivers_all_in_order_under_every_schedule) {
  for (const std::uint32_t capacity : {1u, 2u, 4u}) {
    for (const bool at_wrap : {false, true}) {
      FastMemory memory;  // zeroed also when the sequence begins elsewhere: zero must not be taken for a message
      const std::uint64_t start = start_of(capacity, at_wrap);
      memory.reader.position = start;
      const FastRingView<Pair> view{memory.slots, &memory.writer, &memory.reader, capacity};
      // Crosses the wrap when it begins one lap before.
      const std::uint32_t count = capacity + (test::may_take_long() ? 2 : 1);
      Interleaver all(&memory, sizeof(memory));
      all.add_thread([=](Findings&) {
        FastWriter<Pair, SteppedAtomics> writer(view, start);
        for (std::uint32_t i = 1; i <= count; ++i) {
          while (writer.try_put(Pair{i, ~i}) != PutStatus::stored) wait();
        }
        writer.close();
      });
      all.add_thread([=](Findings& read) {
        FastReader<Pair, SteppedAtomics> reader(view, start);
        read_until_closed<Pair>(reader, read);
        if (reader.lost() != 0) read.push_back(lost_mark);
      });
      expect_clean(
          all, [=](const auto& lists) { return judge_in_order(lists[1], count); },
          fmt::format("fast, capacity {}{}", capacity, at_wrap ? ", at the wrap" : ""));
    }
  }
}

// What was read grows, nothing is torn, and read + lost = written.
std::string judge_overwritten(const Findings& read, std::uint64_t written) {
  std::uint64_t last = 0;
  std::uint64_t taken = 0;
  std::uint64_t lost = 0;
  for (const std::uint64_t value : read) {
    if ((value & lost_mark) != 0) {
      lost = value & ~lost_mark;
      continue;
    }
    if (value <= last || value > written) return fmt::format("{} read after {}", value, last);
    last = value;
    ++taken;
  }
  return taken + lost == written ? "" : fmt::format("{} read and {} lost of {}", taken, lost, written);
}

TEST(interleaving, an_overwriting_fast_ring_counts_exactly_what_it_lost) {
  for (const std::uint32_t capacity : {1u, 2u, 4u}) {
    for (const bool at_wrap : {false, true}) {
      FastMemory memory;
      const std::uint64_t start = start_of(capacity, at_wrap);
      // At the wrap the slots hold the lap before, as they would.
      if (at_wrap) {
        for (auto& slot : memory.slots) {
          for (auto& word : slot.words) word = sequenced_word(0, full_sequence(start / capacity) - 2);
        }
      }
      const FastRingView<Pair> view{memory.slots, &memory.writer, &memory.reader, capacity};
      const std::uint32_t count = capacity + (test::may_take_long() ? 4 : 2);
      Interleaver all(&memory, sizeof(memory));
      all.add_thread([=](Findings&) {
        FastWriter<Pair, SteppedAtomics> writer(view, start);
        for (std::uint32_t i = 1; i <= count; ++i) writer.put_over(Pair{i, ~i});
        writer.close();
      });
      all.add_thread([=](Findings& read) {
        FastReader<Pair, SteppedAtomics> reader(view, start);
        read_until_closed<Pair>(reader, read);
        read.push_back(lost_mark | reader.lost());
      });
      expect_clean(
          all, [=](const auto& lists) { return judge_overwritten(lists[1], count); },
          fmt::format("overwriting, capacity {}{}", capacity, at_wrap ? ", at the wrap" : ""));
    }
  }
}

// The reader's position, which only tells the depth, lies outside of what is interleaved.
struct MpscMemory {
  MpscTail tail;
  MpscSlot<SteppedValue> slots[4];
};
using SteppedMpsc = MpscRing<SteppedValue, SteppedAtomics>;

// Messages of writer w are 10 w + 1, 10 w + 2, ...; each list of a writer says which were stored. What the reader read
// (and what was found dead) must be exactly these, in each writer's order.
std::string judge_many(const std::vector<Findings>& lists, std::size_t writers) {
  std::vector<std::uint64_t> next(writers, 0);
  std::uint64_t read = 0;
  for (const std::uint64_t value : lists[writers]) {
    const std::uint64_t writer = value / 10 - 1;
    if (writer >= writers) return fmt::format("{} read", value);
    const Findings& stored = lists[writer];
    if (next[writer] >= stored.size() || stored[next[writer]] != value)
      return fmt::format("{} read out of order", value);
    ++next[writer];
    ++read;
  }
  std::uint64_t stored = 0;
  for (std::size_t writer = 0; writer < writers; ++writer) stored += lists[writer].size();
  return read == stored ? "" : fmt::format("{} stored, {} read", stored, read);
}

TEST(interleaving, two_writers_lose_nothing_under_every_schedule) {
  for (const std::uint32_t capacity : {1u, 2u, 4u}) {
    for (const bool at_wrap : {false, true}) {
      MpscMemory memory;
      RingLine position;
      const std::uint64_t start = start_of(capacity, at_wrap);
      const SteppedMpsc::View view{memory.slots, &memory.tail, &position, capacity};
      if (at_wrap) SteppedMpsc::prepare(view, start);
      // Messages; one slot makes many schedules.
      const std::uint32_t total = capacity == 1 && !test::may_take_long() ? 2 : 3;
      Interleaver all(&memory, sizeof(memory));
      for (std::uint32_t w = 1; w <= 2; ++w) {
        const std::uint32_t count = w <= total - 2 ? 2 : 1;
        all.add_thread([=](Findings& stored) {
          SteppedMpsc ring(view, start);
          for (std::uint32_t i = 1; i <= count; ++i) {
            while (ring.try_put(SteppedValue(10 * w + i)) != PutStatus::stored) wait();
            stored.push_back(10 * w + i);
          }
        });
      }
      all.add_thread([=](Findings& read) {
        SteppedMpsc ring(view, start);
        while (read.size() < total) {
          SteppedValue value;
          if (ring.has_message() && ring.try_get(value) == GetStatus::taken) {
            read.push_back(checked(value));
          } else {
            wait();
          }
        }
      });
      expect_clean(
          all, [](const auto& lists) { return judge_many(lists, 2); },
          fmt::format("many writers, capacity {}{}", capacity, at_wrap ? ", at the wrap" : ""), 1e5);
    }
  }
}

TEST(interleaving, closing_from_a_third_thread_draws_an_exact_line) {
  for (const std::uint32_t capacity : {1u, 2u}) {
    MpscMemory memory;
    RingLine position;
    const SteppedMpsc::View view{memory.slots, &memory.tail, &position, capacity};
    Interleaver all(&memory, sizeof(memory));
    for (std::uint32_t w = 1; w <= 2; ++w) {
      all.add_thread([=](Findings& stored) {
        SteppedMpsc ring(view);
        for (;;) {
          const PutStatus status = ring.try_put(SteppedValue(10 * w + 1));
          if (status == PutStatus::stored) stored.push_back(10 * w + 1);
          if (status != PutStatus::full) break;
          wait();
        }
      });
    }
    all.add_thread([=](Findings& read) {
      SteppedMpsc ring(view);
      read_until_closed<SteppedValue>(ring, read);
    });
    all.add_thread([=](Findings&) { SteppedMpsc(view).close(); });
    expect_clean(
        all, [](const auto& lists) { return judge_many(lists, 2); }, fmt::format("closing, capacity {}", capacity),
        1e6);
  }
}

// The reader takes one message, fails, closes the ring and counts what is left as dead; capacity 2.
TEST(interleaving, a_reader_that_fails_accounts_for_every_message) {
  MpscMemory memory;
  RingLine position;
  const SteppedMpsc::View view{memory.slots, &memory.tail, &position, 2};
  Interleaver all(&memory, sizeof(memory));
  for (std::uint32_t w = 1; w <= 2; ++w) {
    const std::uint32_t count = w == 1 ? 2 : 1;
    all.add_thread([=](Findings& stored) {
      SteppedMpsc ring(view);
      for (std::uint32_t i = 1; i <= count; ++i) {
        for (;;) {
          const PutStatus status = ring.try_put(SteppedValue(10 * w + i));
          if (status == PutStatus::stored) stored.push_back(10 * w + i);
          if (status != PutStatus::full) break;
          wait();
        }
      }
    });
  }
  all.add_thread([=](Findings& read) {
    SteppedMpsc ring(view);
    SteppedValue value;
    while (!ring.has_message() || ring.try_get(value) != GetStatus::taken) wait();
    read.push_back(checked(value));
    ring.close();
    read_until_closed<SteppedValue>(ring, read);
  });
  expect_clean(
      all, [](const auto& lists) { return judge_many(lists, 2); }, "failing reader, capacity 2", 1e6);
}

struct OverMemory {
  MpscTail tail;
  FastSlot<Pair> slots[4];
};
using SteppedOver = MpscOverwritingRing<Pair, SteppedAtomics>;

TEST(interleaving, two_overwriting_writers_tear_nothing_and_the_loss_is_exact) {
  for (const std::uint32_t capacity : {1u, 2u}) {
    for (const bool at_wrap : {false, true}) {
      OverMemory memory;
      RingLine position;
      const std::uint64_t start = start_of(capacity, at_wrap);
      const SteppedOver::View view{memory.slots, &memory.tail, &position, capacity};
      if (at_wrap) SteppedOver::prepare(view, start);
      Interleaver all(&memory, sizeof(memory));
      for (std::uint32_t w = 1; w <= 2; ++w) {
        all.add_thread([=](Findings& stored) {
          SteppedOver ring(view, start);
          const std::uint32_t count = w == 1 ? 2 : 1;
          for (std::uint32_t i = 1; i <= count; ++i) {
            const std::uint32_t value = 10 * w + i;
            if (ring.put_over(Pair{value, ~value}) == PutStatus::stored) stored.push_back(value);
          }
        });
      }
      all.add_thread([=](Findings& read) {
        SteppedOver ring(view, start);
        while (read.size() + ring.lost() < 3) {
          Pair value;
          if (ring.has_message() && ring.try_get(value) == GetStatus::taken) {
            read.push_back(checked(value));
          } else {
            wait();
          }
        }
        read.push_back(lost_mark | ring.lost());
      });
      const auto judge = [](const std::vector<Findings>& lists) -> std::string {
        std::uint64_t last_of[2] = {0, 0};
        std::uint64_t taken = 0;
        std::uint64_t lost = 0;
        for (const std::uint64_t value : lists[2]) {
          if ((value & lost_mark) != 0) {
            lost = value & ~lost_mark;
            continue;
          }
          const std::uint64_t writer = value / 10 - 1;
          if (writer > 1 || value <= last_of[writer]) return fmt::format("{} read", value);
          last_of[writer] = value;
          ++taken;
        }
        return taken + lost == 3 ? "" : fmt::format("{} read, {} lost", taken, lost);
      };
      expect_clean(all, judge,
                   fmt::format("overwriting, two writers, capacity {}{}", capacity, at_wrap ? ", at the wrap" : ""));
    }
  }
}

struct BellMemory {
  MpscTail tail;
  MpscSlot<SteppedValue> slots[2];
  BellWords<SteppedAtomics> bell;
};

// A sleeper is woken by nothing but a ring: were one lost, everybody would stand still.
TEST(interleaving, no_wake_up_of_a_parked_reader_is_lost) {
  BellMemory memory;
  RingLine position;
  BellMemory* const shared = &memory;
  const SteppedMpsc::View view{memory.slots, &memory.tail, &position, 2};
  Interleaver all(&memory, sizeof(memory));
  for (std::uint32_t w = 1; w <= 2; ++w) {
    all.add_thread([=](Findings& stored) {
      SteppedMpsc ring(view);
      if (ring.try_put(SteppedValue(10 * w + 1)) == PutStatus::stored) stored.push_back(10 * w + 1);
      if (shared->bell.anyone_waits()) shared->bell.count_ring();
    });
  }
  all.add_thread([=](Findings& read) {
    SteppedMpsc ring(view);
    while (read.size() < 2) {
      SteppedValue value;
      if (ring.has_message() && ring.try_get(value) == GetStatus::taken) {
        read.push_back(checked(value));
        continue;
      }
      const std::uint32_t seen = shared->bell.join();
      const bool now = ring.has_message();
      if (!now) {
        while (SteppedAtomics::load(shared->bell.rings) == seen) wait();  // asleep
      }
      shared->bell.part();
    }
  });
  expect_clean(
      all, [](const auto& lists) { return judge_many(lists, 2); }, "parking", 1e3);
}

// The interleaver itself must be able to find a fault: a flag that is set before the value is.
TEST(interleaving, a_wrong_protocol_is_found) {
  struct Memory {
    std::uint64_t flag = 0;
    SteppedValue value;
  } memory;
  Memory* const shared = &memory;
  Interleaver all(&memory, sizeof(memory));
  all.add_thread([=](Findings&) {
    SteppedAtomics::store(shared->flag, std::uint64_t{1});
    shared->value = SteppedValue(1);
  });
  all.add_thread([=](Findings& read) {
    while (SteppedAtomics::load(shared->flag) == 0) wait();
    SteppedValue value;
    value = shared->value;
    read.push_back(checked(value));
  });
  const auto outcome =
      all.explore([](const auto& lists) { return lists[1][0] == 1 ? "" : "a value that nobody wrote"; });
  EXPECT_EQ(outcome.complaint, "a value that nobody wrote");
  EXPECT_FALSE(outcome.schedule.empty());
}

TEST(interleaving, a_lost_wake_up_is_found) {
  std::uint64_t memory[2] = {0, 0};  // value, asleep
  std::uint64_t* const shared = memory;
  Interleaver all(memory, sizeof(memory));
  all.add_thread([=](Findings&) {
    const bool sleeps = SteppedAtomics::load(shared[1]) == 1;  // looked at before it publishes: the mistake
    SteppedAtomics::store(shared[0], std::uint64_t{1});
    if (sleeps) SteppedAtomics::store(shared[1], std::uint64_t{2});
  });
  all.add_thread([=](Findings&) {
    if (SteppedAtomics::load(shared[0]) == 1) return;
    SteppedAtomics::store(shared[1], std::uint64_t{1});
    while (SteppedAtomics::load(shared[1]) == 1) wait();
  });
  EXPECT_EQ(all.explore([](const auto&) { return ""; }).complaint, "deadlock: nobody can go on");
}

}  // namespace
}  // namespace cingulum::ring
