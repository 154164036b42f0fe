#include "cli/fit_place.hpp"

#include "base/log.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<FitPlace> FitPlace::begin(VerbContext& context) {
  const std::vector<std::string>& names = context.common().devices;
  if (names.size() != 1) {
    return fail(ErrorKind::invalid_argument, "--device {}: a fit runs on one device; name one", fmt::join(names, ","));
  }
  const std::string& name = names.front();
  if (name == "cpu" || name == "numba") return FitPlace(name, nullptr);
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
  options.wanted = name;
  options.webgpu = name != "auto";  // it does not fit
  return FitPlace(name, std::make_unique<OpeningDevices>(std::move(options)));
}

Result<FitDevice*> FitPlace::find_device() {
  if (!opening_) return nullptr;
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, opening_->wait());
  if (wanted_ != "auto") {
    CGL_TRY_ASSIGN(Device* const device, add_context(registry->select_one(wanted_), "--device {}", wanted_));
    CGL_TRY_ASSIGN(device_, add_context(make_fit_device(*device), "--device {}", wanted_));
    return device_.get();
  }
  auto made = choose_fit_device(*registry, wanted_, 1);
  if (!made) {
    log_warning("--device auto: the CPU fits: {}", made.error());
    return nullptr;
  }
  device_ = std::move(*made);
  if (device_) log_info("--device auto: fitting on {}", name());
  return device_.get();
}

}  // namespace cingulum
