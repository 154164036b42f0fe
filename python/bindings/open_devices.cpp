#include "open_devices.hpp"

#include <map>

#include "base/settings.hpp"

namespace cingulum::python {

Result<std::shared_ptr<OpenDevice>> open_device(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<OpenDevice>> held;
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<OpenDevice> found = held[name].lock()) return found;
  auto opened = std::make_shared<OpenDevice>();
  CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
  CGL_TRY_ASSIGN(static_cast<OpenedDevice&>(*opened), open_one_device(settings, name));
  // Under another name it may be open: memory and kernels must meet on one.
  std::weak_ptr<OpenDevice>& known = held[opened->device->id()];
  if (std::shared_ptr<OpenDevice> found = known.lock()) {
    held[name] = found;
    return found;
  }
  CGL_TRY_ASSIGN(opened->queue, opened->device->create_queue());
  known = opened;
  held[name] = opened;
  return opened;
}

}  // namespace cingulum::python
