#include <algorithm>
#include <mutex>
#include <vector>

#include "device/device.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {
namespace {

constexpr struct NoMembers {
} no_members;  // the workloads' bodies have none, and are chosen by name alone

// Memory for copies, which the device reads by itself: a copy from or to ordinary memory may wait for the kernel that
// stays.
constexpr std::uint64_t staging_bytes = 256 << 10;

class ResidentPlace final : public WorkloadPlace {
 public:
  ResidentPlace(std::shared_ptr<ResidentGrid> grid, Device& device, std::unique_ptr<Queue> queue,
                std::unique_ptr<Runtime> runtime, std::span<std::byte> staging, std::optional<DeviceLimits> limits)
      : device_(device),
        grid_(std::move(grid)),
        queue_(std::move(queue)),
        runtime_(std::move(runtime)),
        staging_(staging),
        limits_(std::move(limits)) {}

  // Actors first, then the grid, and only then memory: nothing may be freed while the kernel runs.
  ~ResidentPlace() override {
    runtime_->shutdown(Termination::discard());
    static_cast<void>(grid_->close());
    runtime_.reset();
    grid_.reset();
  }

  std::string name() const override { return grid_->backend().id(); }
  Runtime& runtime() override { return *runtime_; }
  std::uint32_t useful_workers() const override { return grid_->options().seats; }
  bool has_seats() const override { return true; }

  const DeviceLimits* limits() const override { return limits_ ? &*limits_ : nullptr; }

  Result<ActorHandle> launch(const std::string& name, WorkloadBody body, Traffic traffic,
                             const ActorOptions& options) override {
    ActorOptions fitting = options;
    fitting.inbox_capacity = std::min(fitting.inbox_capacity, grid_->options().ring_capacity);
    fitting.outbox_capacity = std::min(fitting.outbox_capacity, grid_->options().ring_capacity);
    return grid_->launch(*runtime_, name, workload_body_name(body), std::as_bytes(std::span(&no_members, 1)),
                         traffic == Traffic::stream ? RingKind::bulk : RingKind::fast, fitting);
  }

  Result<SharedBuffer> share(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(const MappedMemory memory, grid_->scratch(bytes));
    CGL_TRY_ASSIGN(const BufferHandle handle, grid_->buffers().add_borrowed(memory.device, bytes, 0, {}));
    return SharedBuffer{handle, {memory.host, static_cast<std::size_t>(bytes)}};
  }
  Result<BufferHandle> keep(std::span<const std::byte> content) override {
    CGL_TRY_ASSIGN(std::unique_ptr<Buffer> buffer, device_.allocate(content.size()));
    for (std::size_t at = 0; at < content.size(); at += staging_.size()) {
      const std::size_t bytes = std::min(staging_.size(), content.size() - at);
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(at), bytes, staging_.begin());
      CGL_TRY(queue_->upload(*buffer, at, staging_.first(bytes)));
      CGL_TRY(queue_->synchronise());
    }
    CGL_TRY_ASSIGN(const BufferHandle handle,
                   grid_->buffers().add_borrowed(buffer->device_pointer(), content.size(), 1, {}));
    kept_.push_back({handle, std::move(buffer)});
    return handle;
  }
  Status fetch(BufferHandle handle, std::uint64_t offset, std::span<std::byte> bytes) override {
    for (const Kept& one : kept_) {
      if (one.handle.slot != handle.slot || one.handle.generation != handle.generation) continue;
      for (std::size_t at = 0; at < bytes.size(); at += staging_.size()) {
        const std::span<std::byte> piece = staging_.first(std::min(staging_.size(), bytes.size() - at));
        CGL_TRY(queue_->download(piece, *one.buffer, offset + at));
        CGL_TRY(queue_->synchronise());
        std::copy(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
      return {};
    }
    return fail(ErrorKind::not_found, "fetching from a buffer that is not kept on {}", name());
  }
  Status release(BufferHandle handle) override {
    return grid_->buffers().release(handle).map([](std::uint32_t) {});
  }

 private:
  struct Kept {
    BufferHandle handle;
    std::unique_ptr<Buffer> buffer;
  };

  Device& device_;
  std::vector<Kept> kept_;  // freed after the grid has ended
  std::shared_ptr<ResidentGrid> grid_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Runtime> runtime_;
  const std::span<std::byte> staging_;  // of the grid's scratch memory
  const std::optional<DeviceLimits> limits_;
};

}  // namespace

Result<std::unique_ptr<WorkloadPlace>> make_resident_place(std::shared_ptr<ResidentGrid> grid, Device& device,
                                                           std::optional<DeviceLimits> limits) {
  CGL_TRY_ASSIGN(std::unique_ptr<Queue> queue, device.create_queue());
  CGL_TRY_ASSIGN(std::unique_ptr<Runtime> runtime, Runtime::create());
  CGL_TRY_ASSIGN(const MappedMemory staging, grid->scratch(staging_bytes));
  return std::make_unique<ResidentPlace>(std::move(grid), device, std::move(queue), std::move(runtime),
                                         std::span(staging.host, staging_bytes), std::move(limits));
}

}  // namespace cingulum::ring
