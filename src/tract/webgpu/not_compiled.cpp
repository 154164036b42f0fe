// Stands in for the tracker of WebGPU in a program built without it.
#include "tract/run/backends.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without WebGPU", device.id());
}

}  // namespace cingulum
