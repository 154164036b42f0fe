#include "device/registry.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "device/backends.hpp"
#include "device/cpu/cpu_device.hpp"

namespace cingulum {
namespace {

// The backends, best first. `auto` takes the first device of this order that is not emulated.
constexpr BackendProbe backend_probes[] = {
    {Backend::cuda, probe_cuda}, {Backend::webgpu, probe_webgpu}, {Backend::cpu, probe_cpu}};

bool is_gpu(const Device& device) {
  return device.description().backend != Backend::cpu && !device.capabilities().software;
}

}  // namespace

BackendReport probe_cpu(const ProbeOptions& options) {
  BackendReport report{.backend = Backend::cpu, .absent_reason = {}, .library = {}, .devices = {}};
  auto device = CpuDevice::create(options.cpu_threads);
  if (device) {
    report.devices.push_back(std::move(*device));
  } else {
    report.absent_reason = device.error().message();
  }
  return report;
}

Result<ProbeOptions> ProbeOptions::from_settings(const Settings& settings) {
  ProbeOptions options;
  CGL_TRY_ASSIGN(options.cpu_threads, settings.threads());
  CGL_TRY_ASSIGN(options.memory_limit_bytes, settings.memory_limit_bytes());
  CGL_TRY_ASSIGN(options.cuda_library, settings.library(Setting::cuda_library));
  CGL_TRY_ASSIGN(options.nvrtc_library, settings.library(Setting::nvrtc_library));
  CGL_TRY_ASSIGN(options.nvml_library, settings.library(Setting::nvml_library));
  CGL_TRY_ASSIGN(options.wgpu_library, settings.library(Setting::wgpu_library));
  // Without a home there is no cache, and everything else works.
  if (auto folder = settings.cache_dir()) {
    options.kernel_cache_dir = std::move(*folder);
  } else {
    log_debug("compiled kernels are not kept: {}", folder.error().message());
  }
  CGL_TRY_ASSIGN(options.kernel_cache_limit_bytes, settings.cache_limit_bytes());
  return options;
}

Result<DeviceRegistry> DeviceRegistry::probe(const ProbeOptions& options) {
  return probe(options, backend_probes);
}

Result<DeviceRegistry> DeviceRegistry::probe(const ProbeOptions& options, std::span<const BackendProbe> probes) {
  return catch_out_of_memory([&]() -> Result<DeviceRegistry> {
    DeviceRegistry registry;
    registry.options_ = options;
    registry.probes_ = probes;
    if (options.wanted) {
      CGL_TRY_ASSIGN(const std::vector<std::string> names, parse_device_list(*options.wanted));
      for (const BackendProbe& probe : probes) {
        const auto means_it = [&](const std::string& name) { return registry.can_mean(name, probe.backend); };
        if (probe.backend == Backend::cpu || std::any_of(names.begin(), names.end(), means_it)) registry.open(probe);
      }
    }
    if (!options.wanted || !registry.select(*options.wanted)) CGL_TRY(registry.open_rest());
    return registry;
  });
}

Status DeviceRegistry::open_rest() {
  return catch_out_of_memory([&]() -> Status {
    for (const BackendProbe& probe : probes_) {
      if (!is_open(probe.backend)) open(probe);
    }
    return {};
  });
}

void DeviceRegistry::open(const BackendProbe& probe) {
  if (!options_.webgpu && probe.backend == Backend::webgpu) return;
  BackendReport report = probe.open(options_);
  for (auto& device : report.devices) device->budget().set_limit(options_.memory_limit_bytes);
  // In the order of the list, whenever it is opened.
  auto place = backends_.begin();
  for (const BackendProbe& better : probes_) {
    if (better.backend == probe.backend) break;
    if (is_open(better.backend)) ++place;
  }
  backends_.insert(place, std::move(report));
}

bool DeviceRegistry::is_open(Backend backend) const {
  return std::any_of(backends_.begin(), backends_.end(),
                     [&](const BackendReport& report) { return report.backend == backend; });
}

bool DeviceRegistry::has_gpu() const {
  const std::vector<Device*> all = devices();
  return std::any_of(all.begin(), all.end(), [](const Device* device) { return is_gpu(*device); });
}

// Whether `name` may be a device of this backend, with those that are open already.
bool DeviceRegistry::can_mean(std::string_view name, Backend backend) const {
  if (name == "auto" || name == "gpu") return !has_gpu();
  if (name == "metal") return backend == Backend::webgpu;
  return name.starts_with(backend_name(backend));
}

std::vector<Device*> DeviceRegistry::devices() const {
  std::vector<Device*> all;
  for (const BackendReport& report : backends_) {
    for (const auto& device : report.devices) all.push_back(device.get());
  }
  return all;
}

std::string DeviceRegistry::available() const {
  std::string list;
  for (const Device* device : devices()) {
    if (!list.empty()) list += ", ";
    list += device->id();
  }
  return list;
}

Result<Device*> DeviceRegistry::find(std::string_view name) const {
  const std::vector<Device*> all = devices();
  const auto first = [&](auto accept) -> Device* {
    const auto found = std::find_if(all.begin(), all.end(), [&](Device* device) { return accept(*device); });
    return found == all.end() ? nullptr : *found;
  };

  Device* found = nullptr;
  if (name == "auto") {
    found = first([](const Device& device) { return !device.capabilities().software; });
  } else if (name == "gpu") {
    found = first(is_gpu);
  } else if (name == "numba") {
    found = first([](const Device& device) { return device.description().backend == Backend::cpu; });
  } else if (name == "metal") {
    found = first([](const Device& device) { return device.description().architecture == "metal"; });
  } else {
    // "cuda" is the first CUDA device; any other name is an id.
    found = first([&](const Device& device) {
      return device.id() == name || backend_name(device.description().backend) == name;
    });
  }
  if (found != nullptr) return found;

  for (const BackendReport& report : backends_) {
    if (report.devices.empty() && name.starts_with(backend_name(report.backend))) {
      return fail(ErrorKind::unavailable, "device '{}' is not available: {} (available: {})", name,
                  report.absent_reason, available());
    }
  }
  if (name == "gpu" || name == "metal") {
    return fail(ErrorKind::unavailable, "device '{}' is not available: there is none here (available: {})", name,
                available());
  }
  return fail(ErrorKind::invalid_argument, "unknown device '{}' (available: auto, {})", name, available());
}

Result<std::vector<Device*>> DeviceRegistry::select(std::string_view wanted) const {
  return catch_out_of_memory([&]() -> Result<std::vector<Device*>> {
    std::vector<Device*> chosen;
    CGL_TRY_ASSIGN(const std::vector<std::string> names, parse_device_list(wanted));
    for (const std::string& name : names) {
      CGL_TRY_ASSIGN(Device * device, find(name));
      chosen.push_back(device);
    }
    return chosen;
  });
}

Result<Device*> DeviceRegistry::select_one(std::string_view wanted) const {
  CGL_TRY_ASSIGN(const std::vector<Device*> chosen, select(wanted));
  if (chosen.size() != 1) {
    return fail(ErrorKind::invalid_argument, "'{}' names {} devices; one is needed here", wanted, chosen.size());
  }
  return chosen.front();
}

Result<DeviceRegistry> open_devices(const Settings& settings, std::optional<std::string> wanted) {
  CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(settings));
  options.wanted = std::move(wanted);
  return DeviceRegistry::probe(options);
}

Result<OpenedDevice> open_one_device(const Settings& settings, const std::string& wanted) {
  OpenedDevice opened;
  CGL_TRY_ASSIGN(DeviceRegistry registry, open_devices(settings, wanted));
  opened.registry = std::make_unique<DeviceRegistry>(std::move(registry));
  CGL_TRY_ASSIGN(opened.device, opened.registry->select_one(wanted));
  return opened;
}

}  // namespace cingulum
