// The context of an actor on a resident seat: what a body (ring/actor/actor_context.hpp) is given when it runs as a
// block of a persistent kernel. What happens with every message is here and in registers: no function that is called
// takes the address of a context or of a message, and all that the next message needs lies ready. A single warp pays
// for every instruction between a message and its answer. Everything else is the seat's (ring/resident/seat_core.hpp):
// before it is called the registers are kept there, and looked up afterwards.
//
// Bodies return as soon as receive answers false; what they must not lose lies in state<T>().
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

// A read over the bus takes about as long as four of device memory.
constexpr std::uint32_t edge_polls_per_bus_poll = 4;
// Beats that an actor may let pass while one message after the other comes from the host.
constexpr std::uint32_t eager_beats = 2;
// The delay of the first look over the bus after an answer, in quarters of a cycle; see choose_delay(). Where it
// settles, one look in 160 misses; rarer, and bursts of late messages would leave it too long for thousands of others.
constexpr std::uint32_t delay_step = 160;
constexpr std::uint32_t longest_delay = 9600;

template <class Machine>
class SeatContext {
 public:
  CGL_HD explicit SeatContext(SeatCore<Machine>& core) : core_(core) {}

  // Waits for the next message. False: the actor is to end; the body returns at once.
  CGL_HD_GENERIC CGL_HD bool receive(Message& message) {
    if (at_ != staged_) {
      // The rest of a batch.
      last_round_ = in_buffer_;
      last_at_ = at_++;
      ++received_;
      Machine::load_message(message, core_.shared().in[last_round_][last_at_]);
      return true;
    }
    if (left_ != 0 && out_count_ == 0 && take_eagerly()) {
      Machine::load_message(message, core_.shared().in[round_][0]);
      // The reads of the buffer come after the read of the message; for larger blocks the mailbox has seen to it.
      if (Machine::is_one_warp() && message.has(mark_handle)) Machine::acquire_slot(in_ - 1);
      return true;
    }
    keep();
    Message taken;
    const bool got = core_.receive(taken);
    look_up();
    if (got) Machine::copy_message(message, taken);
    return got;
  }
  CGL_HD_GENERIC template <MessagePayload T>
  [[nodiscard]] CGL_HD Received<T> receive() {
    return receive_only<T>(*this);
  }
  CGL_HD_GENERIC CGL_HD GetStatus try_receive(Message& message) {
    keep();
    Message taken;
    const GetStatus status = core_.try_receive(taken);
    look_up();
    if (status == GetStatus::taken) Machine::copy_message(message, taken);
    return status;
  }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD bool peek(Message& message) {
    keep();
    Message seen;
    const bool there = core_.peek(seen);
    look_up();
    if (there) Machine::copy_message(message, seen);
    return there;
  }
  // Each waiting message (at most seat_batch), one per lane, is changed by `answer(Message&)` and sent. The way of
  // streams: no barrier per message. False as in receive.
  CGL_HD_GENERIC template <class Answer>
  CGL_HD bool answer_batch(Answer&& answer) {
    keep();
    const bool goes_on = core_.answer_batch(answer);
    look_up();
    return goes_on;
  }
  // Sends to the requester, to the actors wired to port 0, or to the host's output, in this order.
  CGL_HD_GENERIC CGL_HD PutStatus send(const Message& message) {
    const bool may_name_reply = message.has(mark_handle) && core_.has_reply_;
    if (room_ != 0 && (message.has(mark_request) || !is_wired_) && !may_name_reply) {
      if (message.has(mark_handle)) core_.hand_over();
      if (Machine::in_mailbox()) {
        Machine::template write_fast<false>(out_, out_sequence_, message, &core_.shared().sending, number_);
      }
      ++out_;
      --room_;
      ++sent_;
      return PutStatus::stored;
    }
    if (is_bulk_ && out_count_ < seat_batch && (message.has(mark_request) || !is_wired_) && !may_name_reply) {
      // Sent off with others, at the next receive that waits.
      if (message.has(mark_handle)) core_.hand_over();
      if (Machine::is_first()) {
        Message& place = core_.shared().out[out_count_];
        Machine::copy_message(place, message);
        place.set_source(static_cast<std::uint16_t>(number_));
      }
      ++out_count_;
      ++sent_;
      return PutStatus::stored;
    }
    keep();
    Message copy;
    Machine::copy_message(copy, message);
    const PutStatus status = core_.send(copy);
    look_up();
    return status;
  }
  // Sends to every actor wired to `port`.
  CGL_HD_GENERIC CGL_HD PutStatus emit(std::uint32_t port, const Message& message) {
    if (port == edge_port_ && edge_room_ != 0 && !(message.has(mark_handle) && core_.has_reply_)) {
      if (message.has(mark_handle)) core_.hand_over();
      if (Machine::in_mailbox()) {
        Machine::template write_fast<true>(edge_, edge_sequence_, message, &core_.shared().sending, number_);
      }
      ++edge_;
      --edge_room_;
      ++emitted_;
      return PutStatus::stored;
    }
    keep();
    Message copy;
    Machine::copy_message(copy, message);
    const PutStatus status = core_.emit(port, copy);
    look_up();
    return status;
  }

  // For bodies that work long between two messages: true when they are to end without draining.
  CGL_HD_GENERIC CGL_HD bool should_stop() {
    keep();
    const bool stop = core_.should_stop();
    look_up();
    return stop;
  }
  // Whether somebody still waits for answers to this request.
  CGL_HD_GENERIC [[nodiscard]] CGL_HD bool is_wanted(const Message& request) {
    keep();
    Message copy;
    Machine::copy_message(copy, request);
    const bool wanted = core_.is_wanted(copy);
    look_up();
    return wanted;
  }
  CGL_HD_GENERIC CGL_HD void heartbeat() {
    keep();
    core_.heartbeat();
    look_up();
  }
  // The device's clock; every lane reads its own.
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint64_t time_ns() const { return Machine::own_time_ns(); }

  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t lane() const { return Machine::lane(); }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t lanes() const { return Machine::lanes(); }
  CGL_HD_GENERIC CGL_HD void sync() { Machine::block_sync(); }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint16_t self() const { return core_.self(); }
  // Memory of the actor, shared by its lanes, in device memory. It outlasts parking; a start clears it.
  CGL_HD_GENERIC template <class S>
  [[nodiscard]] CGL_HD S& state() {
    return core_.template state<S>();
  }
  // The bytes behind a handle; null when it is stale. The table lies in mapped memory.
  CGL_HD_GENERIC CGL_HD void* buffer(BufferHandle handle) {
    keep();
    void* const bytes = core_.buffer(handle);
    look_up();
    return bytes;
  }

  CGL_HD_GENERIC [[nodiscard]] CGL_HD ReplySpace reply_buffer() {
    keep();
    const ReplySpace space = core_.reply_buffer();
    look_up();
    return space;
  }
  // The block's own memory; null when the body asked for less than an S.
  CGL_HD_GENERIC template <class S>
  [[nodiscard]] CGL_HD S* block_memory() {
    return core_.template block_memory<S>();
  }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t seat() const { return core_.seat(); }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint32_t seats() const { return core_.seats(); }
  CGL_HD_GENERIC [[nodiscard]] CGL_HD bool sync_seats() {
    keep();
    const bool all_arrived = core_.sync_seats();
    look_up();
    return all_arrived;
  }

  CGL_HD_GENERIC [[nodiscard]] CGL_HD std::uint64_t read_shared(const std::uint64_t& word) const {
    return Machine::load_shared(&word);
  }
  CGL_HD_GENERIC CGL_HD void write_shared(std::uint64_t& word, std::uint64_t value) {
    Machine::store_shared(&word, value);
  }
  CGL_HD_GENERIC CGL_HD void back_off() { Machine::back_off(); }

  // ---- for run_seat: before the body runs, and when it has returned ----

  CGL_HD_GENERIC CGL_HD void look_up() {
    round_ = core_.round_;
    in_buffer_ = core_.in_buffer_;
    at_ = core_.in_at_;
    staged_ = core_.in_count_;
    out_count_ = core_.out_count_;
    eager_ = core_.eager_;
    left_ = eager_ == Eager::none ? 0 : core_.eager_left_;
    const SeatInput& input = eager_ == Eager::edge ? core_.edges_in_[0] : core_.input_;
    in_ = input.next;
    in_sequence_ = input.sequence;
    busy_since_ = core_.busy_since_;
    deadline_ = eager_ == Eager::edge ? busy_since_ + Machine::cycles_per_beat / looks_per_beat
                                      : core_.beat_cycles_ + eager_beats * Machine::cycles_per_beat;
    out_ = core_.output_.next;
    out_sequence_ = core_.output_.sequence;
    room_ = core_.output_.room;
    edge_port_ = core_.port_at_hand_;
    edge_room_ = 0;
    if (edge_port_ != no_port) {
      const SeatOutput& edge = core_.edges_out_[core_.shared().plan.port_start[edge_port_]];
      edge_ = edge.next;
      edge_sequence_ = edge.sequence;
      edge_room_ = edge.room;
    }
    number_ = core_.shared().plan.number;
    is_wired_ = core_.port_size(0) != 0;
    is_bulk_ = core_.shared().plan.outbox.kind == RingKind::bulk;
  }
  CGL_HD_GENERIC CGL_HD void keep() {
    core_.round_ = round_;
    core_.in_at_ = at_;
    core_.out_count_ = out_count_;
    if (eager_ != Eager::none) {
      core_.eager_left_ = left_;
      SeatInput& input = eager_ == Eager::edge ? core_.edges_in_[0] : core_.input_;
      input.next = in_;
      input.left = left_;
    }
    core_.output_.next = out_;
    core_.output_.room = room_;
    if (edge_port_ != no_port) {
      SeatOutput& edge = core_.edges_out_[core_.shared().plan.port_start[edge_port_]];
      edge.next = edge_;
      edge.room = edge_room_;
    }
    core_.busy_since_ = busy_since_;
    core_.busy_cycles_ += busy_cycles_;
    core_.sent_ += sent_;
    core_.emitted_ += emitted_;
    if (received_ != 0) {
      core_.received_ += received_;
      core_.has_message_ = true;
      // The first lane alone reads it; another might read while the mailbox writes the next message there.
      if (Machine::is_first()) {
        const Message& last = core_.shared().in[last_round_][last_at_];
        core_.working_on_ = last.has(mark_request) ? last.header.correlation : 0;
      }
    }
    busy_cycles_ = 0;
    received_ = sent_ = emitted_ = 0;
    answered_ = 0;
  }

 private:
  // One message of the ring that spoke last, when it comes soon: it lies in in[round_][0].
  CGL_HD_GENERIC CGL_HD bool take_eagerly() {
    const std::uint64_t asked = Machine::own_cycles();
    round_ ^= 1u;
    std::uint32_t found = 0;
    if (Machine::in_mailbox()) {
      // The ordinary way, which beats for the host and watches the host's beat, is gone now and then.
      if (core_.eager_allowed_ && !Machine::any(asked > deadline_)) {
        found = eager_ == Eager::edge ? poll_edge() : poll_inbox();
      }
      if (!Machine::is_one_warp()) {
        if (Machine::is_first()) {
          core_.shared().verdict[round_] = static_cast<std::uint32_t>(found != 0 ? Verdict::message : Verdict::nothing);
        }
        if (found != 0 && core_.shared().in[round_][0].has(mark_handle)) Machine::acquire_slot(in_);
      }
    }
    if (!Machine::is_one_warp()) {
      Machine::block_sync();
      found = core_.shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::message) ? 1 : 0;
    }
    busy_cycles_ += asked - busy_since_;
    busy_since_ = Machine::own_cycles();
    if (found == 0) {
      if (Machine::in_mailbox()) core_.passes_since_look_ = 0;  // the ordinary way begins with a look
      return false;
    }
    ++in_;
    --left_;
    ++received_;
    last_round_ = round_;
    last_at_ = 0;
    return true;
  }
  CGL_HD_GENERIC CGL_HD std::uint32_t poll_edge() {
    return Machine::template poll_fast<true>(in_, in_sequence_, &core_.shared().in[round_][0], core_.grid_.eager_polls,
                                             0, nullptr, 0);
  }
  // Over the bus the host's command is watched as well.
  CGL_HD_GENERIC CGL_HD std::uint32_t poll_inbox() {
    const bool after_answer = sent_ != answered_;
    answered_ = sent_;
    const std::uint32_t found = Machine::template poll_fast<false>(
        in_, in_sequence_, &core_.shared().in[round_][0], core_.grid_.eager_polls / edge_polls_per_bus_poll,
        after_answer ? first_look_delay_ / 4 : 0, &core_.seat_->host.command, core_.command_);
    if (after_answer) choose_delay(found);
    return found;
  }
  // A look over the bus takes about as long as an answer and what follows from it: the one that begins with the answer
  // comes a little too early, and the next one late. It is put off until the next message can be there: longer by a
  // large step when the first look missed it, shorter by a small one when it did not. It is kept below the time of a
  // look or so, and never given up at once: to find it again costs a late look for each step.
  CGL_HD_GENERIC CGL_HD void choose_delay(std::uint32_t found) {
    if (found == 1) {
      if (first_look_delay_ != 0) --first_look_delay_;
    } else if (found == 2) {
      first_look_delay_ =
          first_look_delay_ + delay_step < longest_delay ? first_look_delay_ + delay_step : longest_delay;
    }
  }

  SeatCore<Machine>& core_;

  // These belong to the ring of the last message; in lanes outside the mailbox only left_ means something.
  const FastSlot<Message>* in_ = nullptr;
  std::uint32_t in_sequence_ = 0;
  std::uint32_t left_ = 0;
  Eager eager_ = Eager::none;
  std::uint32_t round_ = 0;
  std::uint32_t last_round_ = 0;  // of the message that was taken here: in[last_round_][last_at_]
  std::uint32_t last_at_ = 0;
  std::uint64_t deadline_ = 0;  // cycles: the ordinary way is due
  // The messages of a batch are in[in_buffer_][at_] up to staged_.
  std::uint32_t in_buffer_ = 0;
  std::uint32_t at_ = 0;
  std::uint32_t staged_ = 0;
  std::uint32_t out_count_ = 0;  // for a bulk outbox, not sent off yet
  // These belong to the outbox; room_ is 0 where the seat looks for room, or does not write there at once.
  FastSlot<Message>* out_ = nullptr;
  std::uint32_t out_sequence_ = 0;
  std::uint32_t room_ = 0;
  // These belong to the port that was written last.
  FastSlot<Message>* edge_ = nullptr;
  std::uint32_t edge_sequence_ = 0;
  std::uint32_t edge_room_ = 0;
  std::uint32_t edge_port_ = no_port;
  std::uint32_t number_ = 0;
  bool is_wired_ = false;  // port 0 is
  bool is_bulk_ = false;   // the outbox is
  // Counts since keep() added them to the seat's.
  std::uint32_t received_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t emitted_ = 0;
  std::uint64_t busy_cycles_ = 0;
  std::uint64_t busy_since_ = 0;
  std::uint32_t answered_ = 0;  // of sent_, when the inbox was looked at last
  std::uint32_t first_look_delay_ = 0;
};

}  // namespace cingulum::ring
