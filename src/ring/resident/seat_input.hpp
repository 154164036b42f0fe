// How messages come into a seat (ring/resident/seat_core.hpp): the mailbox waits for the inbox and the edges together,
// stages what it finds in the block's shared memory, looks ahead for peek, and gives credit to the writers.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
CGL_HD inline GetStatus SeatCore<Machine>::take(Message& message, bool wait) {
  if (shared().plan.rank != 0) return receive_broadcast(message);
  const GetStatus status = stage_input(wait);
  if (status == GetStatus::taken) hand_out(message, shared().in[in_buffer_][in_at_++]);
  if (shared().plan.team != nullptr) broadcast(status, message);
  return status;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::look_ahead() {
  const SeatPlan& plan = shared().plan;
  look_when_due();
  if (gated()) return false;
  for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
    if (!take_fast<true>(plan.edges_in[i], edges_in_[i], false)) continue;
    edges_in_[i].step_back();
    acquire_peeked(edges_in_[i]);
    return true;
  }
  if (plan.inbox.kind == RingKind::fast && take_fast<false>(plan.inbox, input_, false)) {
    input_.step_back();
    acquire_peeked(input_);
    return true;
  }
  const std::uint64_t position = input_.position();
  const bool is_there =
      plan.inbox.kind == RingKind::bulk && Machine::load_acquire(&plan.inbox.writer->position) != position;
  if (!is_there) {
    // A writer that waits for room would else never send what is looked for.
    publish_taken();
    return false;
  }
  const auto* const words = reinterpret_cast<const std::uint64_t*>(static_cast<const Message*>(plan.inbox.slots) +
                                                                   (position & (plan.inbox.capacity - 1)));
  auto* const to = reinterpret_cast<std::uint64_t*>(&shared().in[round_][0]);
  for (std::uint32_t i = Machine::lane(); i < 8; i += mailbox_lanes()) to[i] = Machine::load_word(words + i);
  return true;
}

CGL_HD_GENERIC template <class Machine>
template <bool on_device>
CGL_HD inline void SeatCore<Machine>::publish(const SeatRing& ring, SeatInput& input, std::uint64_t position) {
  if (input.published == position) return;
  input.published = position;
  if constexpr (on_device) {
    Machine::store_release_on_device(&ring.reader->position, position);
  } else {
    Machine::store_release(&ring.reader->position, position);
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::store_positions() {
  publish_taken();
  const SeatPlan& plan = shared().plan;
  if (plan.outbox.kind == RingKind::fast) Machine::store_relaxed(&plan.outbox.writer->position, output_.position());
  if (plan.replies.capacity != 0) Machine::store_relaxed(&plan.replies.reader->position, reply_position_);
  for (std::uint32_t i = 0; i < plan.edges_out_count; ++i) {
    Machine::store_relaxed(&plan.edges_out[i].writer->position, edges_out_[i].position());
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::publish_taken() {
  const SeatPlan& plan = shared().plan;
  const std::uint32_t staged = in_count_ - in_at_;
  if (plan.inbox.kind != RingKind::none) {
    publish(plan.inbox, input_, input_.position() - (staged_from_edge_ < 0 ? staged : 0));
  }
  for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
    const bool holds_it = staged_from_edge_ == static_cast<std::int32_t>(i);
    publish<true>(plan.edges_in[i], edges_in_[i], edges_in_[i].position() - (holds_it ? staged : 0));
  }
}

CGL_HD_GENERIC template <class Machine>
template <bool on_device>
CGL_HD inline void SeatCore<Machine>::begin_run(const SeatRing& ring, SeatInput& input) {
  if (input.end - input.published >= credit_interval(ring)) publish<on_device>(ring, input, input.end);
  input.move_to(ring, input.end);
}

CGL_HD_GENERIC template <class Machine>
template <bool on_device>
CGL_HD inline bool SeatCore<Machine>::take_fast(const SeatRing& ring, SeatInput& input, bool with_look) {
  typename Machine::HostWords words = {};
  for (;;) {
    if (input.left == 0) begin_run<on_device>(ring, input);
    const std::int32_t ahead = Machine::template read_fast<on_device>(
        input.next, input.sequence, &shared().in[round_][0], with_look ? &seat_->host : nullptr, &words);
    if (with_look) apply_host_words(words);
    with_look = false;
    if (ahead > 0) {
      // The writer drops the oldest and has overtaken us.
      const std::uint64_t lost = lost_when_lapped(ahead, ring.capacity);
      input.move_to(ring, input.position() + lost);
      if constexpr (!on_device) overtaken_ += lost;
      continue;
    }
    if (ahead < 0 || gated()) return false;
    input.advance();
    return true;
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Eager SeatCore<Machine>::eager_about(const SeatRing& ring, Eager from) {
  const std::uint32_t edges = shared().plan.edges_in_count;
  const bool alone = (from == Eager::edge ? edges == 1 : edges == 0) && shared().plan.team == nullptr;
  const SeatCommand command = command_of(command_);
  eager_allowed_ = alone && grid_.eager_polls != 0 && ring.capacity >= smallest_eager_capacity &&
                   (command == SeatCommand::run || command == SeatCommand::restart) && !ending();
  return eager_allowed_ ? from : Eager::none;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_input(bool wait) {
  const SeatPlan& plan = shared().plan;
  std::uint32_t passes = 0;
  bool voted = false;
  bool looked_draining = false;
  std::uint64_t idle_since = 0;
  for (;;) {
    // An idle seat looks every time, so that a command is applied at once.
    const std::uint32_t interval = from_edge_ ? passes_per_look_at_edges : passes_per_look;
    const bool with_look = passes_since_look_++ % interval == 0 || passes > grid_.spin_polls;
    bool looked = false;
    // A stream that never pauses must not keep the host's orders waiting, nor the sign that we live.
    if (Machine::cycles() - looked_cycles_ > Machine::cycles_per_beat / looks_per_beat) {
      look();
      looked = true;
    }
    if (!gated()) {
      for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) {
        if (take_fast<true>(plan.edges_in[i], edges_in_[i], false)) {
          if (!claim(edges_in_[i], voted)) break;
          from_edge_ = true;
          staged_from_edge_ = static_cast<std::int32_t>(i);
          post_verdict(Verdict::message, 1, eager_about(plan.edges_in[i], Eager::edge), edges_in_[i].left);
          return;
        }
      }
      // An actor with messages from neighbours looks over the bus less often: that read takes longer than theirs.
      const bool look_at_inbox = !from_edge_ || with_look || command_of(command_) == SeatCommand::drain;
      if (plan.inbox.kind == RingKind::fast && look_at_inbox) {
        const bool looks = with_look && !looked;
        looked = looked || looks;
        if (take_fast<false>(plan.inbox, input_, looks) && claim(input_, voted)) {
          from_edge_ = false;
          staged_from_edge_ = -1;
          post_verdict(Verdict::message, 1, eager_about(plan.inbox, Eager::inbox), input_.left);
          return;
        }
      } else if (plan.inbox.kind == RingKind::bulk && look_at_inbox) {
        const std::uint64_t ready = Machine::load_acquire(&plan.inbox.writer->position) - input_.position();
        if (ready != 0 && !gated() && (!voted || withdraw_vote(voted))) {
          from_edge_ = false;
          staged_from_edge_ = -1;
          post_verdict(Verdict::batch, static_cast<std::uint32_t>(ready < seat_batch ? ready : seat_batch));
          return;
        }
      }
    }
    if (with_look && !looked) look();
    if (is_hold(command_of(command_)) && state_ == SeatState::running) enter(SeatState::held);
    if (ending() || (plan.team != nullptr && one_has_left())) {
      if (voted) withdraw_vote(voted);
      post_verdict(Verdict::end, 0);
      return;
    }
    if (command_of(command_) == SeatCommand::drain) {
      // Everything was published before the command: a whole pass after it that finds nothing is the end.
      if (looked_draining) {
        if (voted) withdraw_vote(voted);
        post_verdict(Verdict::end, 0);
        return;
      }
      looked_draining = true;
      continue;
    }
    if (!wait) {
      // What was handed out of a bulk inbox is published with the next batch, which a writer without room never
      // sends.
      if (plan.inbox.kind == RingKind::bulk) publish_taken();
      post_verdict(ending() ? Verdict::end : Verdict::nothing, 0);
      return;
    }
    // Writers that wait for room see all of it. Not at once: a release waits for everything that is under way over
    // the bus, and the next message may be there sooner. Small rings fill while one message is answered.
    if (passes == (plan.inbox.capacity < 16 ? 0u : idle_passes_before_credit)) publish_taken();
    back_off(passes);
    if (grid_.park_after_ns != 0) consider_parking(passes, idle_since, voted);
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline GetStatus SeatCore<Machine>::refill(bool wait) {
  has_message_ = false;
  working_on_ = 0;
  flush();
  if (Machine::in_mailbox()) {
    const std::uint64_t now = Machine::cycles();
    if (busy_since_ != 0) busy_cycles_ += now - busy_since_;
    busy_since_ = 0;
  }
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    // A small bulk inbox was handed out as a whole: its writer waits for room, and would do so until we nap.
    const SeatRing& inbox = shared().plan.inbox;
    if (inbox.kind == RingKind::bulk && 2 * (input_.end - input_.published) >= inbox.capacity) {
      publish(inbox, input_, input_.end);
    }
    wait_for_input(wait);
    const bool has_posted = Machine::is_first();  // and may read it without a barrier
    if (Machine::any(has_posted && shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::message))) {
      take_over();
    }
  }
  Machine::block_sync();
  const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
  // Without a message nothing is at the context's hand: the wait may have gone on to another run of the ring.
  eager_ = Eager::none;
  if (verdict == Verdict::end) return GetStatus::closed;
  if (verdict == Verdict::nothing) return GetStatus::empty;
  if (verdict == Verdict::message) eager_ = static_cast<Eager>(shared().eager[round_]);
  eager_left_ = shared().left[round_];
  in_buffer_ = round_;
  in_at_ = 0;
  in_count_ = shared().count[round_];
  if (verdict == Verdict::batch) {
    const SeatRing& inbox = shared().plan.inbox;
    Machine::copy_in(shared().in[in_buffer_], static_cast<const Message*>(inbox.slots), staged_position(), in_count_,
                     inbox.capacity);
    Machine::block_sync();
  }
  if (Machine::in_mailbox()) {
    if (verdict == Verdict::batch) {
      // The slots of the batch before this one were handed out; those of this one are copied but still counted as
      // waiting, so that nothing is lost when the actor ends in between.
      const SeatRing& inbox = shared().plan.inbox;
      if (input_.end - input_.published >= credit_interval(inbox)) publish(inbox, input_, input_.end);
      input_.end += in_count_;
    }
    busy_since_ = Machine::cycles();
  }
  return GetStatus::taken;
}

}  // namespace cingulum::ring
