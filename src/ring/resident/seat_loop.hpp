// What one block of a resident grid does from its start to its end: wait for an actor, run its body, say how it ended,
// and again. The bodies that a grid can run are its program, fixed when the kernel is compiled; which of them sits
// where is the host's choice at run time, so that actors come and go without a launch.
#pragma once

#include "ring/resident/seat_calls.hpp"
#include "ring/resident/seat_context.hpp"
#include "ring/resident/seat_host.hpp"
#include "ring/resident/seat_input.hpp"
#include "ring/resident/seat_life.hpp"
#include "ring/resident/seat_output.hpp"
#include "ring/resident/seat_team.hpp"

namespace cingulum::ring {

// The block's memory: as much as the body wants that wants most, in whole lines.
template <class... Bodies>
CGL_HD constexpr std::uint32_t most_block_bytes() {
  const std::uint32_t wanted[] = {block_bytes_of<Bodies>()...};
  std::uint32_t most = 0;
  for (const std::uint32_t one : wanted) most = one > most ? one : most;
  return (most + 127u) / 128u * 128u;
}

// The bodies of a program by index.
template <class... Bodies>
struct BodyList {
  static constexpr std::uint32_t count = sizeof...(Bodies);
  static constexpr std::uint32_t block_bytes = most_block_bytes<Bodies...>();

  CGL_HD_GENERIC template <class Context>
  CGL_HD static int run(std::uint32_t index, const unsigned char* body, Context& context) {
    return run_from<0, Context, Bodies...>(index, body, context);
  }

 private:
  template <std::uint32_t at, class Context>
  CGL_HD static int run_from(std::uint32_t, const unsigned char*, Context&) {
    return -1;  // an index past the end: the host checks it before
  }
  CGL_HD_GENERIC template <std::uint32_t at, class Context, class Body, class... Rest>
  CGL_HD static int run_from(std::uint32_t index, const unsigned char* body, Context& context) {
    static_assert(__is_trivially_copyable(Body) && sizeof(Body) <= body_capacity && alignof(Body) <= 16,
                  "a body is trivially copyable and at most body_capacity bytes");
    if (index == at) return run_body(*reinterpret_cast<const Body*>(body), context);
    return run_from<at + 1, Context, Rest...>(index, body, context);
  }
};

CGL_HD_GENERIC template <class Machine, class Program>
CGL_HD void run_seat(const GridPlan& grid, std::uint32_t seat, SeatShared& shared) {
  SeatCore<Machine> core(grid, seat, shared, Program::block_bytes);
  SeatContext<Machine> context(core);
  Verdict next = core.wait_for_actor();
  while (next != Verdict::leave) {
    context.look_up();
    const int code = Program::run(core.plan().actor, core.plan().body, context);
    context.keep();
    next = core.body_returned(code);
    if (next == Verdict::vacate) next = core.wait_for_actor();
  }
  core.leave();
}

}  // namespace cingulum::ring
