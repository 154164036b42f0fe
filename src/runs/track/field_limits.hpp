// The plans for which the field of a series was made: voxels that only a lower threshold or a longer reach would read
// are not stored in it. Checked where a field stays and plans change: a session, a page, a Tracker of Python.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

struct FieldLimits {
  std::optional<double> lowest_threshold;    // none: any
  std::optional<std::int64_t> reach_voxels;  // none: any

  [[nodiscard]] Status check(const TrackingPlan& plan) const;
};

}  // namespace cingulum
