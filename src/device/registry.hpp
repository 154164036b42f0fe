// Which devices there are. One explicit list of backends (registry.cpp), in order of preference, each probed at run
// time; a backend that has no device says why. The verbs and the trackers get their devices here and nowhere else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/settings.hpp"
#include "device/device.hpp"

namespace cingulum {

struct BackendReport {
  Backend backend;
  std::string absent_reason;               // why it has no device; empty where it has some
  std::vector<std::string> failures = {};  // devices that are there and could not be opened
  std::string library;                     // what was opened, with its version
  std::vector<std::unique_ptr<Device>> devices;
};

// What the environment and the command line say about devices.
struct ProbeOptions {
  int cpu_threads = 0;  // 0: all cores
  bool gpus = true;     // false: only the CPU is opened
  bool webgpu = true;   // false: WebGPU is not opened
  std::optional<std::uint64_t> memory_limit_bytes;
  // Files to open instead of searching for the vendor's libraries.
  std::optional<std::filesystem::path> cuda_library;
  std::optional<std::filesystem::path> nvrtc_library;
  std::optional<std::filesystem::path> nvml_library;
  std::optional<std::filesystem::path> wgpu_library;
  // Where compiled kernels are kept between runs; absent: they are not.
  std::optional<std::filesystem::path> kernel_cache_dir;
  std::uint64_t kernel_cache_limit_bytes = 0;

  [[nodiscard]] static Result<ProbeOptions> from_settings(const Settings& settings);
};

class DeviceRegistry {
 public:
  // Probes all backends. A backend that is not there is a reason in its report, not an error. Vendor libraries are
  // opened once in a process: later probes keep those of the first.
  [[nodiscard]] static Result<DeviceRegistry> probe(const ProbeOptions& options = {});

  [[nodiscard]] std::span<const BackendReport> backends() const { return backends_; }
  [[nodiscard]] std::vector<Device*> devices() const;

  // `wanted` is what --device takes: auto, cpu, cuda, cuda:N, webgpu, webgpu:N, metal (WebGPU on macOS), gpu (the best
  // GPU), numba (the CPU), or a comma-separated list of those, a device possibly named twice. `auto` is the first
  // device that is not emulated. An unknown or absent device is an error that lists those there are.
  [[nodiscard]] Result<std::vector<Device*>> select(std::string_view wanted) const;
  [[nodiscard]] Result<Device*> select_one(std::string_view wanted) const;

 private:
  [[nodiscard]] Result<Device*> find(std::string_view name) const;
  [[nodiscard]] std::string available() const;

  std::vector<BackendReport> backends_;
};

}  // namespace cingulum
