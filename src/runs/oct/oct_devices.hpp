// The devices that a request of OCT asks for, by `device` or CINGULUM_DEVICE. The bits are the same on all, so it does
// not matter which of them takes a tile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/registry.hpp"
#include "runs/machine.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

struct OctDevices {
  std::vector<std::unique_ptr<DeviceRegistry>> registries;  // outlive what uses the devices
  std::vector<Device*> devices;
  [[nodiscard]] std::vector<std::string> names() const;
};

// As the caller wrote them, such as `auto` or `cuda:0`.
[[nodiscard]] Result<std::vector<std::string>> oct_device_names(const OctRequest& request, const RunMachine& machine);
[[nodiscard]] Result<OctDevices> open_oct_devices(const std::vector<std::string>& names, const RunMachine& machine);

}  // namespace cingulum
