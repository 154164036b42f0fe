// Compares what a tracker needs of a device's memory with what is free, before any work: a refusal names both and the
// ways out. Called by the trackers of devices while they prepare, and for the CPU by device_choice.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "device/device.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

struct MemoryNeed {
  std::uint64_t field_bytes = 0;
  std::uint64_t tables_bytes = 0;   // everything that kernels look up besides
  std::uint64_t working_bytes = 0;  // the least with which streamlines can be tracked

  [[nodiscard]] std::uint64_t total_bytes() const { return field_bytes + tables_bytes + working_bytes; }
};

// Bytes that are free or kept for trackers (device/working_memory.hpp), no more than CINGULUM_MEMORY_LIMIT leaves; the
// largest number where the device does not tell.
[[nodiscard]] std::uint64_t free_memory_of(const Device& device);

// The failure of a device that has less than `need`.
[[nodiscard]] Error out_of_device_memory(const Device& device, const MemoryNeed& need, const Field& field);

// Fails where `need` is more than what is free.
[[nodiscard]] Status check_memory(const Device& device, const MemoryNeed& need, const Field& field);

// For the CPU, which reads the field where it lies: fails where the field is more than the device's limit, if it has
// one.
[[nodiscard]] Status check_host_memory(const Device& device, const Field& field);

}  // namespace cingulum
