// Stands in for OCT kernels on CUDA in a program built without it. (No device of CUDA exists there.)
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {

Result<std::unique_ptr<KernelBackend>> make_cuda_oct_backend(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without CUDA", device.id());
}

}  // namespace cingulum::oct
