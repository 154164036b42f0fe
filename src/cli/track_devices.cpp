#include "cli/track_devices.hpp"

#include <utility>

#include "base/log.hpp"

namespace cingulum {

Result<WantedDevices> wanted_devices(const ParsedArguments& arguments, VerbContext& context) {
  std::string names = arguments.text("device");
  if (!arguments.given("device")) {
    CGL_TRY_ASSIGN(const std::vector<std::string> devices, context.settings().devices());
    names = fmt::format("{}", fmt::join(devices, ","));
  }
  CGL_TRY(add_context(parse_device_list(names), "--device {}", names));
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
  options.wanted = names;
  return WantedDevices(std::move(names), static_cast<std::uint32_t>(arguments.integer("ngpus")), std::move(options));
}

Result<DeviceRegistry*> WantedDevices::registry() {
  if (wait_for_turn_) CGL_TRY(wait_for_turn_());
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, opening_->wait());
  CGL_TRY(add_context(choose_devices(*registry, names_, gpus_), "--device {}", names_));
  return registry;
}

Result<std::unique_ptr<FitDevice>> fitting_device(WantedDevices& wanted) {
  CGL_TRY_ASSIGN(const DeviceRegistry* const registry, wanted.registry());
  auto made = choose_fit_device(*registry, wanted.names(), wanted.gpus());
  if (!made && wanted.names() == "auto") {
    log_warning("--device auto: the CPU fits the model: {}", made.error());
    return std::unique_ptr<FitDevice>();
  }
  if (!made || *made) return made;
  CGL_TRY_ASSIGN(const std::vector<Device*> devices, choose_devices(*registry, wanted.names(), wanted.gpus()));
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
  for (const std::string& reason : devices.passed_over) log_warning("--device auto: not used: {}", reason);
  if (wanted.names() == "auto") log_info("--device auto: tracking on {}", devices.names);
  return devices;
}

}  // namespace cingulum
