#include "tract/run/tracker.hpp"

namespace cingulum {

Status check_given_directions(const GivenDirections* directions, const Seeds& seeds) {
  if (directions == nullptr || directions->directions.size() == seeds.count()) return {};
  return fail(ErrorKind::invalid_argument, "{} initial directions for {} seeds", directions->directions.size(),
              seeds.count());
}

Status check_seed_range(SeedRange range, const Seeds* seeds) {
  if (seeds == nullptr) return fail(ErrorKind::invalid_state, "tracking before prepare");
  const std::uint64_t end = range.first + range.count;
  if (end <= seeds->count() && end <= most_seeds) return {};
  return fail(ErrorKind::invalid_argument, "seeds {} to {} of {} (and of 2^32 at most)", range.first, end,
              seeds->count());
}

Result<std::unique_ptr<Tracker>> Tracker::beside(const TrackingPlan&, const Seeds&, const GivenDirections*) {
  return fail(ErrorKind::unavailable, "the tracker {} shares its field with no other plan", name());
}

}  // namespace cingulum
