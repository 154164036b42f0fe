// A device that does nothing and has as much memory as a test says, or does not report any. Not used outside tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "device/device.hpp"

namespace cingulum::test {

class LittleDevice final : public Device {
 public:
  explicit LittleDevice(std::optional<std::uint64_t> free_bytes) : Device({}), free_bytes_(free_bytes) {
    mutable_description().id = "little";
  }
  [[nodiscard]] DeviceReading read_sensors() override { return {}; }

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource&) override { return nothing(); }
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::native; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t) override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t, HostMemoryKind) override {
    return nothing();
  }
  [[nodiscard]] Result<DriverMemory> driver_memory() const override {
    if (!free_bytes_) return nothing();
    return DriverMemory{.total_bytes = 1 << 20, .free_bytes = free_bytes_};
  }

 private:
  static tl::unexpected<Error> nothing() { return fail(ErrorKind::unavailable, "there is nothing"); }
  std::optional<std::uint64_t> free_bytes_;
};

}  // namespace cingulum::test
