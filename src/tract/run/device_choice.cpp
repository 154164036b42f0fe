#include "tract/run/device_choice.hpp"

#include <algorithm>

#include "tract/field/memory_need.hpp"
#include "tract/run/backends.hpp"

namespace cingulum {
namespace {

// A device that is named again: more callers of the tracker that it has, so that the field is on it once.
class AnotherName final : public Tracker {
 public:
  explicit AnotherName(Tracker& tracker) : tracker_(tracker) {}

  [[nodiscard]] std::string name() const override { return tracker_.name(); }
  [[nodiscard]] TrackerHints hints() const override { return tracker_.hints(); }
  [[nodiscard]] Status supports(const TrackingPlan& plan, const Field& field) const override {
    return tracker_.supports(plan, field);
  }
  [[nodiscard]] Status prepare(const TrackingPlan&, const Field&, const Seeds&, const GivenDirections*) override {
    return fail(ErrorKind::invalid_state, "device {}: its tracker is prepared already", name());
  }
  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return tracker_.track(range, batch, cancel);
  }
  // Counted by the tracker itself.
  [[nodiscard]] double kernel_seconds() const override { return 0; }

 private:
  Tracker& tracker_;
};

Result<std::unique_ptr<Tracker>> prepared_tracker(Device& device, ThreadPool& pool, const TrackingPlan& plan,
                                                  const Field& field, const Seeds& seeds,
                                                  const GivenDirections* directions) {
  CGL_TRY_ASSIGN(std::unique_ptr<Tracker> tracker, make_tracker(device, pool));
  CGL_TRY(tracker->supports(plan, field));
  if (device.description().backend == Backend::cpu) CGL_TRY(check_host_memory(device, field));
  CGL_TRY(tracker->prepare(plan, field, seeds, directions));
  return tracker;
}

// The first device for `auto` that was not tried; null after the last.
Device* best_besides(const DeviceRegistry& registry, std::span<const Device* const> tried) {
  for (Device* const device : registry.devices()) {
    if (device->capabilities().software) continue;
    if (std::find(tried.begin(), tried.end(), device) == tried.end()) return device;
  }
  return nullptr;
}

}  // namespace

std::vector<Tracker*> TrackingDevices::pointers() const {
  std::vector<Tracker*> list;
  for (const auto& tracker : trackers) list.push_back(tracker.get());
  return list;
}

Result<std::unique_ptr<Tracker>> make_tracker(Device& device, ThreadPool& pool) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<Tracker>> {
    switch (device.description().backend) {
      case Backend::cuda: return make_cuda_tracker(device);
      case Backend::webgpu: return make_webgpu_tracker(device);
      case Backend::cpu: break;
    }
    return make_cpu_tracker(pool);
  });
}

Result<std::unique_ptr<FitDevice>> make_fit_device(Device& device) {
  switch (device.description().backend) {
    case Backend::cuda: return make_cuda_fit_device(device);
    case Backend::webgpu:
      return fail(ErrorKind::unavailable,
                  "device {}: models are fitted on the CPU or on CUDA, WebGPU has no float64; use {} cpu", device.id(),
                  argument_name("device"));
    case Backend::cpu: break;
  }
  return std::unique_ptr<FitDevice>();
}

Result<std::vector<Device*>> choose_devices(const DeviceRegistry& registry, std::string_view wanted,
                                            std::uint32_t gpus) {
  CGL_TRY_ASSIGN(std::vector<Device*> chosen, registry.select(wanted));
  if (gpus <= 1 || chosen.size() == gpus) return chosen;
  if (chosen.size() > 1) {
    return fail_argument("ngpus", "{} {}: {} {} names {} devices; leave one of the two out", argument_name("ngpus"),
                         gpus, argument_name("device"), wanted, chosen.size());
  }
  const Backend backend = chosen.front()->description().backend;
  if (backend == Backend::cpu) return chosen;
  if (wanted.find(':') != std::string_view::npos) {
    return fail_argument("ngpus", "{} {}: {} {} names one device; give a list or its backend", argument_name("ngpus"),
                         gpus, argument_name("device"), wanted);
  }
  chosen.clear();
  for (Device* device : registry.devices()) {
    if (device->description().backend == backend && !device->capabilities().software && chosen.size() < gpus) {
      chosen.push_back(device);
    }
  }
  if (chosen.size() < gpus) {
    return fail(ErrorKind::unavailable, "{} {}: there are {} GPUs of {}", argument_name("ngpus"), gpus, chosen.size(),
                backend_name(backend));
  }
  return chosen;
}

Result<TrackingDevices> prepare_trackers(DeviceRegistry& registry, std::string_view wanted, std::uint32_t gpus,
                                         ThreadPool& pool, const TrackingPlan& plan, const Field& field,
                                         const Seeds& seeds, const GivenDirections* directions) {
  return catch_out_of_memory([&]() -> Result<TrackingDevices> {
    TrackingDevices result;
    if (wanted == "auto" && gpus <= 1) {
      std::vector<const Device*> tried;
      while (Device* const device = best_besides(registry, tried)) {
        tried.push_back(device);
        auto tracker = prepared_tracker(*device, pool, plan, field, seeds, directions);
        // What the plan itself forbids is wrong everywhere, and the last device is the CPU, which can run the others.
        if (!tracker &&
            (device->description().backend == Backend::cpu || tracker.error().kind() == ErrorKind::invalid_argument)) {
          return tl::make_unexpected(std::move(tracker.error()));
        }
        if (!tracker) {
          result.passed_over.push_back(tracker.error().marked_message());
          CGL_TRY(registry.open_rest());
          continue;
        }
        result.names = device->id();
        result.trackers.push_back(std::move(*tracker));
        return result;
      }
      return fail(ErrorKind::unavailable, "{} auto: there is no device", argument_name("device"));
    }
    CGL_TRY_ASSIGN(const std::vector<Device*> devices, choose_devices(registry, wanted, gpus));
    for (auto device = devices.begin(); device != devices.end(); ++device) {
      if (!result.names.empty()) result.names += ",";
      result.names += (*device)->id();
      const auto before = std::find(devices.begin(), device, *device);
      if (before != device) {
        result.trackers.push_back(
            std::make_unique<AnotherName>(*result.trackers[static_cast<std::size_t>(before - devices.begin())]));
        continue;
      }
      CGL_TRY_ASSIGN(auto tracker, prepared_tracker(**device, pool, plan, field, seeds, directions));
      result.trackers.push_back(std::move(tracker));
    }
    return result;
  });
}

}  // namespace cingulum
