#include "ring/cuda/cuda_backend.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "device/cuda/ahead_kernels.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/memory_pool.hpp"
#include "ring/resident/seat_shared.hpp"

namespace cingulum::ring {
namespace {

// What a grid's kernel uses for as long as it runs: its code, its streams and all memory that it can reach.
struct KernelBelongings {
  KernelBelongings(CudaDevice& device, CudaProgram its_program)
      : program(std::move(its_program)), device_pool(device), mapped_pool(device, HostMemoryKind::mapped) {}

  void kernel_ended() {
    hold_device.reset();
    hold_mapped.reset();
    running.reset();
  }

  CudaProgram program;
  std::unique_ptr<Queue> kernel_queue;
  std::unique_ptr<Queue> side_queue;
  DevicePool device_pool;
  PinnedPool mapped_pool;
  std::vector<PooledBlock<DeviceBlock>> on_device;
  std::vector<PooledBlock<PinnedBlock>> mapped;
  // While a kernel runs.
  std::optional<PoolHold> hold_device;
  std::optional<PoolHold> hold_mapped;
  std::shared_ptr<void> running;
};

// Kernels that did not end, because a body does not return. Freeing their memory, destroying their streams or unloading
// their code would wait for them, perhaps for ever; so all of it is kept, and given back when another grid is made
// after they have ended.
class LetGo {
 public:
  static void keep(std::unique_ptr<KernelBelongings> belongings) {
    LetGo& all = instance();
    const std::lock_guard lock(all.mutex_);
    all.kept_.push_back(std::move(belongings));
  }
  static std::size_t count() {
    LetGo& all = instance();
    const std::lock_guard lock(all.mutex_);
    return all.kept_.size();
  }
  static void give_back_what_ended() {
    LetGo& all = instance();
    const std::lock_guard lock(all.mutex_);
    std::erase_if(all.kept_, [](const std::unique_ptr<KernelBelongings>& kept) {
      if (cudaStreamQuery(cuda_stream_of(*kept->kernel_queue)) == cudaErrorNotReady) return false;
      kept->kernel_ended();
      return true;
    });
  }

 private:
  // Never destroyed: to destroy it would be to wait.
  static LetGo& instance() {
    static auto* const all = new LetGo();
    return *all;
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<KernelBelongings>> kept_;
};

class CudaBackend final : public ResidentBackend {
 public:
  CudaBackend(CudaDevice& device, CudaProgram program)
      : device_(device), own_(std::make_unique<KernelBelongings>(device, std::move(program))) {}

  ~CudaBackend() override {
    if (!own_->hold_device) return;  // no kernel, or it was seen to end
    const auto ended = has_ended();
    if (!ended || *ended) return;
    log_warning("{}: actors '{}' do not end, because a body does not return; their memory is kept until they do", id(),
                own_->program.name);
    LetGo::keep(std::move(own_));
  }

  [[nodiscard]] Status prepare() {
    CGL_TRY(device_.make_current());
    LetGo::give_back_what_ended();
    CGL_TRY_ASSIGN(own_->kernel_queue, device_.create_queue());
    CGL_TRY_ASSIGN(own_->side_queue, device_.create_queue());
    // Loading code waits for kernels to end: all of it is touched before one stays.
    cudaFuncAttributes attributes{};
    CGL_TRY(cuda_status(read_probe_kernel_attributes(attributes), "device {}: loading kernels", id()));
    if (own_->program.kernel == nullptr) {
      CGL_TRY(cuda_status(static_cast<cudaError_t>(own_->program.find_kernel(&own_->program.kernel)),
                          "device {}: finding actors '{}'", id(), own_->program.name));
    }
    CGL_TRY(cuda_status(cudaFuncGetAttributes(&attributes, own_->program.kernel), "device {}: loading actors '{}'",
                        id(), own_->program.name));
    CGL_TRY(cuda_status(cudaFuncSetAttribute(own_->program.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared_bytes())),
                        "device {}: asking for {} bytes of shared memory for actors '{}'", id(), shared_bytes(),
                        own_->program.name));
    CGL_TRY_ASSIGN(plan_memory_, allocate_mapped(4096));
    CGL_TRY_ASSIGN(std::byte* const word, allocate_device(512));
    return store_device_word(reinterpret_cast<std::uint64_t*>(word), 0);  // copies have a first time too
  }

  [[nodiscard]] std::string id() const override { return device_.id(); }
  [[nodiscard]] const std::vector<std::string>& actors() const override { return own_->program.actors; }

  [[nodiscard]] const std::vector<BodyType>& body_types() const override { return own_->program.types; }

  [[nodiscard]] Result<MappedMemory> allocate_mapped(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(auto block, own_->mapped_pool.acquire(std::max<std::uint64_t>(bytes, line_bytes)));
    std::memset(block->bytes.data(), 0, block->bytes.size());
    const MappedMemory memory{block->bytes.data(), static_cast<std::byte*>(block->device_pointer)};
    own_->mapped.push_back(std::move(block));
    return memory;
  }
  [[nodiscard]] Result<std::byte*> allocate_device(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(auto block, own_->device_pool.acquire(bytes));
    auto* const memory = static_cast<std::byte*>((*block)->device_pointer());
    CGL_TRY(clear_device(memory, bytes));
    own_->on_device.push_back(std::move(block));
    return memory;
  }
  [[nodiscard]] Status clear_device(std::byte* memory, std::uint64_t bytes) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    CGL_TRY(
        cuda_status(cudaMemsetAsync(memory, 0, bytes, cuda_stream_of(*own_->side_queue)), "device {}: clearing", id()));
    return own_->side_queue->synchronise();
  }
  [[nodiscard]] Status store_device_word(std::uint64_t* word, std::uint64_t value) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    auto* const source = reinterpret_cast<std::uint64_t*>(plan_memory_.host + 2048);  // pinned
    *source = value;
    CGL_TRY(cuda_status(
        cudaMemcpyAsync(word, source, sizeof value, cudaMemcpyHostToDevice, cuda_stream_of(*own_->side_queue)),
        "device {}: storing a word", id()));
    return own_->side_queue->synchronise();
  }

  [[nodiscard]] Result<std::uint64_t> load_device_word(const std::uint64_t* word) override {
    const std::lock_guard lock(side_mutex_);
    CGL_TRY(device_.make_current());
    auto* const target = reinterpret_cast<std::uint64_t*>(plan_memory_.host + 2048);  // pinned
    CGL_TRY(cuda_status(
        cudaMemcpyAsync(target, word, sizeof *target, cudaMemcpyDeviceToHost, cuda_stream_of(*own_->side_queue)),
        "device {}: reading a word", id()));
    CGL_TRY(own_->side_queue->synchronise());
    return *target;
  }

  [[nodiscard]] Result<std::uint32_t> most_seats(std::uint32_t lanes, std::uint32_t most_processors) override {
    CGL_TRY(device_.make_current());
    int blocks = 0;
    CGL_TRY(cuda_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, own_->program.kernel,
                                                                      static_cast<int>(lanes), shared_bytes()),
                        "device {}: asking how many actors '{}' fit", id(), own_->program.name));
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
    own_->hold_device.emplace(own_->device_pool.hold());
    own_->hold_mapped.emplace(own_->mapped_pool.hold());
    own_->running = device_.blocking_calls().persistent_kernel_runs(own_->program.name);
    // Cooperative: refused when not all blocks run at the same time, instead of waiting for ever.
    const Status launched =
        cuda_status(cudaLaunchCooperativeKernel(own_->program.kernel, dim3(plan.seat_count), dim3(lanes), arguments,
                                                shared_bytes(), cuda_stream_of(*own_->kernel_queue)),
                    "device {}: launching actors '{}'", id(), own_->program.name);
    if (!launched) own_->kernel_ended();
    return launched;
  }
  [[nodiscard]] Result<bool> has_ended() override {
    const std::lock_guard lock(kernel_mutex_);
    CGL_TRY(device_.make_current());
    const cudaError_t code = cudaStreamQuery(cuda_stream_of(*own_->kernel_queue));
    if (code == cudaErrorNotReady) return false;
    own_->kernel_ended();
    if (const Status ran = cuda_status(code, "device {}: running actors '{}'", id(), own_->program.name); !ran) {
      // What a kernel does wrong while it runs ends the context, whether or not the runtime still says so.
      std::string text = ran.error().message();
      if (text.find("context") == std::string::npos) text += "; the CUDA context of this process is lost";
      return tl::make_unexpected(Error(ran.error().kind(), std::move(text)));
    }
    return true;
  }

 private:
  // The seat's, and behind it what bodies ask for.
  [[nodiscard]] std::size_t shared_bytes() const { return sizeof(SeatShared) + own_->program.block_bytes; }

  CudaDevice& device_;
  std::unique_ptr<KernelBelongings> own_;
  MappedMemory plan_memory_;
  std::mutex side_mutex_;
  std::mutex kernel_mutex_;  // guards what changes in own_ when a kernel begins or ends
};

}  // namespace

std::size_t cuda_grids_let_go() {
  return LetGo::count();
}

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
