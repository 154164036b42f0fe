// A non-blocking CUDA stream as a Queue, and CUDA events as Events.
#pragma once

#include <memory>

#include "device/cuda/cuda_device.hpp"

namespace cingulum {

[[nodiscard]] Result<std::unique_ptr<Queue>> make_cuda_queue(CudaDevice& device);

// The stream behind a queue of a CUDA device, for kernels that are compiled ahead. Null for other queues.
[[nodiscard]] cudaStream_t cuda_stream_of(const Queue& queue);

}  // namespace cingulum
