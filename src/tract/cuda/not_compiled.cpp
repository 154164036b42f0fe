// Stands in for the tracker of CUDA in a program built without it.
#include "tract/run/backends.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_cuda_tracker(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

}  // namespace cingulum
