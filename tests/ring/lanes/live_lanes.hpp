// Lanes that are fibers (lane_machine.hpp) in real time: a block is a thread, its lanes change places by a seed of its
// own, and clock and naps are the machine's. So a whole grid with its host runs with blocks of several lanes
// (ring/resident/emulated_backend.hpp). A complaint of the scheduler ends the program.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "ring/lanes/lane_machine.hpp"
#include "ring/resident/emulated_machine.hpp"
#include "ring/resident/seat_shared.hpp"

namespace cingulum::ring::testing {

struct LiveLaneMachine : LaneMachine {
  template <class RunLane>
  static void run_block(std::uint32_t lanes, SeatShared& shared, const RunLane& run_lane) {
    static std::atomic<std::uint64_t> blocks{0};
    LaneScheduler::Options options;
    options.seed = ++blocks;
    options.lanes = lanes;
    LaneScheduler scheduler(options, [&](std::uint32_t) { run_lane(); },
                            {std::as_writable_bytes(std::span(&shared, 1))});
    while (scheduler.run_for_a_while()) {
    }
    if (scheduler.complaint().empty()) return;
    std::fprintf(stderr, "lanes of block %llu: %s\n", static_cast<unsigned long long>(options.seed),
                 scheduler.complaint().c_str());
    std::abort();
  }

  static std::uint64_t own_time_ns() { return EmulatedMachine::time_ns(); }
  static std::uint64_t own_cycles() { return EmulatedMachine::time_ns(); }
  static std::uint64_t time_ns() { return of_first(own_time_ns()); }
  static std::uint64_t cycles() { return of_first(own_cycles()); }
  static void nap(std::uint32_t nanoseconds) {
    if (is_first()) EmulatedMachine::nap(nanoseconds);
    scheduler().give_way();
  }
  static void back_off() {
    EmulatedMachine::back_off();
    scheduler().give_way();
  }

 private:
  static std::uint64_t of_first(std::uint64_t mine, std::uint32_t line = __builtin_LINE()) {
    return scheduler().exchange(mine, line)[0];
  }
};

}  // namespace cingulum::ring::testing
