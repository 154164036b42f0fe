// Makes the trackers that --device and --ngpus ask for, ready to run a plan. Called by the verbs and by Python. A
// device that cannot run the plan is refused with the reason before any work; only `auto` tries further devices, and
// reports to the caller which it passed over and why.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "device/registry.hpp"
#include "dmri/models/fit_device.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

// The tracker of a device; the CPU's runs on `pool`. Both outlive it.
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_tracker(Device& device, ThreadPool& pool);

// What fits models on a device; null for the CPU, where the pool does. Refused for WebGPU, which tracks what others
// fitted.
[[nodiscard]] Result<std::unique_ptr<FitDevice>> make_fit_device(Device& device);

struct TrackingDevices {
  std::vector<std::unique_ptr<Tracker>> trackers;  // prepared; one per name, a device may be named twice
  std::string names;                     // "cuda:0", "cuda:0,cpu": what the argument `device` would have to say
  std::vector<std::string> passed_over;  // by `auto`: better devices, each with the reason (marked text)

  [[nodiscard]] std::vector<Tracker*> pointers() const;
};

// Checks that `wanted` names devices that are there: auto, cpu, cuda, cuda:N, webgpu, metal, gpu or a list. `gpus`
// above 1 with a single name takes that many GPUs of its backend.
[[nodiscard]] Result<std::vector<Device*>> choose_devices(const DeviceRegistry& registry, std::string_view wanted,
                                                          std::uint32_t gpus);

// Makes and prepares the trackers. Plan, field, seeds and directions outlive them. Where `auto` passes over a device,
// backends that are not open yet are opened.
[[nodiscard]] Result<TrackingDevices> prepare_trackers(DeviceRegistry& registry, std::string_view wanted,
                                                       std::uint32_t gpus, ThreadPool& pool, const TrackingPlan& plan,
                                                       const Field& field, const Seeds& seeds,
                                                       const GivenDirections* directions);

}  // namespace cingulum
