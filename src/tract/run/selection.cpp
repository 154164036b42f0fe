#include "tract/run/selection.hpp"

namespace cingulum {

StreamlineCut cut_at_stop_regions(const std::vector<Region>& stop, const StreamlineBatch& batch,
                                  std::size_t streamline) {
  const auto first = static_cast<std::size_t>(batch.offsets[streamline]);
  const auto count = static_cast<std::size_t>(batch.offsets[streamline + 1]) - first;
  StreamlineCut cut = {.first_point = first,
                       .point_count = count,
                       .seed_point = batch.seed_point[streamline],
                       .start_reason = static_cast<EndReason>(batch.end_reason[2 * streamline]),
                       .end_reason = static_cast<EndReason>(batch.end_reason[2 * streamline + 1])};
  if (stop.empty() || count == 0) return cut;
  const std::span<const float> points = std::span(batch.points).subspan(3 * first, 3 * count);
  const std::size_t seed = cut.seed_point;
  if (const auto last = stop_point(stop, points, seed, +1)) {
    cut.point_count = *last + 1;
    cut.end_reason = EndReason::stop_region;
  }
  if (const auto start = stop_point(stop, points, seed, -1)) {
    cut.first_point += *start;
    cut.point_count -= *start;
    cut.seed_point -= *start;
    cut.start_reason = EndReason::stop_region;
  }
  return cut;
}

SelectionVerdict judge(const SelectionRules& rules, std::span<const float> points, double length_mm) {
  if (points.empty() || length_mm < rules.min_length_mm - rules.tolerance_mm) return SelectionVerdict::too_short;
  if (length_mm > rules.max_length_mm + rules.tolerance_mm) return SelectionVerdict::too_long;
  if (points.size() / 3 < rules.min_points) return SelectionVerdict::too_few_points;
  if (points.size() / 3 > rules.max_points) return SelectionVerdict::too_many_points;
  if (rules.regions.judges() && !passes_rules(rules.regions, points)) return SelectionVerdict::region_rules;
  return SelectionVerdict::kept;
}

}  // namespace cingulum
