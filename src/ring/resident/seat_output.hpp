// How messages leave a seat (ring/resident/seat_core.hpp): one at a time to a fast ring, in batches to a bulk ring; the
// mailbox waits for credit and room. What cannot go because the actor is to end is counted as refused.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
template <bool on_device>
CGL_HD inline bool SeatCore<Machine>::put(const SeatRing& ring, SeatOutput& output, const Message& message) {
  if (output.room == 0 && !find_room(ring, output)) return false;
  if (Machine::in_mailbox()) {
    Machine::template write_fast<on_device>(output.next, output.sequence, message, &shared().sending,
                                            shared().plan.number);
  }
  output.advance();
  return true;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::find_room(const SeatRing& ring, SeatOutput& output) {
  if (output.next_run(ring)) return true;
  round_ ^= 1u;
  if (Machine::in_mailbox()) wait_for_credit(ring, output.end);
  Machine::block_sync();
  if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end)) {
    ++refused_;
    return false;
  }
  output.credit = shared().credit[round_];
  return output.next_run(ring);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_credit(const SeatRing& ring, std::uint64_t position) {
  std::uint32_t passes = 0;
  for (;;) {
    const std::uint64_t credit = Machine::load_acquire(&ring.reader->position);
    if (position - credit < ring.capacity) {
      if (Machine::is_first()) shared().credit[round_] = credit;
      post_verdict(Verdict::room, 0);
      return;
    }
    if (ending() || Machine::load_acquire(&ring.reader->closed) != 0) {
      post_verdict(Verdict::end, 0);
      return;
    }
    look_around();
    back_off(passes);
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::flush() {
  if (out_count_ == 0) return;
  const SeatRing& outbox = shared().plan.outbox;
  if (outbox.kind != RingKind::bulk) {
    flush_fast();
    return;
  }
  std::uint32_t done = 0;
  while (done < out_count_) {
    round_ ^= 1u;
    if (Machine::in_mailbox()) wait_for_room(out_count_ - done);
    Machine::block_sync();  // also: what the body wrote to out[] is there
    const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
    const std::uint32_t count = shared().count[round_];
    if (verdict == Verdict::end) {
      refused_ += out_count_ - done;
      sent_ -= out_count_ - done;
      break;
    }
    Machine::copy_out(static_cast<Message*>(outbox.slots), shared().batch_position, shared().out + done, count,
                      outbox.capacity);
    Machine::block_sync();
    if (Machine::in_mailbox()) {
      Machine::store_release(&outbox.writer->position, output_.end + count);
    }
    output_.end += count;
    done += count;
  }
  out_count_ = 0;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_room(std::uint32_t wanted) {
  const SeatRing& outbox = shared().plan.outbox;
  std::uint32_t passes = 0;
  for (;;) {
    std::uint64_t room = outbox.capacity - (output_.end - output_.credit);
    if (room < wanted) {
      output_.credit = Machine::load_acquire(&outbox.reader->position);
      room = outbox.capacity - (output_.end - output_.credit);
    }
    if (room != 0) {
      if (Machine::is_first()) shared().batch_position = output_.end;
      post_verdict(Verdict::room, static_cast<std::uint32_t>(room < wanted ? room : wanted));
      return;
    }
    if (ending() || Machine::load_acquire(&outbox.reader->closed) != 0) {
      post_verdict(Verdict::end, 0);
      return;
    }
    look_around();
    back_off(passes);
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::flush_fast() {
  Machine::block_sync();
  const std::uint32_t count = out_count_;
  out_count_ = 0;
  if (Machine::in_mailbox()) {
    // As in hand_over(), once for all: the barrier above has shown us what the lanes wrote to their buffers.
    bool names_buffers = false;
    for (std::uint32_t i = 0; i < count; ++i) names_buffers = names_buffers || shared().out[i].has(mark_handle);
    if (names_buffers) Machine::fence();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!put<false>(shared().plan.outbox, output_, shared().out[i])) --sent_;
  }
  Machine::block_sync();
}

}  // namespace cingulum::ring
