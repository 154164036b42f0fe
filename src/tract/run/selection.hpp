// Which streamlines of a tracker are kept, and which part of each: stop regions cut both halves, then length and
// regions are judged on what is left. Called by the run's driver on each streamline of a batch; the answer depends on
// the streamline alone, so it is the same for every device, chunk and number of threads.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "formats/image_geometry.hpp"
#include "streamlines/lengths.hpp"
#include "streamlines/regions.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

struct SelectionRules {
  double min_length_mm = 0;
  double max_length_mm = 1e6;
  // Both limits give way by this much: points are float32, and a streamline of exactly the limit must not depend on
  // their rounding. A thousandth of a step.
  double tolerance_mm = 0;
  // Points of what is left after the stop regions, before any is left out by linearisation; both limits included.
  std::uint64_t min_points = 0;
  std::uint64_t max_points = std::numeric_limits<std::uint64_t>::max();
  RegionRules regions = {};
};

enum class SelectionVerdict { kept, too_short, too_long, too_few_points, too_many_points, region_rules };

// What is left of a streamline after the stop regions.
struct StreamlineCut {
  std::size_t first_point = 0;  // in the batch
  std::size_t point_count = 0;
  std::size_t seed_point = 0;  // counted from first_point
  EndReason start_reason = EndReason::none;
  EndReason end_reason = EndReason::none;
};

[[nodiscard]] StreamlineCut cut_at_stop_regions(const std::vector<Region>& stop, const StreamlineBatch& batch,
                                                std::size_t streamline);

// The first rule that it breaks, in the order of the verdicts.
[[nodiscard]] SelectionVerdict judge(const SelectionRules& rules, std::span<const float> points, double length_mm);

}  // namespace cingulum
