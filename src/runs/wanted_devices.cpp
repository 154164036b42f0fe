#include "runs/wanted_devices.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<std::vector<std::string>> wanted_device_names(const Parameter<std::vector<std::string>>& device,
                                                     const RunMachine& machine) {
  if (device.given()) return device.value();
  return machine.settings().devices();
}

Result<WantedDevices> WantedDevices::begin(std::string names, std::uint32_t gpus, const RunMachine& machine,
                                           bool webgpu) {
  CGL_TRY(add_context(parse_device_list(names), "{} {}", argument_name("device"), names));
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(machine.settings()));
  options.wanted = names;
  options.webgpu = webgpu;
  const auto open = [options = std::move(options)] {
    return std::make_shared<Result<DeviceRegistry>>(DeviceRegistry::probe(options));
  };
  return WantedDevices(std::move(names), gpus, std::async(std::launch::async | std::launch::deferred, open).share());
}

Result<DeviceRegistry*> WantedDevices::registry() {
  if (wait_for_lease_) CGL_TRY(wait_for_lease_());
  Result<DeviceRegistry>& opened = *opening_.get();
  if (!opened) return tl::make_unexpected(opened.error());
  CGL_TRY(add_context(choose_devices(*opened, names_, gpus_), "{} {}", argument_name("device"), names_));
  return &*opened;
}

Result<std::vector<Device*>> WantedDevices::devices() {
  CGL_TRY_ASSIGN(const DeviceRegistry* const opened, registry());
  return choose_devices(*opened, names_, gpus_);
}

Result<std::unique_ptr<FitDevice>> WantedDevices::fitting_device(std::string_view the_cpu_instead) {
  CGL_TRY_ASSIGN(const DeviceRegistry* const opened, registry());
  std::vector<Device*> candidates = opened->devices();
  if (!is_auto()) {
    CGL_TRY_ASSIGN(candidates, choose_devices(*opened, names_, gpus_));
  }
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Device* device) { return device->description().backend == Backend::cuda; });
  if (found == candidates.end()) return std::unique_ptr<FitDevice>();
  auto made = make_fit_device(**found);
  if (made || !is_auto()) return made;
  log_warning("{} auto: {}: {}", argument_name("device"), the_cpu_instead, made.error());
  return std::unique_ptr<FitDevice>();
}

}  // namespace cingulum
