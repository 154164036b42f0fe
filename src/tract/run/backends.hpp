// The trackers of the backends, each in its own folder. Only device_choice.cpp calls them. The device outlives the
// tracker.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

[[nodiscard]] Result<std::unique_ptr<Tracker>> make_cuda_tracker(Device& device);
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device);

}  // namespace cingulum
