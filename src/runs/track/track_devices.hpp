// What the runs of track make on the devices that their request asks for: the field and the trackers.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "runs/wanted_devices.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

// Begins to open them.
[[nodiscard]] Result<WantedDevices> wanted_devices(const TrackRequest& request, RunMachine& machine);

// Where models are fitted for them: null is the CPU. Says so where the CPU fits for a GPU.
[[nodiscard]] Result<std::unique_ptr<FitDevice>> fitting_device(WantedDevices& wanted);

// The trackers of the wanted devices; says where `auto` went and why not further up.
[[nodiscard]] Result<TrackingDevices> tracking_devices(WantedDevices& wanted, ThreadPool& pool,
                                                       const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                                                       const GivenDirections* directions);

}  // namespace cingulum
