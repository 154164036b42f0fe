#include "tract/backends.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: tracking on WebGPU is not there yet", device.id());
}

}  // namespace cingulum
