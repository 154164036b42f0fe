// The fast ring: one writer, one reader, and the sequence inside every word of a slot. A word is 8 bytes, 4 of data and
// 4 of sequence, so that one read tells both whether a message is there and what it says: a Message is sixteen words.
// Each word is written and read whole, hence a slot half overwritten is seen as such. Lowest latency across a bus, and
// the ring for drop_oldest: the writer overwrites, the reader sees by a newer sequence that it was lapped, skips to the
// oldest message that can still be there and counts what it lost. The writer never writes the reader's line.
//
// Protocol: the words are stored relaxed except the last (release) and loaded relaxed except the last (acquire), which
// also hands over what the message refers to (buffers). Without overwriting the writer needs credit: it reads
// reader->position only when the ring seems full. The sequence of all words of position p is full_sequence(p /
// capacity). A writer uses either try_put or put_over on one ring, never both.
#pragma once

#include <cstring>
#include <type_traits>

#include "ring/queue/atomics.hpp"
#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

// The word that carries `data` in a slot, and its parts.
CGL_HD constexpr std::uint64_t sequenced_word(std::uint32_t data, std::uint32_t sequence) {
  return (static_cast<std::uint64_t>(sequence) << 32) | data;
}
CGL_HD constexpr std::uint32_t sequence_of_word(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
CGL_HD constexpr std::uint32_t data_of_word(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

template <class T>
struct alignas(sizeof(T) % 64 == 0 ? 128 : 8) FastSlot {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  static constexpr std::uint32_t word_count = sizeof(T) / 4;
  std::uint64_t words[word_count] = {};
};

// Stores `value` word by word under `sequence`. Called by the slot's only writer.
CGL_HD_GENERIC template <class Atomics, class T>
CGL_HD void store_words(FastSlot<T>& slot, const T& value, std::uint32_t sequence) {
  constexpr std::uint32_t count = FastSlot<T>::word_count;
  std::uint32_t data[count];
  memcpy(data, &value, sizeof(T));
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    Atomics::store_relaxed(slot.words[i], sequenced_word(data[i], sequence));
  }
  Atomics::store_release(slot.words[count - 1], sequenced_word(data[count - 1], sequence));
}

// How far the word of a slot is ahead of what its reader expects. Words of messages have odd sequences: an even one was
// never written (zeroed memory, whatever lap the ring begins with), hence is behind.
CGL_HD constexpr std::int32_t word_ahead(std::uint64_t word, std::uint32_t sequence) {
  const std::int32_t ahead = sequence_ahead(sequence_of_word(word), sequence);
  return (ahead & 1) != 0 ? -1 : ahead;
}

// 0: `value` was read whole; negative: not there yet; positive: a word was newer by this many sequence numbers.
CGL_HD_GENERIC template <class Atomics, class T>
CGL_HD std::int32_t load_words(const FastSlot<T>& slot, T& value, std::uint32_t sequence) {
  constexpr std::uint32_t count = FastSlot<T>::word_count;
  std::uint32_t data[count];
  // The last word was stored last: while it is old, there is no need to read the others.
  const std::uint64_t last = Atomics::load_acquire(slot.words[count - 1]);
  std::int32_t ahead = word_ahead(last, sequence);
  if (ahead != 0) return ahead;
  data[count - 1] = data_of_word(last);
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    const std::uint64_t word = Atomics::load_relaxed(slot.words[i]);
    const std::int32_t difference = word_ahead(word, sequence);
    // Across a bus words of one store may arrive in any order: an old word means not yet, unless another is newer.
    if (difference > 0 || (difference < 0 && ahead == 0)) ahead = difference;
    data[i] = data_of_word(word);
  }
  if (ahead == 0) memcpy(&value, data, sizeof(T));
  return ahead;
}

// How many messages a reader has lost that was overtaken at `position`: the slot holds a message at least `ahead / 2`
// laps younger, so the writer has reached position + laps * capacity and everything up to (laps - 1) * capacity behind
// it is gone.
CGL_HD constexpr std::uint64_t lost_when_lapped(std::int32_t ahead, std::uint32_t capacity) {
  const auto laps = static_cast<std::uint64_t>(ahead / 2);
  return (laps - 1) * capacity + 1;
}

template <class T>
struct FastRingView {
  FastSlot<T>* slots = nullptr;
  RingLine* writer = nullptr;  // position is written at close only
  RingLine* reader = nullptr;
  std::uint32_t capacity = 0;  // a power of two
};

template <class T, class Atomics = HostAtomics>
class FastWriter {
 public:
  FastWriter() = default;
  CGL_HD explicit FastWriter(FastRingView<T> view, std::uint64_t start = 0)
      : view_(view), lap_shift_(log2_of(view.capacity)), position_(start), credit_(start) {}

  // stored, full or closed (the reader has left; seen when the ring seems full).
  CGL_HD_GENERIC CGL_HD PutStatus try_put(const T& value) {
    if (!has_room()) return reader_left_ ? PutStatus::closed : PutStatus::full;
    store(value);
    return PutStatus::stored;
  }
  // drop_oldest: always stored.
  CGL_HD_GENERIC CGL_HD void put_over(const T& value) { store(value); }

  CGL_HD_GENERIC CGL_HD bool has_room() {
    if (position_ - credit_ < view_.capacity) return true;
    credit_ = Atomics::load_acquire(view_.reader->position);
    reader_left_ = Atomics::load_relaxed(view_.reader->closed) != 0;
    return !reader_left_ && position_ - credit_ < view_.capacity;
  }
  // For writers of many lanes, lane i storing words[i] of next_slot() with next_sequence(); then advance() on each
  // lane.
  [[nodiscard]] CGL_HD FastSlot<T>& next_slot() const { return view_.slots[position_ & (view_.capacity - 1)]; }
  [[nodiscard]] CGL_HD std::uint32_t next_sequence() const { return full_sequence(position_ >> lap_shift_); }
  CGL_HD void advance() { ++position_; }

  CGL_HD_GENERIC CGL_HD void close() {
    Atomics::store_release(view_.writer->position, position_);
    Atomics::store_release(view_.writer->closed, std::uint64_t{1});
  }
  [[nodiscard]] CGL_HD std::uint64_t position() const { return position_; }

 private:
  CGL_HD_GENERIC CGL_HD void store(const T& value) {
    store_words<Atomics>(next_slot(), value, next_sequence());
    ++position_;
  }

  FastRingView<T> view_;
  std::uint32_t lap_shift_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t credit_ = 0;
  bool reader_left_ = false;
};

template <class T, class Atomics = HostAtomics>
class FastReader {
 public:
  FastReader() = default;
  // `credit_interval` as in BulkReader; irrelevant when the writer overwrites.
  CGL_HD explicit FastReader(FastRingView<T> view, std::uint64_t start = 0, std::uint32_t credit_interval = 1)
      : view_(view),
        lap_shift_(log2_of(view.capacity)),
        position_(start),
        published_(start),
        credit_interval_(credit_interval) {}

  CGL_HD_GENERIC CGL_HD GetStatus try_get(T& value) {
    for (;;) {
      const std::int32_t ahead = load_words<Atomics>(next_slot(), value, next_sequence());
      if (ahead == 0) {
        advance();
        return GetStatus::taken;
      }
      if (ahead < 0) {
        publish_credit();
        return ended() ? GetStatus::closed : GetStatus::empty;
      }
      skip(ahead);
    }
  }

  // For readers of many lanes: lane i reads words[i] of next_slot(); when all have next_sequence(), advance() on each.
  [[nodiscard]] CGL_HD const FastSlot<T>& next_slot() const { return view_.slots[position_ & (view_.capacity - 1)]; }
  [[nodiscard]] CGL_HD std::uint32_t next_sequence() const { return full_sequence(position_ >> lap_shift_); }
  CGL_HD_GENERIC CGL_HD void advance() {
    ++position_;
    if (position_ - published_ >= credit_interval_) publish_credit();
  }
  // A word was newer by `ahead`: skips what is lost and counts it.
  CGL_HD void skip(std::int32_t ahead) {
    const std::uint64_t lost = lost_when_lapped(ahead, view_.capacity);
    position_ += lost;
    lost_ += lost;
  }
  CGL_HD_GENERIC CGL_HD void publish_credit() {
    if (published_ == position_) return;
    published_ = position_;
    Atomics::store_release(view_.reader->position, position_);
  }
  CGL_HD_GENERIC CGL_HD bool ended() {
    if (Atomics::load_acquire(view_.writer->closed) == 0) return false;
    return Atomics::load_acquire(view_.writer->position) == position_;
  }
  CGL_HD_GENERIC CGL_HD void leave() { Atomics::store_release(view_.reader->closed, std::uint64_t{1}); }

  [[nodiscard]] CGL_HD std::uint64_t position() const { return position_; }
  [[nodiscard]] CGL_HD std::uint64_t lost() const { return lost_; }  // overwritten before they were read

 private:
  FastRingView<T> view_;
  std::uint32_t lap_shift_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t lost_ = 0;
  std::uint32_t credit_interval_ = 1;
};

}  // namespace cingulum::ring
