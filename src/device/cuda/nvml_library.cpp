#include "device/cuda/nvml_library.hpp"

#include "base/result.hpp"
#include "device/shared_library.hpp"

namespace cingulum {
namespace {

// The part of NVML's C interface that is used; its header belongs to the driver's development files, which a build does
// not need.
using NvmlDevice = struct NvmlDeviceObject*;
using NvmlResult = int;
constexpr NvmlResult nvml_success = 0;
constexpr int nvml_temperature_gpu = 0;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlUtilization {
  unsigned gpu;
  unsigned memory;
};

struct NvmlLibrary {
  NvmlResult (*nvmlInit_v2)() = nullptr;
  const char* (*nvmlErrorString)(NvmlResult) = nullptr;
  NvmlResult (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, NvmlDevice*) = nullptr;
  NvmlResult (*nvmlDeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlResult (*nvmlDeviceGetUtilizationRates)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlResult (*nvmlDeviceGetTemperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetPowerUsage)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetPowerManagementLimit)(NvmlDevice, unsigned*) = nullptr;
};

Result<NvmlLibrary> open_library(const std::optional<std::filesystem::path>& override_path) {
  CGL_TRY_ASSIGN(const SharedLibrary file, SharedLibrary::open(override_path, {"libnvidia-ml.so.1"}));
  NvmlLibrary library;
#define CGL_FIND(name) CGL_TRY(file.find(#name, library.name))
  CGL_FIND(nvmlInit_v2);
  CGL_FIND(nvmlErrorString);
  CGL_FIND(nvmlDeviceGetHandleByPciBusId_v2);
  CGL_FIND(nvmlDeviceGetMemoryInfo);
  CGL_FIND(nvmlDeviceGetUtilizationRates);
  CGL_FIND(nvmlDeviceGetTemperature);
  CGL_FIND(nvmlDeviceGetPowerUsage);
  CGL_FIND(nvmlDeviceGetPowerManagementLimit);
#undef CGL_FIND
  if (const NvmlResult code = library.nvmlInit_v2(); code != nvml_success) {
    return fail(ErrorKind::unavailable, "NVML does not start: {}", library.nvmlErrorString(code));
  }
  return library;
}

}  // namespace

DeviceReading read_nvml_sensors(const std::string& bus_id, const std::optional<std::filesystem::path>& override_path) {
  static const Result<NvmlLibrary> nvml = open_library(override_path);
  DeviceReading reading;
  if (!nvml) {
    reading.note = nvml.error().message();
    return reading;
  }
  NvmlDevice device = nullptr;
  if (const NvmlResult code = nvml->nvmlDeviceGetHandleByPciBusId_v2(bus_id.c_str(), &device); code != nvml_success) {
    reading.note = fmt::format("NVML does not know {}: {}", bus_id, nvml->nvmlErrorString(code));
    return reading;
  }
  NvmlMemory memory{};
  if (nvml->nvmlDeviceGetMemoryInfo(device, &memory) == nvml_success) {
    reading.memory_used_bytes = memory.used;
    reading.memory_total_bytes = memory.total;
  }
  NvmlUtilization load{};
  if (nvml->nvmlDeviceGetUtilizationRates(device, &load) == nvml_success) {
    reading.utilisation = load.gpu / 100.0;
    reading.memory_utilisation = load.memory / 100.0;
  }
  unsigned value = 0;
  if (nvml->nvmlDeviceGetTemperature(device, nvml_temperature_gpu, &value) == nvml_success) {
    reading.temperature_celsius = value;
  }
  if (nvml->nvmlDeviceGetPowerUsage(device, &value) == nvml_success) reading.power_watts = value / 1000.0;
  if (nvml->nvmlDeviceGetPowerManagementLimit(device, &value) == nvml_success)
    reading.power_limit_watts = value / 1000.0;
  return reading;
}

}  // namespace cingulum
