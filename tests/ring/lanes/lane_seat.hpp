// The seats that the tests of lanes run: one function, compiled in a file of its own, where every access of memory is
// seen by the scheduler (lane_scheduler.hpp).
#pragma once

#include "ring/resident/seat_shared.hpp"

namespace cingulum::ring::testing {

// The bodies of the program, in its order.
enum class LaneBody : std::uint32_t {
  echo,
  batch_echo,
  add,
  bounce,
  sum,
  fail_every,
  look_up,
  three,
  flood,
  swallow,
  agree,
  count_starts,
  fill,
  check,
  work_until_stopped,
  peeker,
  large_answers,
  spread,
};

// Called by each lane of the block.
void run_lane_seat(const GridPlan& grid, std::uint32_t seat, SeatShared& shared);

}  // namespace cingulum::ring::testing
