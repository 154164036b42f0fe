// The ends of its rings that a seat holds. What the next message needs (slot, sequence, how many more there are before
// the other side's line must be read again) lies ready in 16 bytes; positions, laps and credit are reckoned once a run
// of slots. Used by ring/resident/seat_core.hpp and its context. For a bulk ring only the position means something:
// left and room stay 0.
#pragma once

#include "ring/queue/fast_ring.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

// Readers give credit in quarters of the ring.
CGL_HD constexpr std::uint32_t credit_interval(const SeatRing& ring) {
  return (ring.capacity + 3) / 4;
}

struct alignas(16) SeatInput {
  const FastSlot<Message>* next = nullptr;  // of the message that is waited for
  std::uint32_t sequence = 0;               // of its words
  std::uint32_t left = 0;                   // messages of this run
  std::uint64_t end = 0;                    // position behind the run
  std::uint64_t published = 0;              // the credit that the writer has

  [[nodiscard]] CGL_HD std::uint64_t position() const { return end - left; }
  CGL_HD void advance() {
    ++next;
    --left;
  }
  // The message that was taken last stays in the ring.
  CGL_HD void step_back() {
    --next;
    ++left;
  }
  CGL_HD void move_to(const SeatRing& ring, std::uint64_t position) {
    end = position;
    left = 0;
    if (ring.kind != RingKind::fast) return;
    const auto at = static_cast<std::uint32_t>(position & (ring.capacity - 1));
    const std::uint32_t until_wrap = ring.capacity - at;
    left = until_wrap < credit_interval(ring) ? until_wrap : credit_interval(ring);
    end = position + left;
    next = static_cast<const FastSlot<Message>*>(ring.slots) + at;
    sequence = full_sequence(position >> log2_of(ring.capacity));
  }
};

struct alignas(16) SeatOutput {
  FastSlot<Message>* next = nullptr;  // to be written next
  std::uint32_t sequence = 0;
  std::uint32_t room = 0;    // slots of this run
  std::uint64_t end = 0;     // position behind the run
  std::uint64_t credit = 0;  // the reader's position as last seen

  [[nodiscard]] CGL_HD std::uint64_t position() const { return end - room; }
  CGL_HD void advance() {
    ++next;
    --room;
  }
  CGL_HD void start(std::uint64_t position, std::uint64_t reader) {
    end = position;
    room = 0;
    credit = reader;
  }
  // After a run: the next one, as far as the credit and the ring's end allow. False: there is no room by that credit.
  CGL_HD bool next_run(const SeatRing& ring) {
    const std::uint64_t free = ring.capacity - (end - credit);
    if (free == 0) return false;
    const auto at = static_cast<std::uint32_t>(end & (ring.capacity - 1));
    const std::uint32_t until_wrap = ring.capacity - at;
    room = free < until_wrap ? static_cast<std::uint32_t>(free) : until_wrap;
    next = static_cast<FastSlot<Message>*>(ring.slots) + at;
    sequence = full_sequence(end >> log2_of(ring.capacity));
    end += room;
    return true;
  }
};

}  // namespace cingulum::ring
