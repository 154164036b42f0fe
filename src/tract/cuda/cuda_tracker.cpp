#include "tract/backends.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_cuda_tracker(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: tracking on CUDA is not there yet", device.id());
}

}  // namespace cingulum
