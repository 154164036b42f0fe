#include "runs/track/track_devices.hpp"

#include <utility>

#include "base/log.hpp"

namespace cingulum {

Result<WantedDevices> wanted_devices(const TrackRequest& request, RunMachine& machine) {
  std::string names = request.device.value();
  if (!request.device.given()) {
    CGL_TRY_ASSIGN(const std::vector<std::string> devices, machine.settings().devices());
    names = fmt::format("{}", fmt::join(devices, ","));
  }
  return WantedDevices::begin(std::move(names), static_cast<std::uint32_t>(request.ngpus.value()), machine);
}

Result<std::unique_ptr<FitDevice>> fitting_device(WantedDevices& wanted) {
  CGL_TRY_ASSIGN(auto made, wanted.fitting_device("the CPU fits the model"));
  if (made) return made;
  CGL_TRY_ASSIGN(const std::vector<Device*> devices, wanted.devices());
  for (const Device* device : devices) {
    if (device->description().backend == Backend::webgpu) {
      log_info("{} tracks; the CPU makes the field, since WebGPU has no float64", device->id());
      break;
    }
  }
  return made;
}

Result<TrackingDevices> tracking_devices(WantedDevices& wanted, ThreadPool& pool, const TrackingPlan& plan,
                                         const Field& field, const Seeds& seeds, const GivenDirections* directions) {
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, wanted.registry());
  CGL_TRY_ASSIGN(TrackingDevices devices,
                 prepare_trackers(*registry, wanted.names(), wanted.gpus(), pool, plan, field, seeds, directions));
  for (const std::string& reason : devices.passed_over)
    log_warning("{} auto: not used: {}", argument_name("device"), reason);
  if (wanted.is_auto()) log_info("{} auto: tracking on {}", argument_name("device"), devices.names);
  return devices;
}

}  // namespace cingulum
