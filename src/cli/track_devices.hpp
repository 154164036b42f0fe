// What --device, --ngpus and CINGULUM_DEVICE mean for `cingulum track`: found before any work, said in the output and
// in the sidecar.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

struct WantedDevices {
  DeviceRegistry registry;
  std::string names;  // as the user said it, or `auto`
  std::uint32_t gpus = 1;
};

// Fails where a device is not there.
[[nodiscard]] Result<WantedDevices> wanted_devices(const ParsedArguments& arguments, VerbContext& context);

// Where models are fitted for them: null is the CPU. Says so where the CPU fits for a GPU.
[[nodiscard]] Result<std::unique_ptr<FitDevice>> fitting_device(const WantedDevices& wanted);

// The trackers of the wanted devices; says where `auto` went and why not further up.
[[nodiscard]] Result<TrackingDevices> tracking_devices(const WantedDevices& wanted, ThreadPool& pool,
                                                       const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                                                       const GivenDirections* directions);

}  // namespace cingulum
