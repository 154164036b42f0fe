// A barrier for actors that work on one buffer, between two steps and without the host: each stores the round that it
// has finished in a line of its own. The first reads the lines of the others and stores in its own when all have
// come; the others read that one word. (Were all to look at all, those that have finished would take the memory's
// time from those that have not.) Every word has one writer. All of them must run at the same time: seats of one grid
// do, and so do threads. Bodies of the workloads use it.
#pragma once

#include <cstdint>

#include "ring/queue/ring_types.hpp"
#include "ring/workloads/lane_sums.hpp"

namespace cingulum::ring {

// What one actor publishes, in memory that all of them see; zero at the start: the first actor when all have come, with
// the largest value, the others when they have. Values of even and odd rounds lie apart: an actor is at most one round
// ahead of those that still read.
struct alignas(line_bytes) MeetingLine {
  std::uint64_t round;
  double values[2];
};

// How often a lane looks before the block asks whether it is to stop.
constexpr std::uint32_t looks_before_question = 256;

// Called by all lanes: publishes that this actor has finished `round` (1, 2, ... on end) with `value`, which is not
// negative, and waits for the others. Afterwards their writes of the round are seen, and `value` is the largest of all.
// False: the actor was told to stop. `strands`: as in largest_over_lanes.
CGL_HD_GENERIC template <class Context>
CGL_HD bool meet(Context& context, MeetingLine* lines, std::uint32_t count, std::uint32_t self, std::uint64_t round,
                 double* strands, double& value) {
  constexpr double not_there = 1.7e308;
  const bool is_first = self == 0;
  const auto publish = [&](double what) {
    if (context.lane() != 0) return;
    lines[self].values[round & 1u] = what;
    context.write_shared(lines[self].round, round);
  };
  context.sync();
  if (!is_first) publish(value);
  double largest = is_first ? value : 0;
  // The lines that this lane looks at, up to `end`.
  const std::uint32_t end = is_first ? count : 1;
  std::uint32_t at = is_first ? 1 + context.lane() : context.lane();
  for (;;) {
    for (std::uint32_t looks = 0; at < end && looks < looks_before_question;) {
      if (context.read_shared(lines[at].round) >= round) {
        largest = Maximum{}(largest, lines[at].values[round & 1u]);
        at += context.lanes();
      } else {
        ++looks;
        context.back_off();
      }
    }
    // Its barrier stands between what the lanes saw and what the first actor publishes.
    const double all = largest_over_lanes(context, strands, at < end ? not_there : largest);
    if (all != not_there) {
      if (is_first) publish(all);
      value = all;
      return true;
    }
    context.heartbeat();
    if (context.should_stop()) return false;
  }
}

}  // namespace cingulum::ring
