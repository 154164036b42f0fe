// Parts of a run: ranges of its seeds, tracked by themselves, anywhere and in any order, and what together they say.
// The streamlines of a part are those that the undivided run has of its seeds, so joined in the order of the seeds they
// are the run's; so are the numbers, which are sums of integers, smallest and largest. With select a part stops once it
// alone has kept enough, and the run ends in one of the parts: the trail says what was counted until then. Called by
// `cingulum merge`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tract/run/tracking_batches.hpp"

namespace cingulum {

struct RunPart {
  SeedRange seeds;
  std::uint64_t run_seeds = 0;    // of the undivided run
  TrackingStatistics statistics;  // with select also the trail
};

struct JoinedParts {
  TrackingStatistics statistics;         // of the undivided run, without what a device did beyond what counts
  std::vector<std::uint64_t> take = {};  // streamlines of each part that belong to the run: its first
};

// The parts are in the order of their seeds, and none is missing up to the last that is needed. `points_written` is
// left to whoever writes them.
[[nodiscard]] JoinedParts join_parts(std::span<const RunPart> parts, std::uint64_t select);

// Whether the first parts alone have kept as many as were asked for.
[[nodiscard]] bool is_reached(std::span<const RunPart> parts, std::uint64_t select);

}  // namespace cingulum
