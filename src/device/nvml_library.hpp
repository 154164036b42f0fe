// The shim of NVML, NVIDIA's monitoring library: names, memory, load, temperature and power of GPUs. The CUDA device
// asks for its own sensors, the ring's GPU monitor for all GPUs of the machine. It needs no CUDA, neither to build nor
// to run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/description.hpp"

namespace cingulum {

struct NvmlGpu {
  int index = 0;
  std::string name;
  std::string uuid;
  DeviceReading reading;
};

class NvmlLibrary {
 public:
  // Fails where there is no NVML, or no driver behind it; the message says which file was tried.
  [[nodiscard]] static Result<NvmlLibrary> open(const std::optional<std::filesystem::path>& override_path);

  // A member that NVML does not report is absent, and so are all, with a note, where it does not know the GPU.
  [[nodiscard]] DeviceReading read_sensors(const std::string& bus_id) const;
  [[nodiscard]] Result<std::vector<NvmlGpu>> read_gpus() const;

 private:
  struct Functions;
  explicit NvmlLibrary(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}

  std::shared_ptr<const Functions> functions_;
};

// A reading of the GPU at a PCI address by the library that is opened once for the process. Where NVML is not there,
// every member is absent and the note says why.
[[nodiscard]] DeviceReading read_nvml_sensors(const std::string& bus_id,
                                              const std::optional<std::filesystem::path>& override_path);

}  // namespace cingulum
