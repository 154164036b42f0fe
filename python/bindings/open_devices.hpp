// Devices that functions of arrays compute on: opened when one is first asked for, and kept as long as something of
// theirs is.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "device/registry.hpp"

namespace cingulum::python {

// A device with a queue of its own, which goes before it. One caller at a time: lock `mutex`.
struct OpenDevice : OpenedDevice {
  std::unique_ptr<Queue> queue;
  std::mutex mutex;
};

// `name` as --device takes it. Who asks again while it is held gets the same.
[[nodiscard]] Result<std::shared_ptr<OpenDevice>> open_device(const std::string& name);

}  // namespace cingulum::python
