#include "runs/track/field_limits.hpp"

namespace cingulum {

Status FieldLimits::check(const TrackingPlan& plan) const {
  // A session refuses it as well, without knowing who asks.
  if (lowest_threshold && plan.stop_threshold < static_cast<float>(*lowest_threshold)) {
    return fail_argument("stop_threshold", "{} {}: the field was prepared for {} and higher",
                         argument_name("stop_threshold"), plan.stop_threshold, *lowest_threshold);
  }
  if (reach_voxels && plan.reach_voxels > *reach_voxels) {
    return fail(ErrorKind::invalid_argument, "this plan reads {} voxels about a point, the field was prepared for {}",
                plan.reach_voxels, *reach_voxels);
  }
  return {};
}

}  // namespace cingulum
