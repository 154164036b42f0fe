#include "device/nvml_library.hpp"

#include <array>
#include <utility>

#include "device/shared_library.hpp"

namespace cingulum {
namespace {

// The part of NVML's C interface that is used; its header belongs to the driver's development files, which a build does
// not need.
using NvmlDevice = struct NvmlDeviceObject*;
using NvmlResult = int;
constexpr NvmlResult nvml_success = 0;
constexpr int nvml_temperature_gpu = 0;
constexpr std::size_t longest_name = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlUtilization {
  unsigned gpu;
  unsigned memory;
};

}  // namespace

struct NvmlLibrary::Functions {
  NvmlResult (*nvmlInit_v2)() = nullptr;
  const char* (*nvmlErrorString)(NvmlResult) = nullptr;
  NvmlResult (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetHandleByIndex_v2)(unsigned, NvmlDevice*) = nullptr;
  NvmlResult (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, NvmlDevice*) = nullptr;
  NvmlResult (*nvmlDeviceGetName)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlResult (*nvmlDeviceGetUUID)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlResult (*nvmlDeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlResult (*nvmlDeviceGetUtilizationRates)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlResult (*nvmlDeviceGetTemperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetPowerUsage)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetPowerManagementLimit)(NvmlDevice, unsigned*) = nullptr;

  [[nodiscard]] DeviceReading read(NvmlDevice device) const;
};

Result<NvmlLibrary> NvmlLibrary::open(const std::optional<std::filesystem::path>& override_path) {
  CGL_TRY_ASSIGN(const SharedLibrary file, SharedLibrary::open(override_path, {"libnvidia-ml.so.1"}));
  Functions library;
#define CGL_FIND(name) CGL_TRY(file.find(#name, library.name))
  CGL_FIND(nvmlInit_v2);
  CGL_FIND(nvmlErrorString);
  CGL_FIND(nvmlDeviceGetCount_v2);
  CGL_FIND(nvmlDeviceGetHandleByIndex_v2);
  CGL_FIND(nvmlDeviceGetHandleByPciBusId_v2);
  CGL_FIND(nvmlDeviceGetName);
  CGL_FIND(nvmlDeviceGetUUID);
  CGL_FIND(nvmlDeviceGetMemoryInfo);
  CGL_FIND(nvmlDeviceGetUtilizationRates);
  CGL_FIND(nvmlDeviceGetTemperature);
  CGL_FIND(nvmlDeviceGetPowerUsage);
  CGL_FIND(nvmlDeviceGetPowerManagementLimit);
#undef CGL_FIND
  if (const NvmlResult code = library.nvmlInit_v2(); code != nvml_success) {
    return fail(ErrorKind::unavailable, "NVML does not start: {}", library.nvmlErrorString(code));
  }
  return NvmlLibrary(std::make_shared<const Functions>(library));
}

DeviceReading NvmlLibrary::Functions::read(NvmlDevice device) const {
  DeviceReading reading;
  NvmlMemory memory{};
  if (nvmlDeviceGetMemoryInfo(device, &memory) == nvml_success) {
    reading.memory_used_bytes = memory.used;
    reading.memory_total_bytes = memory.total;
  }
  NvmlUtilization load{};
  if (nvmlDeviceGetUtilizationRates(device, &load) == nvml_success) {
    reading.utilisation = load.gpu / 100.0;
    reading.memory_utilisation = load.memory / 100.0;
  }
  unsigned value = 0;
  if (nvmlDeviceGetTemperature(device, nvml_temperature_gpu, &value) == nvml_success) {
    reading.temperature_celsius = value;
  }
  if (nvmlDeviceGetPowerUsage(device, &value) == nvml_success) reading.power_watts = value / 1000.0;
  if (nvmlDeviceGetPowerManagementLimit(device, &value) == nvml_success) reading.power_limit_watts = value / 1000.0;
  return reading;
}

DeviceReading NvmlLibrary::read_sensors(const std::string& bus_id) const {
  NvmlDevice device = nullptr;
  if (const NvmlResult code = functions_->nvmlDeviceGetHandleByPciBusId_v2(bus_id.c_str(), &device);
      code != nvml_success) {
    DeviceReading reading;
    reading.note = fmt::format("NVML does not know {}: {}", bus_id, functions_->nvmlErrorString(code));
    return reading;
  }
  return functions_->read(device);
}

Result<std::vector<NvmlGpu>> NvmlLibrary::read_gpus() const {
  unsigned count = 0;
  if (const NvmlResult code = functions_->nvmlDeviceGetCount_v2(&count); code != nvml_success) {
    return fail(ErrorKind::unavailable, "NVML does not count its GPUs: {}", functions_->nvmlErrorString(code));
  }
  std::vector<NvmlGpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    NvmlGpu gpu;
    gpu.index = static_cast<int>(i);
    NvmlDevice device = nullptr;
    if (const NvmlResult code = functions_->nvmlDeviceGetHandleByIndex_v2(i, &device); code != nvml_success) {
      gpu.reading.note = fmt::format("NVML does not open GPU {}: {}", i, functions_->nvmlErrorString(code));
      gpus.push_back(std::move(gpu));
      continue;
    }
    gpu.reading = functions_->read(device);
    std::array<char, longest_name> text{};
    if (functions_->nvmlDeviceGetName(device, text.data(), text.size() - 1) == nvml_success) gpu.name = text.data();
    text = {};
    if (functions_->nvmlDeviceGetUUID(device, text.data(), text.size() - 1) == nvml_success) gpu.uuid = text.data();
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

DeviceReading read_nvml_sensors(const std::string& bus_id, const std::optional<std::filesystem::path>& override_path) {
  static const Result<NvmlLibrary> nvml = NvmlLibrary::open(override_path);
  if (nvml) return nvml->read_sensors(bus_id);
  DeviceReading reading;
  reading.note = nvml.error().message();
  return reading;
}

}  // namespace cingulum
