#include "cli/fit_place.hpp"

#include "base/log.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<FitPlace> find_fit_place(VerbContext& context) {
  const std::vector<std::string>& names = context.common().devices;
  if (names.size() != 1) {
    return fail(ErrorKind::invalid_argument, "--device {}: a fit runs on one device; name one", fmt::join(names, ","));
  }
  const std::string& name = names.front();
  FitPlace place;
  // Opening a GPU takes a while.
  if (name == "cpu" || name == "numba") return place;
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
  options.webgpu = name != "auto";  // it does not fit
  CGL_TRY_ASSIGN(place.registry, DeviceRegistry::probe(options));
  if (name != "auto") {
    CGL_TRY_ASSIGN(Device* const device, add_context(place.registry->select_one(name), "--device {}", name));
    CGL_TRY_ASSIGN(place.device, add_context(make_fit_device(*device), "--device {}", name));
    return place;
  }
  auto made = choose_fit_device(*place.registry, name, 1);
  if (!made) {
    log_warning("--device auto: the CPU fits: {}", made.error());
    return place;
  }
  place.device = std::move(*made);
  if (place.device) log_info("--device auto: fitting on {}", place.name());
  return place;
}

}  // namespace cingulum
