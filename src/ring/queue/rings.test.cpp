// The rings in one thread: capacity, order, closing, lapping, batches.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/mpsc_ring.hpp"

namespace cingulum::ring::rings_tests {
namespace {

struct Number {
  static constexpr const char* message_name = "Number";
  std::uint64_t value = 0;
};
Message number(std::uint64_t value) {
  return make_message(Number{value});
}
std::uint64_t value_of(const Message& message) {
  return payload<Number>(message).value;
}

constexpr std::uint32_t most = 8;
struct BulkMemory {
  RingLine writer, reader;
  std::array<Message, most> slots;
  BulkRingView<Message> view(std::uint32_t capacity) { return {slots.data(), &writer, &reader, capacity}; }
};
struct FastMemory {
  RingLine writer, reader;
  std::array<FastSlot<Message>, most> slots;
  FastRingView<Message> view(std::uint32_t capacity) { return {slots.data(), &writer, &reader, capacity}; }
};
struct MpscMemory {
  MpscTail tail;
  RingLine reader;
  std::array<MpscSlot<Message>, most> slots;
  MpscRing<Message>::View view(std::uint32_t capacity) { return {slots.data(), &tail, &reader, capacity}; }
};
struct OverMemory {
  MpscTail tail;
  RingLine reader;
  std::array<FastSlot<Message>, most> slots;
  MpscOverwritingRing<Message>::View view(std::uint32_t capacity) { return {slots.data(), &tail, &reader, capacity}; }
};

TEST(rings, a_message_travels_in_sixteen_words_of_eight_bytes) {
  EXPECT_EQ(FastSlot<Message>::word_count, 16u);
  EXPECT_EQ(sizeof(FastSlot<Message>), 128u);
}

// Every slot holds a message, a full ring says so and keeps what it has. The faults to catch: one slot is lost, a put
// on a full ring empties it or throws.
template <class Put, class Get>
void expect_whole_capacity(std::uint32_t capacity, Put&& put, Get&& get) {
  std::uint64_t next_in = 1;
  std::uint64_t next_out = 1;
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < capacity; ++i) ASSERT_EQ(put(number(next_in++)), PutStatus::stored);
    for (int again = 0; again < 3; ++again) ASSERT_EQ(put(number(999)), PutStatus::full);
    Message message;
    for (std::uint32_t i = 0; i < capacity; ++i) {
      ASSERT_EQ(get(message), GetStatus::taken);
      ASSERT_EQ(value_of(message), next_out++);
    }
    ASSERT_EQ(get(message), GetStatus::empty);
    // After one was taken exactly one has room.
    for (std::uint32_t i = 0; i < capacity; ++i) ASSERT_EQ(put(number(next_in++)), PutStatus::stored);
    ASSERT_EQ(get(message), GetStatus::taken);
    ASSERT_EQ(put(number(next_in)), PutStatus::stored);
    ASSERT_EQ(put(number(999)), PutStatus::full);
    ++next_in;
    for (std::uint32_t i = 0; i < capacity; ++i) ASSERT_EQ(get(message), GetStatus::taken);
    next_out = next_in;
  }
}

TEST(rings, every_slot_of_any_power_of_two_is_used_and_a_full_ring_refuses) {
  for (const std::uint32_t capacity : {1u, 2u, 4u, 8u}) {
    for (const std::uint64_t lap : {std::uint64_t{0}, (std::uint64_t{1} << 31) - 2}) {
      const std::uint64_t start = lap * capacity;
      BulkMemory bulk;
      bulk.writer.position = bulk.reader.position = start;
      BulkWriter<Message> bulk_writer(bulk.view(capacity), start);
      BulkReader<Message> bulk_reader(bulk.view(capacity), start);
      expect_whole_capacity(
          capacity, [&](const Message& m) { return bulk_writer.try_put(m); },
          [&](Message& m) { return bulk_reader.try_get(m); });

      FastMemory fast;
      fast.reader.position = start;
      FastWriter<Message> fast_writer(fast.view(capacity), start);
      FastReader<Message> fast_reader(fast.view(capacity), start);
      expect_whole_capacity(
          capacity, [&](const Message& m) { return fast_writer.try_put(m); },
          [&](Message& m) { return fast_reader.try_get(m); });

      MpscMemory many;
      if (lap != 0) MpscRing<Message>::prepare(many.view(capacity), start);
      MpscRing<Message> ring(many.view(capacity), start);
      expect_whole_capacity(
          capacity, [&](const Message& m) { return ring.try_put(m); }, [&](Message& m) { return ring.try_get(m); });
    }
  }
}

TEST(rings, zeroed_memory_is_never_a_message) {
  for (const std::uint64_t lap :
       {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 31) - 1, std::uint64_t{1} << 31}) {
    FastMemory fast;
    FastReader<Message> reader(fast.view(4), lap * 4);
    Message message;
    EXPECT_EQ(reader.try_get(message), GetStatus::empty) << lap;
    EXPECT_EQ(reader.lost(), 0u);
  }
}

TEST(rings, a_lapped_reader_skips_to_the_oldest_and_counts) {
  for (const std::uint32_t capacity : {1u, 2u, 4u}) {
    for (std::uint32_t written = 0; written <= 4 * capacity; ++written) {
      FastMemory fast;
      FastWriter<Message> writer(fast.view(capacity));
      FastReader<Message> reader(fast.view(capacity));
      for (std::uint64_t i = 1; i <= written; ++i) writer.put_over(number(i));
      writer.close();
      EXPECT_EQ(fast.reader.position, 0u) << "the writer wrote the reader's line";
      std::vector<std::uint64_t> read;
      Message message;
      GetStatus status;
      while ((status = reader.try_get(message)) == GetStatus::taken) read.push_back(value_of(message));
      EXPECT_EQ(status, GetStatus::closed);
      const std::uint64_t kept = std::min(written, capacity);
      ASSERT_EQ(read.size(), kept);
      for (std::uint64_t i = 0; i < kept; ++i) EXPECT_EQ(read[i], written - kept + 1 + i);
      EXPECT_EQ(reader.lost(), written - kept);
    }
  }
}

TEST(rings, drop_oldest_with_many_writers_keeps_the_newest) {
  OverMemory memory;
  MpscOverwritingRing<Message> ring(memory.view(2));
  for (std::uint64_t i = 1; i <= 7; ++i) EXPECT_EQ(ring.put_over(number(i)), PutStatus::stored);
  ring.close();
  EXPECT_EQ(ring.put_over(number(8)), PutStatus::closed);
  Message message;
  EXPECT_EQ(ring.try_get(message), GetStatus::taken);
  EXPECT_EQ(value_of(message), 6u);
  EXPECT_EQ(ring.try_get(message), GetStatus::taken);
  EXPECT_EQ(value_of(message), 7u);
  EXPECT_EQ(ring.try_get(message), GetStatus::closed);
  EXPECT_EQ(ring.lost(), 5u);
}

TEST(rings, a_closed_ring_gives_what_it_has_and_then_says_closed) {
  BulkMemory bulk;
  BulkWriter<Message> writer(bulk.view(4));
  BulkReader<Message> reader(bulk.view(4));
  Message message;
  EXPECT_EQ(writer.try_put(number(1)), PutStatus::stored);
  writer.close();
  EXPECT_EQ(reader.try_get(message), GetStatus::taken);
  EXPECT_EQ(reader.try_get(message), GetStatus::closed);

  MpscMemory many;
  MpscRing<Message> ring(many.view(4));
  EXPECT_EQ(ring.try_put(number(1)), PutStatus::stored);
  ring.close();
  ring.close();
  EXPECT_EQ(ring.try_put(number(2)), PutStatus::closed);
  EXPECT_EQ(ring.try_get(message), GetStatus::taken);
  EXPECT_EQ(ring.try_get(message), GetStatus::closed);
}

TEST(rings, a_writer_learns_that_its_reader_has_left) {
  FastMemory fast;
  FastWriter<Message> writer(fast.view(1));
  FastReader<Message> reader(fast.view(1));
  EXPECT_EQ(writer.try_put(number(1)), PutStatus::stored);
  reader.leave();
  EXPECT_EQ(writer.try_put(number(2)), PutStatus::closed);
}

TEST(rings, batches_go_as_far_as_there_is_room) {
  BulkMemory bulk;
  BulkWriter<Message> writer(bulk.view(4));
  BulkReader<Message> reader(bulk.view(4));
  std::array<Message, 6> in;
  for (std::uint64_t i = 0; i < in.size(); ++i) in[i] = number(i);
  EXPECT_EQ(writer.put_batch(in.data(), 6), 4u);
  EXPECT_EQ(writer.put_batch(in.data() + 4, 2), 0u);
  std::array<Message, 3> out;
  EXPECT_EQ(reader.get_batch(out.data(), 3), 3u);
  EXPECT_EQ(value_of(out[2]), 2u);
  EXPECT_EQ(writer.put_batch(in.data() + 4, 2), 2u);
  EXPECT_EQ(reader.get_batch(out.data(), 3), 3u);
  EXPECT_EQ(value_of(out[2]), 5u);
  EXPECT_EQ(reader.get_batch(out.data(), 3), 0u);
}

TEST(rings, bands_follow_the_priorities_of_the_wire) {
  EXPECT_EQ(band_of_priority(255), Band::system);
  EXPECT_EQ(band_of_priority(224), Band::system);
  EXPECT_EQ(band_of_priority(223), Band::high);
  EXPECT_EQ(band_of_priority(160), Band::high);
  EXPECT_EQ(band_of_priority(159), Band::normal);
  EXPECT_EQ(band_of_priority(default_priority), Band::normal);
  EXPECT_EQ(band_of_priority(64), Band::normal);
  EXPECT_EQ(band_of_priority(63), Band::low);
  EXPECT_EQ(band_of_priority(0), Band::low);
  // And back: the lowest priority of the band, or the default.
  const std::vector<std::pair<Band, int>> lowest = {
      {Band::system, 224}, {Band::high, 160}, {Band::normal, 128}, {Band::low, 0}};
  for (const auto& [band, priority] : lowest) {
    EXPECT_EQ(priority_of_band(band), priority);
    EXPECT_EQ(band_of_priority(priority_of_band(band)), band);
  }
}

// Size, band, marks and source share one word: each comes back, and none touches another.
TEST(rings, the_parts_of_the_flags_do_not_touch_each_other) {
  for (const std::uint16_t source :
       {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{0x8000}, std::uint16_t{0xffff}}) {
    for (const Band band : {Band::system, Band::high, Band::normal, Band::low}) {
      for (const std::uint32_t bytes : {0u, 1u, 32u, static_cast<std::uint32_t>(payload_capacity)}) {
        Message message;
        message.header.flags = ~0u & ~static_cast<std::uint32_t>(mark_request);
        message.set_source(source);
        message.set_payload_bytes(bytes);
        message.set_band(band);
        EXPECT_EQ(message.source(), source);
        EXPECT_EQ(message.band(), band);
        EXPECT_EQ(message.payload_bytes(), bytes);
        EXPECT_FALSE(message.has(mark_request));
        message.header.flags |= mark_request;
        EXPECT_EQ(message.source(), source);
        EXPECT_EQ(message.band(), band);
        EXPECT_EQ(message.payload_bytes(), bytes);
        EXPECT_TRUE(message.has(mark_request));
        EXPECT_EQ(message.header.flags >> 16, source);
      }
    }
  }
}

TEST(rings, a_reply_keeps_correlation_band_and_mark_of_its_request) {
  Message request = make_message(Number{5}, 77, Band::high);
  request.header.flags |= mark_request;
  request.set_source(12);
  const Message reply = make_reply(request, Number{6});
  EXPECT_EQ(reply.header.correlation, 77u);
  EXPECT_EQ(reply.band(), Band::high);
  EXPECT_TRUE(reply.has(mark_request));
  EXPECT_TRUE(holds<Number>(reply));
  EXPECT_EQ(reply.payload_bytes(), sizeof(Number));
  EXPECT_EQ(value_of(reply), 6u);
}

}  // namespace
}  // namespace cingulum::ring::rings_tests
