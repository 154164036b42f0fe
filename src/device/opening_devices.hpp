// Devices that are opened by a thread while their caller reads data: a GPU takes some tenths of a second. Used by the
// verbs that read much, `track` and `fit`.
#pragma once

#include <future>
#include <optional>

#include "base/result.hpp"
#include "device/registry.hpp"

namespace cingulum {

// one caller at a time
class OpeningDevices {
 public:
  // Begins to open; where no thread can be had, they are opened when they are asked for.
  explicit OpeningDevices(ProbeOptions options);
  // Ends once they are open: no thread is left.
  ~OpeningDevices() = default;
  OpeningDevices(const OpeningDevices&) = delete;
  OpeningDevices& operator=(const OpeningDevices&) = delete;

  // Waits for them. The same registry, or the same failure, every time; it lives as long as this.
  [[nodiscard]] Result<DeviceRegistry*> wait();

 private:
  std::optional<Result<DeviceRegistry>> opened_;
  std::future<Result<DeviceRegistry>> opening_;
};

}  // namespace cingulum
