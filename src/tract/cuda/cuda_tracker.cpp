// The tracker of CUDA: the pages of paged_tracker.hpp with kernels compiled ahead. Which of them runs a plan, with how
// many threads and how much shared memory, track_kernel_choice.hpp says, once per run.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "base/log.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/working_memory.hpp"
#include "tract/cuda/track_kernels.hpp"
#include "tract/field/memory_need.hpp"
#include "tract/paged/paged_tracker.hpp"
#include "tract/paged/track_kernel_choice.hpp"
#include "tract/run/backends.hpp"

namespace cingulum {
namespace {

static_assert(std::is_trivially_copyable_v<TrackingInput> && std::is_trivially_copyable_v<kernel::PagedWork>);

// Chunks that run at the same time: while one is copied, another tracks and a third begins.
constexpr std::uint32_t concurrent_chunks = 3;
constexpr std::uint64_t first_range = 12500;

// A kernel with the launch that suits this device and input.
struct Launch {
  const void* function = nullptr;
  std::uint32_t threads = 0;
  std::uint32_t blocks = 0;  // that fill the device
  std::uint32_t shared_bytes = 0;
  std::uint32_t walks = 1;  // of a warp
  SlabMemoryOnDevice slabs{};
  WorkingBuffer global;

  [[nodiscard]] std::uint32_t warps() const { return threads / 32u; }
};

// What the kernels of all plans on one field share: tables that were made of it before the first launch, and what the
// driver was told and asked about launches, which every plan would ask again.
struct SharedByPlans {
  std::mutex mutex;  // guards the making of what follows
  WorkingBuffer words, expanded;
  ProbeView probes{};
  struct Occupancy {
    const void* function;
    std::uint32_t threads;
    std::uint32_t shared_bytes;
    std::uint32_t blocks;  // of all multiprocessors
  };
  std::vector<Occupancy> occupancies;
};

class CudaKernels final : public PagedKernels {
 public:
  explicit CudaKernels(CudaDevice& device, std::shared_ptr<SharedByPlans> shared = std::make_shared<SharedByPlans>())
      : device_(device), shared_(std::move(shared)) {}

  [[nodiscard]] Status configure(const TrackingInput& input, bool in_bricks) override {
    CGL_TRY(device_.make_current());
    input_ = input;
    // For comparisons: the kernels for all shapes where others would run.
    const char* const forced = std::getenv("CINGULUM_TEST_TRACK_KERNELS");
    const bool any_shape = forced != nullptr && std::string_view(forced) == "any";
    const TrackKernelChoice choice = choose_track_kernels(
        input, {.shared_bytes = device_.capabilities().shared_bytes, .in_bricks = in_bricks, .any_shape = any_shape});
    if (choice.halves == TrackKernelId::none) {
      return fail(ErrorKind::unavailable, "device {}: no kernel for this getter on this field", device_.id());
    }
    if (choice.too_large_for_shared != TrackKernelId::none) {
      log_info(
          "device {}: shared memory does not suffice for {}; the kernel for all shapes runs instead, which is "
          "slower",
          device_.id(), track_kernel_name(choice.too_large_for_shared));
    }
    TrackKernel halves = track_kernel(choice.halves, false);
    CGL_TRY(derive_tables(halves));
    CGL_TRY_ASSIGN(seeds_, plan_launch(track_kernel(choice.seeds, true), choice.seeds, choice.seeds_launch,
                                       kernel::slab_layout(input, true)));
    CGL_TRY_ASSIGN(halves_,
                   plan_launch(halves, choice.halves, choice.halves_launch, kernel::slab_layout(input, false)));
    log_debug("device {}: tracking with {} blocks of {} threads, {} bytes of shared memory each{}", device_.id(),
              halves_.blocks, halves_.threads, halves_.shared_bytes, halves_.global ? ", slabs in global memory" : "");
    return {};
  }

  void give_up_memory() override {
    seeds_ = {};
    halves_ = {};
    shared_ = std::make_shared<SharedByPlans>();
  }
  [[nodiscard]] std::unique_ptr<PagedKernels> for_another_plan() const override {
    return std::make_unique<CudaKernels>(device_, shared_);
  }

  [[nodiscard]] Status find_directions(Queue& queue, std::uint32_t caller, const kernel::PagedWork& work) override {
    return launch(queue, caller, seeds_, work, work.seeds.count, "finding initial directions");
  }
  [[nodiscard]] Status track(Queue& queue, std::uint32_t caller, const kernel::PagedWork& work) override {
    return launch(queue, caller, halves_, work, work.halves.count, "tracking");
  }
  [[nodiscard]] Status compact(Queue& queue, const kernel::PagedWork& work) override {
    CGL_TRY(device_.make_current());
    return cuda_status(launch_compaction(input_, work, cuda_stream_of(queue)), "device {}: collecting streamlines",
                       device_.id());
  }

 private:
  // What the kernel reads besides the input; where there is room for the larger table, its other form.
  [[nodiscard]] Status derive_tables(TrackKernel& kernel) {
    if (kernel.derive == nullptr) return {};
    const std::lock_guard lock(shared_->mutex);
    if (shared_->words == nullptr) CGL_TRY(make_derived_tables(kernel));
    input_.probes = shared_->probes;
    if (shared_->expanded != nullptr) kernel.function = kernel.expanded;
    return {};
  }

  [[nodiscard]] Status make_derived_tables(const TrackKernel& kernel) {
    const auto words = [](const WorkingBuffer& buffer) {
      return static_cast<std::uint32_t*>(buffer->device_pointer());
    };
    const auto done = [&](cudaError_t launched) {
      return cuda_status(launched != cudaSuccess ? launched : cudaStreamSynchronize(cudaStreamPerThread),
                         "device {}: making tables", device_.id());
    };
    TrackingInput input = input_;
    CGL_TRY_ASSIGN(WorkingBuffer made, memory_->take(kernel.derived_words(input) * sizeof(std::uint32_t)));
    std::uint32_t cells = 0;
    CGL_TRY(done(kernel.derive(input, words(made), &cells, cudaStreamPerThread)));
    WorkingBuffer expanded;
    const std::size_t bytes = kernel.expanded_words(input, cells) * sizeof(std::uint32_t);
    // Half of what is free, so that pages have the rest.
    if (bytes != 0 && bytes <= free_memory_of(device_) / 2) {
      if (auto larger = memory_->take(bytes)) {
        CGL_TRY(done(kernel.expand(input, words(*larger), cells, cudaStreamPerThread)));
        expanded = std::move(*larger);
      }
    }
    shared_->words = std::move(made);
    shared_->expanded = std::move(expanded);
    shared_->probes = input.probes;
    return {};
  }

  [[nodiscard]] Result<Launch> plan_launch(const TrackKernel& kernel, TrackKernelId id, const TrackLaunchShape& shape,
                                           const kernel::SlabLayout& layout) const {
    const std::uint64_t most_shared = device_.capabilities().shared_bytes;
    const TrackKernelFacts facts = track_kernel_facts(id);
    Launch launch;
    launch.function = kernel.function;
    launch.slabs.layout = layout;
    launch.slabs.layout.words = shape.slab_words;
    launch.threads = shape.threads;
    launch.shared_bytes = shape.shared_bytes;
    launch.walks = facts.walks;
    CGL_TRY_ASSIGN(launch.blocks, blocks_of(launch, facts.blocks, most_shared));
    if (!shape.slabs_in_shared) {
      const std::uint64_t slab_bytes = std::uint64_t{shape.slab_words} * sizeof(float);
      CGL_TRY_ASSIGN(launch.global, memory_->take(slab_bytes * launch.warps() * launch.blocks * concurrent_chunks));
    }
    return launch;
  }

  // How many of the launch run at the same time; the kernel is told its share of memory.
  [[nodiscard]] Result<std::uint32_t> blocks_of(const Launch& launch, std::uint64_t blocks_wanted,
                                                std::uint64_t most_shared) const {
    const std::lock_guard lock(shared_->mutex);
    for (const SharedByPlans::Occupancy& known : shared_->occupancies) {
      if (known.function == launch.function && known.threads == launch.threads &&
          known.shared_bytes == launch.shared_bytes) {
        return known.blocks;
      }
    }
    // All that there is: the attribute belongs to the kernel, which other trackers launch with other sizes.
    CGL_TRY(cuda_status(cudaFuncSetAttribute(launch.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(most_shared)),
                        "device {}: asking for {} bytes of shared memory", device_.id(), most_shared));
    // No more of a multiprocessor's memory than its blocks use, so that the rest caches records. Advice; a percentage
    // of what there is, which is a kilobyte more than one block may take.
    const std::uint64_t share = blocks_wanted * (launch.shared_bytes + 1024u) * 100u / (most_shared + 1024u) + 1u;
    CGL_TRY(cuda_status(cudaFuncSetAttribute(launch.function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                             static_cast<int>(std::min<std::uint64_t>(share, 100))),
                        "device {}: asking for {} % of shared memory", device_.id(), share));
    int blocks = 0;
    CGL_TRY(cuda_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                            &blocks, launch.function, static_cast<int>(launch.threads), launch.shared_bytes),
                        "device {}: planning a launch", device_.id()));
    const std::uint32_t all = static_cast<std::uint32_t>(std::max(blocks, 1)) * device_.capabilities().compute_units;
    shared_->occupancies.push_back({launch.function, launch.threads, launch.shared_bytes, all});
    return all;
  }

  Status launch(Queue& queue, std::uint32_t caller, const Launch& launch, const kernel::PagedWork& work,
                std::uint32_t items, std::string_view what) {
    CGL_TRY(device_.make_current());
    const std::uint32_t per_block = launch.warps() * launch.walks;
    const std::uint32_t needed = (items + per_block - 1) / per_block;
    SlabMemoryOnDevice slabs = launch.slabs;
    TrackingInput input = input_;
    kernel::PagedWork argument = work;
    if (launch.global) {
      // Launches of different callers run at the same time and must not share slabs in global memory.
      const std::size_t caller_words = std::size_t{launch.slabs.layout.words} * launch.warps() * launch.blocks;
      slabs.global = static_cast<float*>(launch.global->device_pointer()) + caller * caller_words;
    }
    void* arguments[] = {&input, &argument, &slabs};
    return cuda_status(cudaLaunchKernel(launch.function, dim3(std::clamp(needed, 1u, launch.blocks)),
                                        dim3(launch.threads), arguments, launch.shared_bytes, cuda_stream_of(queue)),
                       "device {}: {}", device_.id(), what);
  }

  CudaDevice& device_;
  const std::shared_ptr<WorkingMemory> memory_ = WorkingMemory::of(device_);
  std::shared_ptr<SharedByPlans> shared_;
  TrackingInput input_{};
  Launch seeds_, halves_;
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_cuda_tracker(Device& device) {
  auto& cuda = static_cast<CudaDevice&>(device);
  return make_paged_tracker(device, std::make_unique<CudaKernels>(cuda),
                            {.hints = {.callers = concurrent_chunks, .first_range = first_range}});
}

}  // namespace cingulum
