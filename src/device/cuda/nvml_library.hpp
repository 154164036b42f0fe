// The shim of NVML, NVIDIA's monitoring library: memory, load, temperature and power of a GPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "device/description.hpp"

namespace cingulum {

// A reading of the GPU at a PCI address. Where NVML is not there, every member is absent and the note says why.
[[nodiscard]] DeviceReading read_nvml_sensors(const std::string& bus_id,
                                              const std::optional<std::filesystem::path>& override_path);

}  // namespace cingulum
