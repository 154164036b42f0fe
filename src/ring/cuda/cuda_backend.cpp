#include "ring/cuda/cuda_backend.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/cuda/ahead_kernels.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/memory_pool.hpp"
#include "ring/resident/seat_core.hpp"

namespace cingulum::ring {
namespace {

class CudaBackend final : public ResidentBackend {
 public:
  CudaBackend(CudaDevice& device, CudaProgram program)
      : device_(device),
        program_(std::move(program)),
        device_pool_(device),
        mapped_pool_(device, HostMemoryKind::mapped) {}

  ~CudaBackend() override {
    // The pools free when they go; a kernel that still runs ends by its lease.
    if (running_ != nullptr && kernel_queue_ != nullptr) static_cast<void>(kernel_queue_->synchronise());
    hold_device_.reset();
    hold_mapped_.reset();
    running_.reset();
  }

  [[nodiscard]] Status prepare() {
    CGL_TRY(device_.make_current());
    CGL_TRY_ASSIGN(kernel_queue_, device_.create_queue());
    CGL_TRY_ASSIGN(side_queue_, device_.create_queue());
    // Loading code waits for kernels to end: all of it is touched before one stays.
    cudaFuncAttributes attributes{};
    CGL_TRY(cuda_status(read_probe_kernel_attributes(attributes), "device {}: loading kernels", id()));
    if (program_.kernel == nullptr) {
      CGL_TRY(cuda_status(static_cast<cudaError_t>(program_.find_kernel(&program_.kernel)),
                          "device {}: finding actors '{}'", id(), program_.name));
    }
    CGL_TRY(cuda_status(cudaFuncGetAttributes(&attributes, program_.kernel), "device {}: loading actors '{}'", id(),
                        program_.name));
    CGL_TRY(cuda_status(cudaFuncSetAttribute(program_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(sizeof(SeatShared))),
                        "device {}: asking for {} bytes of shared memory", id(), sizeof(SeatShared)));
    CGL_TRY_ASSIGN(plan_memory_, allocate_mapped(4096));
    CGL_TRY_ASSIGN(std::byte* const word, allocate_device(512));
    return store_device_word(reinterpret_cast<std::uint64_t*>(word), 0);  // copies have a first time too
  }

  [[nodiscard]] std::string id() const override { return device_.id(); }
  [[nodiscard]] const std::vector<std::string>& actors() const override { return program_.actors; }

  [[nodiscard]] Result<MappedMemory> allocate_mapped(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(auto block, mapped_pool_.acquire(std::max<std::uint64_t>(bytes, line_bytes)));
    std::memset(block->bytes.data(), 0, block->bytes.size());
    const MappedMemory memory{block->bytes.data(), static_cast<std::byte*>(block->device_pointer)};
    mapped_.push_back(std::move(block));
    return memory;
  }
  [[nodiscard]] Result<std::byte*> allocate_device(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(auto block, device_pool_.acquire(bytes));
    auto* const memory = static_cast<std::byte*>((*block)->device_pointer());
    CGL_TRY(clear_device(memory, bytes));
    on_device_.push_back(std::move(block));
    return memory;
  }
  [[nodiscard]] Status clear_device(std::byte* memory, std::uint64_t bytes) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    CGL_TRY(cuda_status(cudaMemsetAsync(memory, 0, bytes, cuda_stream_of(*side_queue_)), "device {}: clearing", id()));
    return side_queue_->synchronise();
  }
  [[nodiscard]] Status store_device_word(std::uint64_t* word, std::uint64_t value) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    auto* const source = reinterpret_cast<std::uint64_t*>(plan_memory_.host + 2048);  // pinned
    *source = value;
    CGL_TRY(
        cuda_status(cudaMemcpyAsync(word, source, sizeof value, cudaMemcpyHostToDevice, cuda_stream_of(*side_queue_)),
                    "device {}: storing a word", id()));
    return side_queue_->synchronise();
  }

  [[nodiscard]] Result<std::uint64_t> load_device_word(const std::uint64_t* word) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    auto* const target = reinterpret_cast<std::uint64_t*>(plan_memory_.host + 2048);  // pinned
    CGL_TRY(
        cuda_status(cudaMemcpyAsync(target, word, sizeof *target, cudaMemcpyDeviceToHost, cuda_stream_of(*side_queue_)),
                    "device {}: reading a word", id()));
    CGL_TRY(side_queue_->synchronise());
    return *target;
  }

  [[nodiscard]] Result<std::uint32_t> most_seats(std::uint32_t lanes, std::uint32_t most_processors) override {
    CGL_TRY(device_.make_current());
    int blocks = 0;
    CGL_TRY(cuda_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, program_.kernel, static_cast<int>(lanes),
                                                                      sizeof(SeatShared)),
                        "device {}: asking how many actors '{}' fit", id(), program_.name));
    const std::uint32_t resident = static_cast<std::uint32_t>(blocks) * device_.capabilities().compute_units;
    // A block takes one processor at most, wherever it lands.
    return most_processors == 0 ? resident : std::min(resident, most_processors);
  }
  [[nodiscard]] bool ends_long_kernels() const override { return !device_.capabilities().persistent_kernels; }

  [[nodiscard]] Status launch(const GridPlan& plan, std::uint32_t lanes) override {
    const std::lock_guard lock(kernel_mutex_);
    CGL_TRY(device_.make_current());
    std::memcpy(plan_memory_.host, &plan, sizeof plan);
    const void* device_plan = plan_memory_.device;
    void* arguments[] = {&device_plan};
    hold_device_.emplace(device_pool_.hold());
    hold_mapped_.emplace(mapped_pool_.hold());
    running_ = device_.blocking_calls().persistent_kernel_runs(program_.name);
    // Cooperative: refused when not all blocks run at the same time, instead of waiting for ever.
    const Status launched =
        cuda_status(cudaLaunchCooperativeKernel(program_.kernel, dim3(plan.seat_count), dim3(lanes), arguments,
                                                sizeof(SeatShared), cuda_stream_of(*kernel_queue_)),
                    "device {}: launching actors '{}'", id(), program_.name);
    if (!launched) ended();
    return launched;
  }
  [[nodiscard]] Result<bool> has_ended() override {
    const std::lock_guard lock(kernel_mutex_);
    CGL_TRY(device_.make_current());
    const cudaError_t code = cudaStreamQuery(cuda_stream_of(*kernel_queue_));
    if (code == cudaErrorNotReady) return false;
    ended();
    if (const Status ran = cuda_status(code, "device {}: running actors '{}'", id(), program_.name); !ran) {
      // What a kernel does wrong while it runs ends the context, whether or not the runtime still says so.
      std::string text = ran.error().message();
      if (text.find("context") == std::string::npos) text += "; the CUDA context of this process is lost";
      return tl::make_unexpected(Error(ran.error().kind(), std::move(text)));
    }
    return true;
  }

 private:
  void ended() {
    hold_device_.reset();
    hold_mapped_.reset();
    running_.reset();
  }

  CudaDevice& device_;
  CudaProgram program_;
  std::unique_ptr<Queue> kernel_queue_;
  std::unique_ptr<Queue> side_queue_;
  DevicePool device_pool_;
  PinnedPool mapped_pool_;
  std::vector<PooledBlock<DeviceBlock>> on_device_;
  std::vector<PooledBlock<PinnedBlock>> mapped_;
  MappedMemory plan_memory_;
  std::mutex side_mutex_;
  std::mutex kernel_mutex_;  // guards what follows
  std::optional<PoolHold> hold_device_;
  std::optional<PoolHold> hold_mapped_;
  std::shared_ptr<void> running_;
};

}  // namespace

Result<std::unique_ptr<ResidentBackend>> make_cuda_backend(Device& device, CudaProgram program) {
  auto* const cuda = dynamic_cast<CudaDevice*>(&device);
  if (cuda == nullptr) {
    return fail(ErrorKind::invalid_argument, "actors '{}': {} is not a CUDA device", program.name, device.id());
  }
  auto backend = std::make_unique<CudaBackend>(*cuda, std::move(program));
  CGL_TRY(backend->prepare());
  return std::unique_ptr<ResidentBackend>(std::move(backend));
}

}  // namespace cingulum::ring
