// The devices that a request asks for by `device`, `ngpus` and CINGULUM_DEVICE: found before anything is computed or
// written, said in the output and in the sidecar.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "device/opening_devices.hpp"
#include "device/registry.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

// They are opened while the caller reads its data.
class WantedDevices {
 public:
  WantedDevices(std::string names, std::uint32_t gpus, ProbeOptions options)
      : names_(std::move(names)), gpus_(gpus), opening_(std::make_shared<OpeningDevices>(std::move(options))) {}

  // The same devices for one of several runs, which has them once `wait_for_lease` comes back.
  [[nodiscard]] WantedDevices leased(std::function<Status()> wait_for_lease) const {
    WantedDevices same = *this;
    same.wait_for_lease_ = std::move(wait_for_lease);
    return same;
  }

  // Waits until they are open, and for its lease. Fails where a device is not there.
  [[nodiscard]] Result<DeviceRegistry*> registry();
  [[nodiscard]] const std::string& names() const { return names_; }  // as the user said it, or `auto`
  [[nodiscard]] std::uint32_t gpus() const { return gpus_; }

 private:
  std::string names_;
  std::uint32_t gpus_;
  std::shared_ptr<OpeningDevices> opening_;
  std::function<Status()> wait_for_lease_;  // empty: at once
};

// Begins to open them.
[[nodiscard]] Result<WantedDevices> wanted_devices(const TrackRequest& request, RunMachine& machine);

// Where models are fitted for them: null is the CPU. Says so where the CPU fits for a GPU.
[[nodiscard]] Result<std::unique_ptr<FitDevice>> fitting_device(WantedDevices& wanted);

// The trackers of the wanted devices; says where `auto` went and why not further up.
[[nodiscard]] Result<TrackingDevices> tracking_devices(WantedDevices& wanted, ThreadPool& pool,
                                                       const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                                                       const GivenDirections* directions);

}  // namespace cingulum
