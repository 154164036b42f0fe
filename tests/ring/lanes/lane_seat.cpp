#include "ring/lanes/lane_seat.hpp"

#include "ring/ability_bodies.hpp"
#include "ring/lanes/lane_bodies.hpp"
#include "ring/lanes/lane_machine.hpp"
#include "ring/resident/seat_loop.hpp"

namespace cingulum::ring::testing {

void run_lane_seat(const GridPlan& grid, std::uint32_t seat, SeatShared& shared) {
  run_seat<LaneMachine, BodyList<Echo, BatchEcho, Add, Bounce, Sum, FailEvery, LookUp, Three, Flood, Swallow, Agree,
                                 CountStarts, Fill, Check, WorkUntilStopped, Peeker, LargeAnswers, Spread>>(grid, seat,
                                                                                                            shared);
}

}  // namespace cingulum::ring::testing
