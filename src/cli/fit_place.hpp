// Where --device and CINGULUM_DEVICE let `cingulum fit` compute: found before any work, said in the log and in
// fit.json.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "dmri/models/fit_device.hpp"

namespace cingulum {

struct FitPlace {
  std::optional<DeviceRegistry> registry;  // outlives the device
  std::unique_ptr<FitDevice> device;       // null: the CPU's threads

  [[nodiscard]] std::string name() const { return device ? device->name() : "cpu"; }
};

// Fails where the device is not there, or cannot fit; `auto` takes CUDA where it is there.
[[nodiscard]] Result<FitPlace> find_fit_place(VerbContext& context);

}  // namespace cingulum
