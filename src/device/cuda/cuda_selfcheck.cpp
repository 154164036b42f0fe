#include "device/cuda/ahead_kernels.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/selfcheck.hpp"

namespace cingulum {

Status queue_selfcheck_on_cuda(Queue& queue, Buffer& output, std::uint32_t items) {
  CGL_TRY(static_cast<CudaDevice&>(queue.device()).make_current());
  return cuda_status(
      launch_selfcheck(static_cast<std::uint32_t*>(output.device_pointer()), items, cuda_stream_of(queue)),
      "device {}: launching the self-check", queue.device().id());
}

}  // namespace cingulum
