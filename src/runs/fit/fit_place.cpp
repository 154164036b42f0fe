#include "runs/fit/fit_place.hpp"

#include "base/log.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<FitPlace> FitPlace::begin(const FitRequest& request, RunMachine& machine) {
  std::vector<std::string> names = request.device.value();
  if (!request.device.given()) {
    CGL_TRY_ASSIGN(names, machine.settings().devices());
  }
  if (names.size() != 1) {
    return fail(ErrorKind::invalid_argument, "{} {}: a fit runs on one device; name one", argument_name("device"),
                fmt::join(names, ","));
  }
  const std::string& name = names.front();
  if (name == "cpu" || name == "numba") return FitPlace(name, nullptr);
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(machine.settings()));
  options.wanted = name;
  options.webgpu = name != "auto";  // it does not fit
  return FitPlace(name, std::make_unique<OpeningDevices>(std::move(options)));
}

Result<FitDevice*> FitPlace::find_device() {
  if (!opening_) return nullptr;
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, opening_->wait());
  if (wanted_ != "auto") {
    CGL_TRY_ASSIGN(Device* const device,
                   add_context(registry->select_one(wanted_), "{} {}", argument_name("device"), wanted_));
    CGL_TRY_ASSIGN(device_, add_context(make_fit_device(*device), "{} {}", argument_name("device"), wanted_));
    return device_.get();
  }
  auto made = choose_fit_device(*registry, wanted_, 1);
  if (!made) {
    log_warning("{} auto: the CPU fits: {}", argument_name("device"), made.error());
    return nullptr;
  }
  device_ = std::move(*made);
  if (device_) log_info("{} auto: fitting on {}", argument_name("device"), name());
  return device_.get();
}

}  // namespace cingulum
