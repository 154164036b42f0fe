// An NVIDIA GPU through the CUDA runtime, which is linked statically; the driver is looked for at run time (probe.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "device/blocking_calls.hpp"
#include "device/device.hpp"
#include "device/kernel_cache.hpp"
#include "device/registry.hpp"

namespace cingulum {

class CudaDevice final : public Device {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CudaDevice>> create(int ordinal, int driver_version,
                                                                  const ProbeOptions& options);

  [[nodiscard]] DeviceReading read_sensors() override;
  [[nodiscard]] bool can_copy_directly_to(const Device& other) const override;
  [[nodiscard]] bool freeing_waits() const override { return blocking_calls_->forbidden(); }

  [[nodiscard]] int ordinal() const { return description().index; }
  // Makes this device the calling thread's current one.
  [[nodiscard]] Status make_current() const;
  // Every free, unload and wait for the whole device passes through here.
  [[nodiscard]] BlockingCalls& blocking_calls() const { return *blocking_calls_; }
  // Waits for all work on the device; refused while a persistent kernel runs.
  [[nodiscard]] Status synchronise_device() const;

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource& source) override;
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::cuda_cpp; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t bytes) override;
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) override;
  [[nodiscard]] Result<DriverMemory> driver_memory() const override;

 private:
  CudaDevice(DeviceDescription description, ProbeOptions options)
      : Device(std::move(description)),
        options_(std::move(options)),
        blocking_calls_(std::make_unique<BlockingCalls>(id())) {
    if (options_.kernel_cache_dir) cache_.emplace(*options_.kernel_cache_dir, options_.kernel_cache_limit_bytes);
  }

  ProbeOptions options_;
  std::string bus_id_;  // by which NVML knows the device
  std::optional<KernelCache> cache_;
  std::unique_ptr<BlockingCalls> blocking_calls_;
};

}  // namespace cingulum
