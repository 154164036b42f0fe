// The devices that a run is asked for by `device`, `ngpus` and CINGULUM_DEVICE: opened while the run reads its data,
// found before anything is computed or written. Used by the runs of track, a batch's and a viewer's among them, and of
// fit; those of OCT open theirs in oct/oct_devices.hpp and take the names from here. Trackers and what fits are made in
// tract/run/device_choice.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "device/registry.hpp"
#include "dmri/models/fit_device.hpp"
#include "runs/machine.hpp"
#include "runs/parameter.hpp"

namespace cingulum {

// As the caller wrote them, such as `auto` or `cuda:0`, or as CINGULUM_DEVICE says.
[[nodiscard]] Result<std::vector<std::string>> wanted_device_names(const Parameter<std::vector<std::string>>& device,
                                                                   const RunMachine& machine);

class WantedDevices {
 public:
  // Begins to open what `names` can mean; without `webgpu`, no adapter of WebGPU. Where no thread can be had, they are
  // opened when they are asked for.
  [[nodiscard]] static Result<WantedDevices> begin(std::string names, std::uint32_t gpus, const RunMachine& machine,
                                                   bool webgpu = true);

  // The same devices for one of several runs, which has them once `wait_for_lease` comes back.
  [[nodiscard]] WantedDevices leased(std::function<Status()> wait_for_lease) const {
    WantedDevices same = *this;
    same.wait_for_lease_ = std::move(wait_for_lease);
    return same;
  }

  // Both wait until they are open, and for the lease. They fail where a device is not there. The same registry, or the
  // same failure, every time; it lives as long as this.
  [[nodiscard]] Result<DeviceRegistry*> registry();
  [[nodiscard]] Result<std::vector<Device*>> devices();
  // What fits models: the first of them that is CUDA's; for `auto`, that there is. Null: the CPU's threads fit. Where
  // the device of `auto` cannot, a warning says that `the_cpu_instead` ("the CPU fits").
  [[nodiscard]] Result<std::unique_ptr<FitDevice>> fitting_device(std::string_view the_cpu_instead);

  [[nodiscard]] const std::string& names() const { return names_; }  // as the user said it, or `auto`
  [[nodiscard]] std::uint32_t gpus() const { return gpus_; }
  [[nodiscard]] bool is_auto() const { return names_ == "auto"; }

 private:
  // Shared by the runs that have the same devices; they end once they are open, so that no thread is left.
  using Opening = std::shared_future<std::shared_ptr<Result<DeviceRegistry>>>;

  WantedDevices(std::string names, std::uint32_t gpus, Opening opening)
      : names_(std::move(names)), gpus_(gpus), opening_(std::move(opening)) {}

  std::string names_;
  std::uint32_t gpus_;
  Opening opening_;
  std::function<Status()> wait_for_lease_;  // empty: at once
};

}  // namespace cingulum
