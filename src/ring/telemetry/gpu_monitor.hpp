// The GPUs of the machine as their driver sees them: memory, load, temperature, power. The telemetry of a runtime
// carries these readings beside its actors. Without NVML there is one record named "N/A" with zeros, never an error: a
// monitor must not be the reason why something stops. A spinning persistent kernel makes the load read 100 %; how busy
// actors are stands in their own telemetry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/nvml_library.hpp"

namespace cingulum::ring {

struct GpuReading {
  int index = 0;
  std::string name = "N/A";
  std::string uuid;
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double utilisation = 0;         // 0 to 1
  double memory_utilisation = 0;  // 0 to 1: share of time in which memory was read or written
  double temperature_celsius = 0;
  double power_watts = 0;
  double power_limit_watts = 0;
  std::string note;  // why there is nothing to read, where that is so

  [[nodiscard]] bool available() const noexcept { return note.empty(); }
};

class GpuMonitor {
 public:
  // `nvml_library`: the file of the setting CINGULUM_NVML_LIBRARY, where it is set.
  explicit GpuMonitor(const std::optional<std::filesystem::path>& nvml_library = {});

  [[nodiscard]] bool available() const noexcept { return library_.has_value(); }
  // One record per GPU, or the one named "N/A".
  [[nodiscard]] std::vector<GpuReading> read() const;

 private:
  Result<NvmlLibrary> library_;
};

}  // namespace cingulum::ring
