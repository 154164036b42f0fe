// Where `device` and CINGULUM_DEVICE let a fit compute: opened while the series is read, found before anything
// is computed or written, said in the log and in fit.json.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "device/opening_devices.hpp"
#include "dmri/models/fit_device.hpp"
#include "runs/fit/fit_request.hpp"
#include "runs/machine.hpp"

namespace cingulum {

class FitPlace {
 public:
  // Begins to open it.
  [[nodiscard]] static Result<FitPlace> begin(const FitRequest& request, RunMachine& machine);

  // Waits until it is open. Null: the CPU's threads fit. Fails where the device is not there, or cannot fit; `auto`
  // takes CUDA where it is there. Called once.
  [[nodiscard]] Result<FitDevice*> find_device();
  // Known once the device was found.
  [[nodiscard]] std::string name() const { return device_ ? device_->name() : "cpu"; }

 private:
  FitPlace(std::string wanted, std::unique_ptr<OpeningDevices> opening)
      : wanted_(std::move(wanted)), opening_(std::move(opening)) {}

  std::string wanted_;
  std::unique_ptr<OpeningDevices> opening_;  // null: the CPU; outlives the device
  std::unique_ptr<FitDevice> device_;
};

}  // namespace cingulum
