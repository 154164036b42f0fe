// Checksums of chunks on CUDA.
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "zarr/direct/checksum_plan.hpp"
#include "zarr/direct/cuda/checksum_launch.hpp"

namespace cingulum::zarr {
namespace {

class CudaChecksumKernels final : public ChecksumKernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ChecksumKernels>> create(CudaDevice& device) {
    auto kernels = std::make_unique<CudaChecksumKernels>(device);
    CGL_TRY_ASSIGN(kernels->tables_, device.allocate(sizeof(CrcTables)));
    CGL_TRY_ASSIGN(const auto queue, device.create_queue());
    CGL_TRY(queue->upload(*kernels->tables_, 0, std::as_bytes(std::span(&crc_tables(), 1))));
    CGL_TRY(queue->synchronise());
    return kernels;
  }
  explicit CudaChecksumKernels(CudaDevice& device) : device_(device) {}

  [[nodiscard]] Result<std::vector<bool>> verify(Queue& queue, const Buffer& staging,
                                                 std::span<const ChecksumPlace> places) override {
    if (places.empty()) return std::vector<bool>();
    const ChecksumPlan plan = plan_checksums(places);
    const std::span<const std::byte> tasks = std::as_bytes(std::span(plan.tasks));
    std::vector<CrcAnswer> answers(plan.tasks.size());
    const std::uint64_t answers_at = tasks.size();
    const std::uint64_t bytes = answers_at + answers.size() * sizeof(CrcAnswer);
    if (memory_ == nullptr || memory_->bytes() < bytes) {
      CGL_TRY_ASSIGN(memory_, device_.allocate(bytes));
    }
    CGL_TRY(queue.upload(*memory_, 0, tasks));
    CGL_TRY(queue.fill(*memory_, answers_at, answers.size() * sizeof(CrcAnswer), std::byte{0}));
    auto* const base = static_cast<std::byte*>(memory_->device_pointer());
    CGL_TRY(device_.make_current());
    CGL_TRY(
        cuda_status(launch_crc32c(reinterpret_cast<const CrcTask*>(base), static_cast<std::uint32_t>(plan.tasks.size()),
                                  plan.blocks, static_cast<const CrcTables*>(tables_->device_pointer()),
                                  static_cast<const std::byte*>(staging.device_pointer()),
                                  reinterpret_cast<CrcAnswer*>(base + answers_at), cuda_stream_of(queue)),
                    "device {}: verifying checksums", device_.id()));
    CGL_TRY(queue.download(std::as_writable_bytes(std::span(answers)), *memory_, answers_at));
    CGL_TRY(queue.synchronise());
    return judge_checksums(plan, answers);
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<Buffer> tables_;
  std::unique_ptr<Buffer> memory_;  // tasks, and answers behind them
};

}  // namespace

Result<std::unique_ptr<ChecksumKernels>> make_cuda_checksum_kernels(Device& device) {
  return CudaChecksumKernels::create(static_cast<CudaDevice&>(device));
}

}  // namespace cingulum::zarr
