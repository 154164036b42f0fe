// What a seat does when its body calls (ring/resident/seat_core.hpp): messages are looked at and sent, reply buffers
// and buffers of the table are found, the body asks whether it should stop and whether it is still wanted. All lanes of
// all seats make such a call together. How messages get in and out is written in seat_input.hpp and seat_output.hpp.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::peek(Message& message) {
  if (shared().plan.rank != 0) return receive_broadcast(message) == GetStatus::taken;
  GetStatus status = GetStatus::empty;
  if (in_at_ != in_count_) {
    Machine::load_message(message, shared().in[in_buffer_][in_at_]);
    status = GetStatus::taken;
  } else {
    flush();  // who looks for the next message may wait for it, and so may the one who is to send it
    round_ ^= 1u;
    if (Machine::in_mailbox()) post_verdict(look_ahead() ? Verdict::message : Verdict::nothing, 0);
    Machine::block_sync();
    eager_ = Eager::none;  // the look may have gone on to another run of its ring
    if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::message)) {
      Machine::load_message(message, shared().in[round_][0]);
      status = GetStatus::taken;
    }
  }
  if (shared().plan.team != nullptr) broadcast(status, message);
  return status == GetStatus::taken;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline ReplySpace SeatCore<Machine>::reply_buffer() {
  if (shared().plan.rank != 0) {
    Message outcome;
    ReplySpace space;
    if (receive_broadcast(outcome) == GetStatus::taken) copy_payload<ReplySpace>(&space, outcome.payload);
    return space;
  }
  if (!has_reply_ && shared().plan.replies.capacity != 0) {
    round_ ^= 1u;
    if (Machine::in_mailbox()) wait_for_reply_buffer();
    Machine::block_sync();
    if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::room)) {
      has_reply_ = true;
      reply_ = shared().reply;
    }
  }
  ReplySpace space;
  if (has_reply_) space = {reply_.handle, reinterpret_cast<void*>(reply_.address)};
  if (shared().plan.team != nullptr) {
    Message outcome;
    copy_payload<ReplySpace>(outcome.payload, &space);
    broadcast(has_reply_ ? GetStatus::taken : GetStatus::closed, outcome);
  }
  return space;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::sync_seats() {
  Machine::block_sync();  // what all lanes wrote is there before the word that says so
  round_ ^= 1u;
  ++barriers_;
  if (Machine::in_mailbox()) wait_for_all_seats();
  Machine::block_sync();
  return shared().verdict[round_] != static_cast<std::uint32_t>(Verdict::end);
}

CGL_HD_GENERIC template <class Machine>
template <class Answer>
CGL_HD inline bool SeatCore<Machine>::answer_batch(Answer&& answer) {
  if (shared().plan.team != nullptr) return false;  // a message for each lane of one seat
  if (stage_input(true) != GetStatus::taken) return false;
  flush();
  const std::uint32_t count = in_count_ - in_at_;
  for (std::uint32_t i = Machine::lane(); i < count; i += Machine::lanes()) {
    Message message = shared().in[in_buffer_][in_at_ + i];
    answer(message);
    message.set_source(static_cast<std::uint16_t>(shared().plan.number));
    shared().out[i] = message;
  }
  in_at_ += count;
  received_ += count;
  out_count_ = count;
  sent_ += count;
  flush();
  return true;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline PutStatus SeatCore<Machine>::send(const Message& message) {
  if (shared().plan.rank != 0) return PutStatus::stored;  // by the first seat
  if (!message.has(mark_request) && port_size(0) != 0) return emit(0, message);
  if (message.has(mark_handle)) hand_over();
  const SeatRing& outbox = shared().plan.outbox;
  if (outbox.kind == RingKind::bulk) {
    if (out_count_ == seat_batch) flush();
    if (Machine::is_first()) {
      shared().out[out_count_] = message;
      shared().out[out_count_].set_source(static_cast<std::uint16_t>(shared().plan.number));
    }
    ++out_count_;
    ++sent_;
    eager_ = Eager::none;  // the next receive sends it off first
    if (names_reply(message)) {
      // Whether it goes is known when it has gone: otherwise the buffer stays in hand.
      const std::uint64_t counted = sent_;
      flush();
      if (sent_ != counted) return PutStatus::closed;
      reply_went();
    }
    return PutStatus::stored;
  }
  if (!put<false>(outbox, output_, message)) return PutStatus::closed;
  if (names_reply(message)) reply_went();
  ++sent_;
  return PutStatus::stored;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline PutStatus SeatCore<Machine>::emit(std::uint32_t port, const Message& message) {
  if (shared().plan.rank != 0) return PutStatus::stored;  // by the first seat
  const std::uint32_t count = port_size(port);
  if (count == 0) return PutStatus::closed;
  if (message.has(mark_handle)) hand_over();
  const std::uint32_t first = shared().plan.port_start[port];
  if (count == 1) port_at_hand_ = port;
  std::uint32_t stored = 0;
  for (std::uint32_t i = first; i < first + count; ++i) {
    if (put<true>(shared().plan.edges_out[i], edges_out_[i], message)) ++stored;
  }
  emitted_ += stored;
  if (stored != 0 && names_reply(message)) reply_went();
  return stored == count ? PutStatus::stored : PutStatus::closed;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::should_stop() {
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    look_when_due();
    post_verdict(ending() ? Verdict::end : Verdict::room, 0);
  }
  Machine::block_sync();
  return shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::is_wanted(const Message& request) {
  if (!request.has(mark_request)) return true;
  if (shared().plan.rank != 0) {
    Message outcome;
    return receive_broadcast(outcome) == GetStatus::taken;
  }
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    look_when_due();
    const std::uint64_t correlation = request.header.correlation;
    const std::uint64_t word = Machine::load_word(grid_.abandoned + correlation % abandoned_request_count);
    post_verdict(word == correlation ? Verdict::end : Verdict::room, 0);
  }
  Machine::block_sync();
  const bool wanted = shared().verdict[round_] != static_cast<std::uint32_t>(Verdict::end);
  if (shared().plan.team != nullptr) broadcast(wanted ? GetStatus::taken : GetStatus::empty, request);
  return wanted;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void* SeatCore<Machine>::buffer(BufferHandle handle) {
  if (shared().plan.rank != 0) {
    Message outcome;
    std::uint64_t address = 0;
    if (receive_broadcast(outcome) == GetStatus::taken) copy_payload<std::uint64_t>(&address, outcome.payload);
    return reinterpret_cast<void*>(address);
  }
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    const std::uint64_t found = address_of(handle);
    if (Machine::is_first()) shared().address[round_] = found;
  }
  Machine::block_sync();
  const std::uint64_t address = shared().address[round_];
  if (shared().plan.team != nullptr) {
    Message outcome;
    copy_payload<std::uint64_t>(outcome.payload, &address);
    broadcast(GetStatus::taken, outcome);
  }
  return reinterpret_cast<void*>(address);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_reply_buffer() {
  const SeatReplies& replies = shared().plan.replies;
  std::uint32_t passes = 0;
  while (Machine::load_acquire(&replies.writer->position) == reply_position_) {
    if (ending()) {
      post_verdict(Verdict::end, 0);
      return;
    }
    look_around();
    back_off(passes);
  }
  const auto* const words =
      reinterpret_cast<const std::uint64_t*>(replies.slots + (reply_position_ & (replies.capacity - 1)));
  auto* const to = reinterpret_cast<std::uint64_t*>(&shared().reply);
  for (std::uint32_t i = Machine::lane(); i < sizeof(ReplySlot) / 8; i += mailbox_lanes()) {
    to[i] = Machine::load_word(words + i);
  }
  post_verdict(Verdict::room, 0);
}

}  // namespace cingulum::ring
