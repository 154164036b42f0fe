#include "device/opening_devices.hpp"

#include <utility>

namespace cingulum {

OpeningDevices::OpeningDevices(ProbeOptions options)
    : opening_(std::async(std::launch::async | std::launch::deferred,
                          [options = std::move(options)] { return DeviceRegistry::probe(options); })) {}

Result<DeviceRegistry*> OpeningDevices::wait() {
  if (!opened_) opened_ = opening_.get();
  if (!*opened_) return tl::make_unexpected(opened_->error());
  return &**opened_;
}

}  // namespace cingulum
