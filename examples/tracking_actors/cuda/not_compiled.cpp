// Stands in for the resident tracking actors of CUDA in a program built without it.
#include "examples/tracking_actors/tracking_actors.hpp"

namespace cingulum {

Result<std::unique_ptr<TrackingActors>> start_cuda_tracking(Device& device, std::shared_ptr<const Field>,
                                                            const TrackingPlan&, const ResidentTrackingOptions&) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

}  // namespace cingulum
