// The queue of a WebGPU device: copies in any number of bytes, downloads that arrive when an event is waited for.
#pragma once

#include <memory>

#include "device/webgpu/webgpu_device.hpp"

namespace cingulum {

[[nodiscard]] Result<std::unique_ptr<Queue>> make_webgpu_queue(WebgpuDevice& device);

}  // namespace cingulum
