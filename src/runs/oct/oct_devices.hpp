// The devices that a request of OCT asks for, by `device` or CINGULUM_DEVICE. The bits are the same on all, so it does
// not matter which of them takes a tile.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/registry.hpp"
#include "runs/machine.hpp"

namespace cingulum {

struct OctDevices {
  std::vector<OpenedDevice> opened;  // outlive what uses the devices
  std::vector<Device*> devices;
  [[nodiscard]] std::vector<std::string> names() const;
};

// Each is opened by itself: one that is named twice has twice its threads or queues. `names` as wanted_device_names.
[[nodiscard]] Result<OctDevices> open_oct_devices(const std::vector<std::string>& names, const RunMachine& machine);

}  // namespace cingulum
