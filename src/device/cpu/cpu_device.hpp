// The CPU as a device: memory is host memory, a queue does its work at once on the caller's thread, a kernel is a
// registered function run over the blocks of the grid by the thread pool. Always there; the truth that GPUs must equal.
#pragma once

#include <memory>
#include <vector>

#include "base/thread_pool.hpp"
#include "device/device.hpp"

namespace cingulum {

class CpuDevice final : public Device {
 public:
  // `threads` 0 takes all cores.
  [[nodiscard]] static Result<std::unique_ptr<CpuDevice>> create(int threads = 0);

  [[nodiscard]] DeviceReading read_sensors() override;
  [[nodiscard]] ThreadPool& thread_pool() { return *pool_; }

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource& source) override;
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::native; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t bytes) override;
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t bytes, HostMemoryKind kind) override;
  [[nodiscard]] Result<DriverMemory> driver_memory() const override;

 private:
  CpuDevice(DeviceDescription description, std::unique_ptr<ThreadPool> pool)
      : Device(std::move(description)), pool_(std::move(pool)) {}

  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace cingulum
