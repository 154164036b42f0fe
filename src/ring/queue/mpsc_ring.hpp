// Rings with many writers and one reader, on one host or inside one GPU (they compare-and-swap, so never across a bus).
// MpscRing refuses when full; MpscOverwritingRing is drop_oldest. Both carry the closing in the top bit of the tail
// word: once it is set no further ticket can be drawn, so that what was accepted and what was refused is exact, and the
// reader drains to a tail that does not move.
//
// MpscRing, after Vyukov's bounded queue, with sequences 2 lap (free) and 2 lap + 1 (full) so that capacity 1 is right:
//   writer: sees slot sequence 2 lap (acquire), draws the ticket by compare-and-swap on the tail, writes the value,
//           stores 2 lap + 1 (release)
//   reader: sees 2 lap + 1 (acquire), reads the value, stores 2 (lap + 1) (release)
// MpscOverwritingRing: draws the ticket, waits until the previous lap's writer of the slot has finished (its last
// word), then stores the words as in ring/queue/fast_ring.hpp; the reader's words are never written.
#pragma once

#include "ring/queue/fast_ring.hpp"

namespace cingulum::ring {

constexpr std::uint64_t tail_closed_bit = std::uint64_t{1} << 63;

struct alignas(line_bytes) MpscTail {
  std::uint64_t word = 0;  // tickets drawn, and the closed bit
};

template <class T>
struct MpscSlot {
  std::uint32_t sequence = 0;
  T value;
};

template <class T, class Slot>
struct MpscRingView {
  Slot* slots = nullptr;
  MpscTail* tail = nullptr;
  RingLine* reader = nullptr;  // position: messages consumed, for the depth; nobody depends on it
  std::uint32_t capacity = 0;  // a power of two
};

template <class T, class Atomics = HostAtomics, class Slot = MpscSlot<T>>
class MpscRing {
 public:
  using View = MpscRingView<T, Slot>;

  MpscRing() = default;
  // Zeroed memory is ready for start 0; otherwise prepare() it first.
  CGL_HD explicit MpscRing(View view, std::uint64_t start = 0)
      : view_(view), lap_shift_(log2_of(view.capacity)), head_(start) {}

  static void prepare(View view, std::uint64_t start) {
    const std::uint32_t shift = log2_of(view.capacity);
    view.tail->word = start;
    view.reader->position = start;
    for (std::uint64_t p = start; p < start + view.capacity; ++p) {
      view.slots[p & (view.capacity - 1)].sequence = free_sequence(p >> shift);
    }
  }

  // Any thread: stored, full or closed.
  CGL_HD_GENERIC CGL_HD PutStatus try_put(const T& value) {
    std::uint64_t position = Atomics::load_relaxed(view_.tail->word);
    for (;;) {
      if ((position & tail_closed_bit) != 0) return PutStatus::closed;
      Slot& slot = view_.slots[position & (view_.capacity - 1)];
      const std::uint64_t lap = position >> lap_shift_;
      const std::int32_t ahead = sequence_ahead(Atomics::load_acquire(slot.sequence), free_sequence(lap));
      if (ahead < 0) {
        // Behind a ticket that was drawn meanwhile the slot would be ahead: this is the tail, and it is full.
        return PutStatus::full;
      }
      if (ahead > 0) {
        position = Atomics::load_relaxed(view_.tail->word);
        continue;
      }
      if (!Atomics::compare_exchange(view_.tail->word, position, position + 1)) continue;
      slot.value = value;
      Atomics::store_release(slot.sequence, full_sequence(lap));
      return PutStatus::stored;
    }
  }
  // Any thread, once or more: no ticket is drawn after it.
  CGL_HD_GENERIC CGL_HD void close() { Atomics::set_bits(view_.tail->word, tail_closed_bit); }

  // The reader only. `empty` may also mean that a writer has drawn its ticket and not yet finished.
  CGL_HD_GENERIC CGL_HD GetStatus try_get(T& value) {
    Slot& slot = view_.slots[head_ & (view_.capacity - 1)];
    const std::uint64_t lap = head_ >> lap_shift_;
    if (Atomics::load_acquire(slot.sequence) != full_sequence(lap)) {
      return ended() ? GetStatus::closed : GetStatus::empty;
    }
    value = slot.value;
    Atomics::store_release(slot.sequence, free_sequence(lap + 1));
    ++head_;
    Atomics::store_relaxed(view_.reader->position, head_);
    return GetStatus::taken;
  }
  // The reader only: what try_get would take, left where it is.
  CGL_HD_GENERIC CGL_HD bool peek(T& value) const {
    if (!has_message()) return false;
    value = view_.slots[head_ & (view_.capacity - 1)].value;
    return true;
  }
  // The reader only: whether something can be taken now.
  CGL_HD_GENERIC CGL_HD bool has_message() const {
    const std::uint32_t sequence = Atomics::load_acquire(view_.slots[head_ & (view_.capacity - 1)].sequence);
    return sequence == full_sequence(head_ >> lap_shift_);
  }
  // The reader only: closed, and all that was accepted was read.
  CGL_HD_GENERIC CGL_HD bool ended() const {
    return Atomics::load_acquire(view_.tail->word) == (head_ | tail_closed_bit);
  }

  // Any thread, approximate while others work.
  CGL_HD_GENERIC CGL_HD std::uint64_t depth() const {
    const std::uint64_t head = Atomics::load_relaxed(view_.reader->position);
    return (Atomics::load_relaxed(view_.tail->word) & ~tail_closed_bit) - head;
  }
  [[nodiscard]] CGL_HD std::uint64_t read_position() const { return head_; }
  [[nodiscard]] CGL_HD std::uint32_t capacity() const { return view_.capacity; }
  [[nodiscard]] CGL_HD std::uint64_t lost() const { return 0; }

 private:
  View view_;
  std::uint32_t lap_shift_ = 0;
  alignas(line_bytes) std::uint64_t head_ = 0;  // the reader's own, away from what writers read
};

template <class T, class Atomics = HostAtomics>
class MpscOverwritingRing {
 public:
  using Slot = FastSlot<T>;
  using View = MpscRingView<T, Slot>;

  MpscOverwritingRing() = default;
  CGL_HD explicit MpscOverwritingRing(View view, std::uint64_t start = 0)
      : view_(view), lap_shift_(log2_of(view.capacity)), head_(start) {}

  // Each slot as if the lap before had been written and read.
  static void prepare(View view, std::uint64_t start) {
    const std::uint32_t shift = log2_of(view.capacity);
    view.tail->word = start;
    view.reader->position = start;
    for (std::uint64_t p = start; p < start + view.capacity; ++p) {
      for (std::uint64_t& word : view.slots[p & (view.capacity - 1)].words) {
        word = sequenced_word(0, full_sequence(p >> shift) - 2);
      }
    }
  }

  // Any thread: stored or closed.
  CGL_HD_GENERIC CGL_HD PutStatus put_over(const T& value) {
    std::uint64_t position = Atomics::load_relaxed(view_.tail->word);
    do {
      if ((position & tail_closed_bit) != 0) return PutStatus::closed;
    } while (!Atomics::compare_exchange(view_.tail->word, position, position + 1));
    Slot& slot = view_.slots[position & (view_.capacity - 1)];
    const std::uint32_t sequence = full_sequence(position >> lap_shift_);
    while (sequence_ahead(sequence_of_word(Atomics::load_acquire(slot.words[Slot::word_count - 1])), sequence - 2) <
           0) {
      Atomics::pause();
    }
    store_words<Atomics>(slot, value, sequence);
    return PutStatus::stored;
  }
  CGL_HD_GENERIC CGL_HD void close() { Atomics::set_bits(view_.tail->word, tail_closed_bit); }

  CGL_HD_GENERIC CGL_HD GetStatus try_get(T& value) {
    if (!peek(value)) return ended() ? GetStatus::closed : GetStatus::empty;
    ++head_;
    Atomics::store_relaxed(view_.reader->position, head_);
    return GetStatus::taken;
  }
  // What try_get would take, left where it is; it may be overwritten before it is taken. What is lost already is
  // skipped and counted.
  CGL_HD_GENERIC CGL_HD bool peek(T& value) {
    for (;;) {
      const std::int32_t ahead =
          load_words<Atomics>(view_.slots[head_ & (view_.capacity - 1)], value, full_sequence(head_ >> lap_shift_));
      if (ahead <= 0) return ahead == 0;
      const std::uint64_t lost = lost_when_lapped(ahead, view_.capacity);
      head_ += lost;
      Atomics::store_relaxed(lost_, lost_ + lost);
    }
  }
  CGL_HD_GENERIC CGL_HD bool has_message() const {
    const std::uint64_t last =
        Atomics::load_acquire(view_.slots[head_ & (view_.capacity - 1)].words[Slot::word_count - 1]);
    return word_ahead(last, full_sequence(head_ >> lap_shift_)) >= 0;
  }
  CGL_HD_GENERIC CGL_HD bool ended() const {
    return Atomics::load_acquire(view_.tail->word) == (head_ | tail_closed_bit);
  }
  CGL_HD_GENERIC CGL_HD std::uint64_t depth() const {
    const std::uint64_t head = Atomics::load_relaxed(view_.reader->position);
    const std::uint64_t waiting = (Atomics::load_relaxed(view_.tail->word) & ~tail_closed_bit) - head;
    return waiting < view_.capacity ? waiting : view_.capacity;
  }
  [[nodiscard]] CGL_HD std::uint64_t read_position() const { return head_; }
  [[nodiscard]] CGL_HD std::uint32_t capacity() const { return view_.capacity; }
  // Any thread: messages overwritten before they were read.
  [[nodiscard]] CGL_HD_GENERIC CGL_HD std::uint64_t lost() const { return Atomics::load_relaxed(lost_); }

 private:
  View view_;
  std::uint32_t lap_shift_ = 0;
  alignas(line_bytes) std::uint64_t head_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace cingulum::ring
