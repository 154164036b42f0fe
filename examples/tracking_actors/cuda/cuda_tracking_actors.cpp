#include "examples/tracking_actors/cuda/resident_tracking_program.hpp"
#include "examples/tracking_actors/tracking_actors.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<std::unique_ptr<TrackingActors>> start_cuda_tracking(Device& device, std::shared_ptr<const Field> field,
                                                            const TrackingPlan& first,
                                                            const ResidentTrackingOptions& options) {
  CGL_TRY_ASSIGN(auto backend, ring::make_cuda_backend(device, resident_tracking_program()));
  return start_resident_tracking(device, std::move(backend), std::move(field), first, options);
}

}  // namespace cingulum
