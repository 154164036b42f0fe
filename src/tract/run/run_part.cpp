#include "tract/run/run_part.hpp"

#include <algorithm>

namespace cingulum {
namespace {

// What a part and what stands for a kept streamline count alike.
template <class Counts>
void add_counts(const Counts& part, TrackingStatistics& sum) {
  sum.seeds_with_streamlines += part.seeds_with_streamlines;
  sum.streamlines += part.streamlines;
  sum.too_short += part.too_short;
  sum.too_long += part.too_long;
  sum.too_few_points += part.too_few_points;
  sum.too_many_points += part.too_many_points;
  sum.refused_by_regions += part.refused_by_regions;
  sum.points += part.points;
}

void add_all(const TrackingStatistics& part, TrackingStatistics& sum) {
  add_counts(part, sum);
  sum.kept += part.kept;
  for (std::size_t i = 0; i < end_reason_count; ++i) sum.end_reasons[i] += part.end_reasons[i];
  sum.lengths.add(part.lengths);
  sum.steps += part.steps;
  sum.seeds_outside += part.seeds_outside;
  sum.seeds_without_direction += part.seeds_without_direction;
}

void add_kept(const KeptStreamline& kept, TrackingStatistics& sum) {
  add_counts(kept, sum);
  ++sum.kept;
  ++sum.end_reasons[static_cast<std::size_t>(kept.start_reason)];
  ++sum.end_reasons[static_cast<std::size_t>(kept.end_reason)];
  sum.lengths.add(kept.length_mm);
}

}  // namespace

bool is_reached(std::span<const RunPart> parts, std::uint64_t select) {
  std::uint64_t kept = 0;
  for (const RunPart& part : parts) kept += part.statistics.kept;
  return select > 0 && kept >= select;
}

JoinedParts join_parts(std::span<const RunPart> parts, std::uint64_t select) {
  JoinedParts joined;
  TrackingStatistics& sum = joined.statistics;
  joined.take.assign(parts.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RunPart& part = parts[i];
    const std::uint64_t left = select > 0 ? select - sum.kept : part.statistics.kept;
    joined.take[i] = std::min(left, part.statistics.kept);
    if (select == 0 || part.statistics.kept < left) {
      add_all(part.statistics, sum);
      sum.seeds = part.seeds.first + part.seeds.count;
      continue;
    }
    // The run ends here, at the seed of its last streamline.
    for (std::size_t k = 0; k < static_cast<std::size_t>(left); ++k) add_kept(part.statistics.trail[k], sum);
    sum.seeds = part.statistics.trail[static_cast<std::size_t>(left) - 1].seed + 1;
    break;
  }
  sum.select_reached = select == 0 || sum.kept >= select;
  return joined;
}

}  // namespace cingulum
