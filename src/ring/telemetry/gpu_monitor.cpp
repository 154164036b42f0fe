#include "ring/telemetry/gpu_monitor.hpp"

#include <utility>

namespace cingulum::ring {
namespace {

GpuReading not_available(std::string why) {
  GpuReading reading;
  reading.note = std::move(why);
  return reading;
}

GpuReading of(const NvmlGpu& gpu) {
  const DeviceReading& sensors = gpu.reading;
  GpuReading reading;
  reading.index = gpu.index;
  if (!gpu.name.empty()) reading.name = gpu.name;
  reading.uuid = gpu.uuid;
  reading.memory_total_bytes = sensors.memory_total_bytes.value_or(0);
  reading.memory_used_bytes = sensors.memory_used_bytes.value_or(0);
  reading.utilisation = sensors.utilisation.value_or(0);
  reading.memory_utilisation = sensors.memory_utilisation.value_or(0);
  reading.temperature_celsius = sensors.temperature_celsius.value_or(0);
  reading.power_watts = sensors.power_watts.value_or(0);
  reading.power_limit_watts = sensors.power_limit_watts.value_or(0);
  reading.note = sensors.note;
  return reading;
}

}  // namespace

GpuMonitor::GpuMonitor(const std::optional<std::filesystem::path>& nvml_library)
    : library_(NvmlLibrary::open(nvml_library)) {}

std::vector<GpuReading> GpuMonitor::read() const {
  if (!library_) return {not_available(library_.error().message())};
  const auto gpus = library_->read_gpus();
  if (!gpus) return {not_available(gpus.error().message())};
  if (gpus->empty()) return {not_available("NVML sees no GPU")};
  std::vector<GpuReading> readings;
  for (const NvmlGpu& gpu : *gpus) readings.push_back(of(gpu));
  return readings;
}

}  // namespace cingulum::ring
