// WebGPU through wgpu-native: Vulkan on Linux, Metal on macOS, lavapipe where there is no GPU. The C API has one queue
// per device, no addresses, and copies in multiples of four bytes; this class hides the latter two.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.hpp"
#include "device/webgpu/webgpu_handle.hpp"

namespace cingulum {

// What a text became: shared by all kernels that were made from it.
struct WebgpuPipeline {
  WgpuHandle<WGPUBindGroupLayout> layout;
  WgpuHandle<WGPUComputePipeline> pipeline;
  std::array<std::uint32_t, 3> workgroup;
};

// The texts compiled lately, since a driver takes seconds for a long one.
class WebgpuPipelineCache {
 public:
  [[nodiscard]] std::shared_ptr<const WebgpuPipeline> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const WebgpuPipeline> pipeline);

 private:
  static constexpr std::size_t most_entries = 64;
  struct Entry {
    std::string key;
    std::shared_ptr<const WebgpuPipeline> pipeline;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
};

class WebgpuDevice final : public Device {
 public:
  // Takes the adapter over. `index` counts the adapters that are offered to users.
  [[nodiscard]] static Result<std::unique_ptr<WebgpuDevice>> create(const WgpuLibrary& library,
                                                                    WgpuHandle<WGPUAdapter> adapter, int index);
  ~WebgpuDevice() override;

  [[nodiscard]] DeviceReading read_sensors() override;

  [[nodiscard]] const WgpuLibrary& library() const { return library_; }
  [[nodiscard]] WGPUDevice handle() const { return device_.get(); }
  [[nodiscard]] WGPUQueue queue_handle() const { return queue_.get(); }
  [[nodiscard]] WebgpuPipelineCache& pipelines() { return pipelines_; }

  // Runs `create` inside error scopes: what wgpu reports meanwhile becomes the Result.
  template <class Create>
  [[nodiscard]] auto checked(std::string_view what, Create&& create) -> Result<decltype(create())> {
    const std::lock_guard lock(scope_mutex_);
    push_scopes();
    auto object = create();
    if (Status status = pop_scopes(what); !status) return tl::make_unexpected(std::move(status.error()));
    return object;
  }

  [[nodiscard]] Result<WgpuHandle<WGPUBuffer>> create_buffer(std::uint64_t bytes, WGPUBufferUsage usage,
                                                             std::string_view what);

  // The first error that reached no scope since the last call.
  [[nodiscard]] Status take_uncaptured_error();
  // A lost device stays lost: every further call on it fails with this.
  [[nodiscard]] Status check_not_lost();

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource& source) override;
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::wgsl; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t bytes) override;
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) override;
  [[nodiscard]] Result<DriverMemory> driver_memory() const override;

 private:
  WebgpuDevice(const WgpuLibrary& library, DeviceDescription description, WgpuHandle<WGPUAdapter> adapter)
      : Device(std::move(description)), library_(library), adapter_(std::move(adapter)) {}
  [[nodiscard]] Status open(const WGPULimits& limits);
  void measure_subgroups();
  void push_scopes();
  [[nodiscard]] Status pop_scopes(std::string_view what);
  void keep_error(std::optional<Error>& place, ErrorKind kind, std::string message);

  const WgpuLibrary& library_;
  WgpuHandle<WGPUAdapter> adapter_;
  WgpuHandle<WGPUDevice> device_;
  WgpuHandle<WGPUQueue> queue_;
  WebgpuPipelineCache pipelines_;
  std::mutex scope_mutex_;  // error scopes belong to the device, not to a thread
  std::mutex error_mutex_;
  std::optional<Error> uncaptured_;
  std::optional<Error> lost_;
};

class WebgpuBuffer final : public Buffer {
 public:
  WebgpuBuffer(WebgpuDevice& device, WgpuHandle<WGPUBuffer> buffer, std::uint64_t bytes)
      : Buffer(device, bytes), buffer_(std::move(buffer)), charge_(device.budget(), bytes) {}
  ~WebgpuBuffer() override;
  [[nodiscard]] void* device_pointer() const override { return nullptr; }
  [[nodiscard]] WGPUBuffer handle() const { return buffer_.get(); }
  // What was allocated: the size rounded up to whole words.
  [[nodiscard]] std::uint64_t padded_bytes() const { return (bytes() + 3) / 4 * 4; }

 private:
  WgpuHandle<WGPUBuffer> buffer_;
  BudgetCharge charge_;
};

}  // namespace cingulum
