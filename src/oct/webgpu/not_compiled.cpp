// Stands in for OCT kernels on WebGPU in a program built without it. (No device of WebGPU exists there.)
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {

Result<std::unique_ptr<KernelBackend>> make_webgpu_oct_backend(Device& device) {
  return fail(ErrorKind::unavailable, "device {}: this program was built without WebGPU", device.id());
}

}  // namespace cingulum::oct
