#include "device/registry.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "device/backends.hpp"
#include "device/cpu/cpu_device.hpp"

namespace cingulum {
namespace {

// The backends, best first. `auto` takes the first device of this order that is not emulated.
constexpr BackendReport (*const backend_probes[])(const ProbeOptions&) = {probe_cuda, probe_webgpu, probe_cpu};

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
  return catch_out_of_memory([&]() -> Result<DeviceRegistry> {
    DeviceRegistry registry;
    for (const auto probe_backend : backend_probes) {
      if (!options.gpus && probe_backend != probe_cpu) continue;
      if (!options.webgpu && probe_backend == probe_webgpu) continue;
      BackendReport report = probe_backend(options);
      for (auto& device : report.devices) device->budget().set_limit(options.memory_limit_bytes);
      registry.backends_.push_back(std::move(report));
    }
    return registry;
  });
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
  const auto is_gpu = [](const Device& device) {
    return device.description().backend != Backend::cpu && !device.capabilities().software;
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

}  // namespace cingulum
