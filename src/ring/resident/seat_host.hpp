// A seat and its host (ring/resident/seat_core.hpp): the mailbox applies commands, watches whether the host lives,
// beats, publishes the counters and naps while there is nothing to do. Every loop of a seat that waits calls it.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::apply_host_words(const typename Machine::HostWords& words) {
  const std::uint64_t now = Machine::time_ns();
  if (words.beat != host_beat_) {
    host_beat_ = words.beat;
    host_seen_ns_ = now;
  } else if (now - host_seen_ns_ > grid_.lease_ns && leave_ == LeaveReason::none) {
    leave_ = LeaveReason::host_silent;
  }
  if (grid_.time_limit_ns != 0 && now - started_ns_ > grid_.time_limit_ns && leave_ == LeaveReason::none) {
    leave_ = LeaveReason::time_limit;
  }
  if (leave_ != LeaveReason::none) eager_allowed_ = false;
  if (words.command != command_) {
    command_ = words.command;
    eager_allowed_ = false;
    // What the host did before it gave the command is seen after it: the words may have been read without order. (A
    // fence, here and in stores, waits for all that is under way over the bus: several times as long as a read.)
    static_cast<void>(Machine::load_acquire(&seat_->host.command));
    const SeatCommand command = command_of(command_);
    if (command == SeatCommand::leave && leave_ == LeaveReason::none) leave_ = LeaveReason::commanded;
    if (command == SeatCommand::drain) drain_from_ = received_;
    if (state_ == SeatState::running || state_ == SeatState::held) {
      store_positions();
      // While messages lie staged the body is not at its gate yet: it gets those first.
      if (is_hold(command) && in_at_ == in_count_) state_ = SeatState::held;
      if (command == SeatCommand::run || command == SeatCommand::drain) state_ = SeatState::running;
      Machine::store_relaxed(&seat_->device.state, static_cast<std::uint64_t>(state_));
    }
    // One release publishes positions, state and this together.
    Machine::store_release(&seat_->device.acknowledged, command_);
  }
  beat(now);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::back_off(std::uint32_t& passes, std::uint32_t longest_ns) {
  ++passes;
  if (passes <= grid_.spin_polls) return;
  const std::uint32_t doublings = (passes - grid_.spin_polls) / 8;
  std::uint32_t nap = doublings > 15 ? longest_ns : shortest_nap_ns << doublings;
  if (nap > longest_ns) nap = longest_ns;
  if (nap != 0) Machine::nap(nap);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::beat(std::uint64_t now) {
  const std::uint64_t cycles = Machine::cycles();
  looked_cycles_ = cycles;
  if (cycles - beat_cycles_ < Machine::cycles_per_beat) return;
  // Busy time is counted in cycles and published in nanoseconds.
  busy_ns_ += busy_cycles_ * (now - beat_ns_) / (cycles - beat_cycles_);
  busy_cycles_ = 0;
  beat_cycles_ = cycles;
  beat_ns_ = now;
  if (state_ != SeatState::vacant) count_now();
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::count_now() {
  ActorCounters& line = seat_->counters;
  Machine::store_relaxed(&line.received, received_);
  Machine::store_relaxed(&line.sent, sent_);
  Machine::store_relaxed(&line.emitted, emitted_);
  Machine::store_relaxed(&line.refused, refused_);
  Machine::store_relaxed(&line.busy_ns, busy_ns_);
  Machine::store_relaxed(&line.started, starts_);
  // An idle seat beats as well, so a beat that stands still is a stall whatever the actor was doing.
  // 0 while the seat waits for input: the host sees by it that nothing goes round (ResidentActor::do_idleness).
  Machine::store_relaxed(&line.in_body, busy_since_ != 0 ? 1 : 0);
  Machine::store_relaxed(&line.heartbeat, ++beats_);
}

}  // namespace cingulum::ring
