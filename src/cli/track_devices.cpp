#include "cli/track_devices.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace cingulum {

Result<WantedDevices> wanted_devices(const ParsedArguments& arguments, VerbContext& context) {
  std::string names = arguments.text("device");
  if (!arguments.given("device")) {
    CGL_TRY_ASSIGN(const std::vector<std::string> devices, context.settings().devices());
    names = fmt::format("{}", fmt::join(devices, ","));
  }
  CGL_TRY_ASSIGN(const std::vector<std::string> list, add_context(parse_device_list(names), "--device {}", names));
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
  // Opening a GPU takes a while.
  options.gpus =
      !std::all_of(list.begin(), list.end(), [](const std::string& name) { return name == "cpu" || name == "numba"; });
  CGL_TRY_ASSIGN(DeviceRegistry registry, DeviceRegistry::probe(options));
  const auto gpus = static_cast<std::uint32_t>(arguments.integer("ngpus"));
  CGL_TRY(add_context(choose_devices(registry, names, gpus), "--device {}", names));
  return WantedDevices{std::move(registry), std::move(names), gpus};
}

Result<TrackingDevices> tracking_devices(const WantedDevices& wanted, ThreadPool& pool, const TrackingPlan& plan,
                                         const Field& field, const Seeds& seeds, const GivenDirections* directions) {
  CGL_TRY_ASSIGN(TrackingDevices devices,
                 prepare_trackers(wanted.registry, wanted.names, wanted.gpus, pool, plan, field, seeds, directions));
  for (const std::string& reason : devices.passed_over) log_warning("--device auto: not used: {}", reason);
  if (wanted.names == "auto") log_info("--device auto: tracking on {}", devices.names);
  return devices;
}

}  // namespace cingulum
