// The life of a seat (ring/resident/seat_core.hpp) between two bodies: it waits for an actor, takes up its plan and its
// rings where their lines say, tells how a body ended, waits for what is next, and in event mode votes for the grid to
// leave the device. ring/resident/seat_loop.hpp calls it. It runs no body.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Verdict SeatCore<Machine>::wait_for_actor() {
  for (;;) {
    Verdict next = wait_for_plan();
    // The first seat says when the others begin.
    if (next != Verdict::leave && shared().plan.rank != 0) next = wait_for_start();
    if (next != Verdict::vacate) return next;
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Verdict SeatCore<Machine>::wait_for_plan() {
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    std::uint32_t passes = 0;
    bool voted = false;
    std::uint64_t idle_since = 0;
    enter(SeatState::vacant);
    for (;;) {
      look();
      const SeatCommand command = command_of(command_);
      if (leave_ != LeaveReason::none || parking_) {
        post_verdict(Verdict::leave, 0);
        break;
      }
      // Any other command comes to a seat that is occupied, if only since before it was parked.
      const bool seated = command != SeatCommand::vacate && command != SeatCommand::leave;
      if (seated && (!voted || withdraw_vote(voted))) {
        post_verdict(Verdict::occupy, 0);
        break;
      }
      back_off(passes, vacant_nap_ns);
      if (grid_.park_after_ns != 0) consider_parking(passes, idle_since, voted);
    }
  }
  Machine::block_sync();
  const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
  if (verdict == Verdict::leave) return verdict;
  Machine::copy_words(&shared().plan, &seat_->plan, sizeof(SeatPlan));
  Machine::block_sync();
  seat_actor();
  return verdict;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Verdict SeatCore<Machine>::body_returned(int code) {
  flush();
  if (shared().plan.team != nullptr) {
    code = leave_team(code);
    if (shared().plan.rank != 0) return wait_for_start();
  }
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    store_positions();
    SeatDeviceLine& line = seat_->device;
    Machine::store_relaxed(&line.failure, static_cast<std::uint64_t>(static_cast<std::int64_t>(code)));
    Machine::store_relaxed(&line.working_on, working_on_);
    Machine::store_relaxed(&line.had_message, has_message_ ? 1 : 0);
    Machine::store_relaxed(&line.overtaken, overtaken_);
    const bool draining = command_of(command_) == SeatCommand::drain;
    Machine::store_relaxed(&line.drained, draining ? received_ - drain_from_ : 0);
    // A body that was made to leave may return anything; the reason of leaving counts.
    const bool failed = code != 0 && leave_ == LeaveReason::none && !parking_;
    if (failed) Machine::store_relaxed(&line.failures, ++failures_);
    state_ = parking_ ? SeatState::parked : failed ? SeatState::failed : SeatState::ended;
    count_now();
    enter(state_);
    post_verdict(parking_ ? Verdict::leave : next_after_body(failed), 0);
  }
  Machine::block_sync();
  const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
  if (verdict == Verdict::restart) {
    Machine::clear_bytes(shared().plan.state, shared().plan.state_bytes);
    Machine::block_sync();
    has_message_ = false;
    working_on_ = 0;
    if (Machine::in_mailbox()) {
      ++starts_;
      enter(is_hold(command_of(command_)) ? SeatState::held : SeatState::running);
    }
    start_team();
  }
  return verdict;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::seat_actor() {
  if (shared().plan.fresh != 0 && shared().plan.rank == 0) {
    Machine::clear_bytes(shared().plan.state, shared().plan.state_bytes);
  }
  has_reply_ = false;
  team_start_ = 0;
  in_at_ = in_count_ = out_count_ = 0;
  has_message_ = false;
  eager_ = Eager::none;
  port_at_hand_ = no_port;
  working_on_ = 0;
  received_ = sent_ = emitted_ = refused_ = 0;
  if (Machine::in_mailbox()) {
    const SeatPlan& plan = shared().plan;
    find_input(plan.inbox, input_);
    find_output(plan.outbox, 0);
    if (plan.replies.capacity != 0) reply_position_ = Machine::load_acquire(&plan.replies.reader->position);
    for (std::uint32_t i = 0; i < plan.edges_in_count; ++i) find_input(plan.edges_in[i], edges_in_[i]);
    for (std::uint32_t i = 0; i < plan.edges_out_count; ++i) find_output(plan.edges_out[i], 1 + i);
    busy_ns_ = 0;
    busy_cycles_ = 0;
    starts_ = 1;
    failures_ = Machine::load_acquire(&seat_->device.failures);
    restarted_by_ = command_;  // a command from before parking has been applied
    overtaken_ = plan.fresh != 0 ? 0 : Machine::load_acquire(&seat_->device.overtaken);
    from_edge_ = false;
    drain_from_ = 0;
    if (plan.fresh == 0) {
      // After parking the counts go on.
      received_ = Machine::load_acquire(&seat_->counters.received);
      sent_ = Machine::load_acquire(&seat_->counters.sent);
      emitted_ = Machine::load_acquire(&seat_->counters.emitted);
      refused_ = Machine::load_acquire(&seat_->counters.refused);
      busy_ns_ = Machine::load_acquire(&seat_->counters.busy_ns);
      drain_from_ = received_;
      starts_ = Machine::load_acquire(&seat_->counters.started);
    }
    count_now();
    enter(is_hold(command_of(command_)) ? SeatState::held : SeatState::running);
  }
  Machine::block_sync();
  output_.start(shared().outputs[0].position, shared().outputs[0].credit);
  for (std::uint32_t i = 0; i < shared().plan.edges_out_count; ++i) {
    edges_out_[i].start(shared().outputs[1 + i].position, shared().outputs[1 + i].credit);
  }
  if (shared().plan.rank == 0) start_team();
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::find_input(const SeatRing& ring, SeatInput& input) {
  if (ring.kind == RingKind::none) return;
  input.published = Machine::load_acquire(&ring.reader->position);
  input.move_to(ring, input.published);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::find_output(const SeatRing& ring, std::uint32_t index) {
  if (ring.kind == RingKind::none) return;
  const std::uint64_t position = Machine::load_acquire(&ring.writer->position);
  const std::uint64_t credit = Machine::load_acquire(&ring.reader->position);
  if (Machine::is_first()) shared().outputs[index] = {position, credit};
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::consider_parking(std::uint32_t passes, std::uint64_t& idle_since, bool& voted) {
  if (passes % passes_per_look != 0) return;
  const std::uint64_t now = Machine::time_ns();
  if (idle_since == 0) idle_since = now;
  if (now - idle_since < grid_.park_after_ns && !voted) return;
  vote_to_park(voted);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::vote_to_park(bool& voted) {
  for (;;) {
    const std::uint64_t votes = Machine::load_acquire(grid_.votes);
    if (votes == votes_closed) {
      parking_ = true;
      return;
    }
    if (voted) return;
    const std::uint64_t next = votes + 1 == grid_.seat_count ? votes_closed : votes + 1;
    if (Machine::compare_exchange(grid_.votes, votes, next)) voted = true;
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::withdraw_vote(bool& voted) {
  for (;;) {
    const std::uint64_t votes = Machine::load_acquire(grid_.votes);
    if (votes == votes_closed) {
      parking_ = true;
      return false;
    }
    if (Machine::compare_exchange(grid_.votes, votes, votes - 1)) {
      voted = false;
      return true;
    }
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Verdict SeatCore<Machine>::next_after_body(bool failed) {
  std::uint32_t passes = 0;
  for (;;) {
    look();
    if (leave_ != LeaveReason::none) return Verdict::leave;
    const SeatCommand command = command_of(command_);
    if (command == SeatCommand::vacate) return Verdict::vacate;
    const bool restarts = command == SeatCommand::restart || command == SeatCommand::restart_held;
    if (failed && restarts && command_ != restarted_by_) {  // each command restarts once
      restarted_by_ = command_;
      return Verdict::restart;
    }
    back_off(passes);
  }
}

}  // namespace cingulum::ring
