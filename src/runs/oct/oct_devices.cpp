#include "runs/oct/oct_devices.hpp"

#include <utility>

namespace cingulum {

std::vector<std::string> OctDevices::names() const {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->id());
  return names;
}

Result<std::vector<std::string>> oct_device_names(const OctRequest& request, const RunMachine& machine) {
  if (request.device.given()) return request.device.value();
  return machine.settings().devices();
}

Result<OctDevices> open_oct_devices(const std::vector<std::string>& names, const RunMachine& machine) {
  OctDevices opened;
  for (const std::string& name : names) {
    CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(machine.settings()));
    options.wanted = name;
    CGL_TRY_ASSIGN(DeviceRegistry registry, DeviceRegistry::probe(options));
    opened.registries.push_back(std::make_unique<DeviceRegistry>(std::move(registry)));
    CGL_TRY_ASSIGN(Device* const device, opened.registries.back()->select_one(name));
    opened.devices.push_back(device);
  }
  return opened;
}

}  // namespace cingulum
