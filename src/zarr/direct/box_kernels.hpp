// The kernels that move the boxes of a batch on a device: chunks to a region and back, one launch for all boxes that a
// binding covers. One class per backend; the equality of all of them with the host's scatter and gather
// (zarr/box_move.hpp) is a test.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"
#include "zarr/direct/box_item.hpp"
#include "zarr/direct/box_plan.hpp"

namespace cingulum::zarr {

// The records of a plan as they lie in a buffer of the device, from a multiple of 256 on.
struct BoxTable {
  const BoxPlan* plan = nullptr;
  const Buffer* buffer = nullptr;
  std::uint64_t offset = 0;
};

// All members: any thread, as long as a queue has one caller at a time
class BoxKernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BoxKernels>> create(Device& device);
  virtual ~BoxKernels() = default;
  BoxKernels(const BoxKernels&) = delete;
  BoxKernels& operator=(const BoxKernels&) = delete;

  // What plans for regions in this buffer must keep.
  [[nodiscard]] BoxLimits limits_of(const Buffer& place) const;

  // Both return once the work is queued; the buffers stay until it is done. `staging` is at most as large as a binding.
  [[nodiscard]] virtual Status scatter(Queue& queue, const BoxTable& table, const Buffer& staging, Buffer& place) = 0;
  [[nodiscard]] virtual Status gather(Queue& queue, const BoxTable& table, Buffer& staging, const Buffer& place) = 0;

 protected:
  BoxKernels() = default;
};

// Declared here, defined in cuda/: the device is one of CUDA.
[[nodiscard]] Result<std::unique_ptr<BoxKernels>> make_cuda_box_kernels(Device& device);

}  // namespace cingulum::zarr
