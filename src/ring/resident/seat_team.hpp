// Several seats of one actor (ring/resident/seat_core.hpp): the first starts the others and broadcasts the outcome of
// each call to them; all meet in sync_seats and when a body has returned. Words of the Team in device memory, each with
// one writer, say how far each seat is.
#pragma once

#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::start_team() {
  Team* const team = shared().plan.team;
  if (team == nullptr) return;
  Machine::block_sync();  // the state is cleared
  broadcast_count_ = barriers_ = 0;
  ++team_start_;
  if (Machine::in_mailbox()) Machine::store_release_on_device(&team->lines[0].starts, team_start_);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline Verdict SeatCore<Machine>::wait_for_start() {
  round_ ^= 1u;
  if (Machine::in_mailbox()) {
    const std::uint64_t* const starts = &shared().plan.team->lines[0].starts;
    std::uint32_t passes = 0;
    for (;;) {
      look();
      if (leave_ != LeaveReason::none) {
        post_verdict(Verdict::leave, 0);
        break;
      }
      if (command_of(command_) == SeatCommand::vacate) {
        post_verdict(Verdict::vacate, 0);
        break;
      }
      if (Machine::load_acquire(starts) > team_start_) {
        post_verdict(Verdict::restart, 0);
        break;
      }
      back_off(passes);
    }
  }
  Machine::block_sync();
  const auto verdict = static_cast<Verdict>(shared().verdict[round_]);
  if (verdict == Verdict::restart) {
    ++team_start_;
    broadcast_count_ = barriers_ = 0;
  }
  return verdict;
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::broadcast(GetStatus status, const Message& message) {
  ++broadcast_count_;
  if (!Machine::in_mailbox()) return;
  Team* const team = shared().plan.team;
  if (broadcast_count_ > 2) {
    // The place of this outcome held the one of two calls ago.
    const std::uint64_t read = team_word(team_start_, broadcast_count_ - 2);
    std::uint32_t passes = 0;
    while (!all_reached(&TeamLine::taken, read, 1) && !one_has_left() && !ending()) {
      look_around();
      back_off(passes);
    }
  }
  TeamBroadcast& outcome = team->broadcasts[broadcast_count_ & 1u];
  std::uint64_t words[8];
  memcpy(words, &message, sizeof words);
  Machine::store_relaxed(&outcome.status, static_cast<std::uint64_t>(status));
  for (std::uint32_t i = 0; i < 8; ++i) Machine::store_relaxed(&outcome.message[i], words[i]);
  Machine::store_release_on_device(&team->lines[0].broadcast_count, team_word(team_start_, broadcast_count_));
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline GetStatus SeatCore<Machine>::receive_broadcast(Message& message) {
  has_message_ = false;
  round_ ^= 1u;
  ++broadcast_count_;
  if (Machine::in_mailbox()) wait_for_broadcast();
  Machine::block_sync();
  if (shared().verdict[round_] == static_cast<std::uint32_t>(Verdict::end)) return GetStatus::closed;
  Machine::load_message(message, shared().in[round_][0]);
  return static_cast<GetStatus>(shared().count[round_]);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline int SeatCore<Machine>::leave_team(int code) {
  Team* const team = shared().plan.team;
  if (Machine::in_mailbox()) {
    TeamLine& line = team->lines[shared().plan.rank];
    Machine::store_relaxed(&line.code, static_cast<std::uint64_t>(static_cast<std::int64_t>(code)));
    Machine::store_release_on_device(&line.left, team_start_);
  }
  if (shared().plan.rank != 0) return code;
  if (Machine::in_mailbox()) {
    std::uint32_t passes = 0;
    while (leave_ == LeaveReason::none && !all_reached(&TeamLine::left, team_start_)) {
      look_around();
      back_off(passes);
    }
    std::uint64_t outcome = static_cast<std::uint64_t>(static_cast<std::int64_t>(code));
    for (std::uint32_t i = 1; i < shared().plan.seats && outcome == 0; ++i) {
      outcome = Machine::load_acquire(&team->lines[i].code);
    }
    if (Machine::is_first()) shared().batch_position = outcome;
  }
  Machine::block_sync();
  return static_cast<int>(static_cast<std::int64_t>(shared().batch_position));
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::all_reached(std::uint64_t TeamLine::*word, std::uint64_t value,
                                                  std::uint32_t from) {
  const Team* const team = shared().plan.team;
  bool waits = false;
  for (std::uint32_t i = from + Machine::lane(); i < shared().plan.seats; i += mailbox_lanes()) {
    waits = Machine::load_shared(&(team->lines[i].*word)) < value || waits;
  }
  return !Machine::any(waits);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline bool SeatCore<Machine>::one_has_left() {
  const Team* const team = shared().plan.team;
  bool found = false;
  for (std::uint32_t i = Machine::lane(); i < shared().plan.seats; i += mailbox_lanes()) {
    found = Machine::load_shared(&team->lines[i].left) == team_start_ || found;
  }
  return Machine::any(found);
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_all_seats() {
  Team* const team = shared().plan.team;
  if (team == nullptr) {
    look_when_due();
    post_verdict(ending() ? Verdict::end : Verdict::room, 0);
    return;
  }
  const std::uint64_t arrived = team_word(team_start_, barriers_);
  Machine::store_release_on_device(&team->lines[shared().plan.rank].arrived, arrived);
  std::uint32_t passes = 0;
  for (;;) {
    if (all_reached(&TeamLine::arrived, arrived)) {
      post_verdict(Verdict::room, 0);
      return;
    }
    if (ending() || one_has_left()) {
      post_verdict(Verdict::end, 0);
      return;
    }
    look_around();
    back_off(passes);
  }
}

CGL_HD_GENERIC template <class Machine>
CGL_HD inline void SeatCore<Machine>::wait_for_broadcast() {
  Team* const team = shared().plan.team;
  const std::uint64_t wanted = team_word(team_start_, broadcast_count_);
  std::uint32_t passes = 0;
  while (Machine::load_acquire(&team->lines[0].broadcast_count) < wanted) {
    // What the first seat broadcast before it left still counts.
    if (ending() || (Machine::load_acquire(&team->lines[0].left) == team_start_ &&
                     Machine::load_acquire(&team->lines[0].broadcast_count) < wanted)) {
      post_verdict(Verdict::end, 0);
      return;
    }
    look_around();
    back_off(passes);
  }
  const TeamBroadcast& outcome = team->broadcasts[broadcast_count_ & 1u];
  auto* const words = reinterpret_cast<std::uint64_t*>(&shared().in[round_][0]);
  for (std::uint32_t i = Machine::lane(); i < 8; i += mailbox_lanes())
    words[i] = Machine::load_word(&outcome.message[i]);
  post_verdict(Verdict::message, static_cast<std::uint32_t>(Machine::load_acquire(&outcome.status)));
  Machine::store_release_on_device(&team->lines[shared().plan.rank].taken, wanted);
}

}  // namespace cingulum::ring
