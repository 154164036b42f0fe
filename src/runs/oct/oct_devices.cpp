#include "runs/oct/oct_devices.hpp"

#include <utility>

namespace cingulum {

std::vector<std::string> OctDevices::names() const {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->id());
  return names;
}

Result<OctDevices> open_oct_devices(const std::vector<std::string>& names, const RunMachine& machine) {
  OctDevices result;
  for (const std::string& name : names) {
    CGL_TRY_ASSIGN(OpenedDevice one, open_one_device(machine.settings(), name));
    result.devices.push_back(one.device);
    result.opened.push_back(std::move(one));
  }
  return result;
}

}  // namespace cingulum
