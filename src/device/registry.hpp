// Which devices there are. One explicit list of backends (registry.cpp), in order of preference, each probed at run
// time; a backend that has no device says why. The verbs and the trackers get their devices here and nowhere else.
// Opening a GPU takes a while: a registry opens the backends that its caller wants, and the others when it is asked to.
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
  bool webgpu = true;   // false: WebGPU is not opened
  // What select() will be asked for. Only backends that it can mean are opened: `auto` and `gpu` end at the first that
  // has a GPU. The CPU is always there. Absent: all are opened.
  std::optional<std::string> wanted;
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

// How a backend is opened. The program's own list is in registry.cpp.
struct BackendProbe {
  Backend backend;
  BackendReport (*open)(const ProbeOptions&);
};

class DeviceRegistry {
 public:
  // Opens the backends of `options.wanted`; where a wanted device is not found, all of them, so that the error of
  // select() can name those there are. A backend that is not there is a reason in its report, not an error. Vendor
  // libraries are opened once in a process: later probes keep those of the first. The probes are those of the program,
  // best first, unless a test brings others.
  [[nodiscard]] static Result<DeviceRegistry> probe(const ProbeOptions& options = {});
  [[nodiscard]] static Result<DeviceRegistry> probe(const ProbeOptions& options, std::span<const BackendProbe> probes);

  // Opens what was not wanted so far. Devices stay where they are.
  [[nodiscard]] Status open_rest();

  // Reports of the backends that are open, best first.
  [[nodiscard]] std::span<const BackendReport> backends() const { return backends_; }
  [[nodiscard]] std::vector<Device*> devices() const;

  // `wanted` is what --device takes: auto, cpu, cuda, cuda:N, webgpu, webgpu:N, metal (WebGPU on macOS), gpu (the best
  // GPU), numba (the CPU), or a comma-separated list of those, a device possibly named twice. `auto` is the first
  // device that is not emulated. An unknown or absent device is an error that lists those there are.
  [[nodiscard]] Result<std::vector<Device*>> select(std::string_view wanted) const;
  [[nodiscard]] Result<Device*> select_one(std::string_view wanted) const;

 private:
  void open(const BackendProbe& probe);
  [[nodiscard]] bool is_open(Backend backend) const;
  [[nodiscard]] bool has_gpu() const;
  [[nodiscard]] bool can_mean(std::string_view name, Backend backend) const;
  [[nodiscard]] Result<Device*> find(std::string_view name) const;
  [[nodiscard]] std::string available() const;

  ProbeOptions options_;
  std::span<const BackendProbe> probes_;  // of all backends, best first
  std::vector<BackendReport> backends_;
};

// The devices as settings say; with `wanted`, as DeviceRegistry::probe opens them for it.
[[nodiscard]] Result<DeviceRegistry> open_devices(const Settings& settings,
                                                  std::optional<std::string> wanted = std::nullopt);

// One device, and what keeps it open.
struct OpenedDevice {
  std::unique_ptr<DeviceRegistry> registry;  // outlives what uses the device
  Device* device = nullptr;
};
// `wanted` is what --device takes, and names one.
[[nodiscard]] Result<OpenedDevice> open_one_device(const Settings& settings, const std::string& wanted);

}  // namespace cingulum
