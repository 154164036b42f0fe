// Stands in for what needs WebGPU in a program built without it.
#include "tract/run/backends.hpp"
#include "tract/run/driven_tracking.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without WebGPU", device.id());
}

Result<std::unique_ptr<DrivenTracking>> make_driven_tracking(const Field&, const DrivenAdapter&) {
  return fail(ErrorKind::unavailable, "tracking in a browser: this program was built without WebGPU");
}

}  // namespace cingulum
