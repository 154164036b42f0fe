// The kernels of boxes on CUDA.
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "zarr/direct/box_kernels.hpp"
#include "zarr/direct/cuda/box_launch.hpp"

namespace cingulum::zarr {
namespace {

class CudaBoxKernels final : public BoxKernels {
 public:
  explicit CudaBoxKernels(CudaDevice& device) : device_(device) {}

  [[nodiscard]] Status scatter(Queue& queue, const BoxTable& table, const Buffer& staging, Buffer& place) override {
    return move(queue, table, staging, place, BoxDirection::scatter);
  }
  [[nodiscard]] Status gather(Queue& queue, const BoxTable& table, Buffer& staging, const Buffer& place) override {
    return move(queue, table, staging, place, BoxDirection::gather);
  }

 private:
  Status move(Queue& queue, const BoxTable& table, const Buffer& staging, const Buffer& place, BoxDirection direction) {
    CGL_TRY(device_.make_current());
    const auto* const records = reinterpret_cast<const BoxRecord*>(
        static_cast<const std::byte*>(table.buffer->device_pointer()) + table.offset);
    for (const BoxLaunch& one : table.plan->launches()) {
      CGL_TRY(cuda_status(launch_move_boxes(records + one.first_record, one.records, one.blocks, direction,
                                            static_cast<std::byte*>(staging.device_pointer()),
                                            static_cast<std::byte*>(place.device_pointer()), cuda_stream_of(queue)),
                          "device {}: moving boxes of chunks", device_.id()));
    }
    return {};
  }

  CudaDevice& device_;
};

}  // namespace

Result<std::unique_ptr<BoxKernels>> make_cuda_box_kernels(Device& device) {
  return std::make_unique<CudaBoxKernels>(static_cast<CudaDevice&>(device));
}

}  // namespace cingulum::zarr
