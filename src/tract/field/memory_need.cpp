#include "tract/field/memory_need.hpp"

#include <fmt/format.h>

#include "base/quantity.hpp"
#include "device/working_memory.hpp"

namespace cingulum {
namespace {

std::string ways_out(const Device& device, const Field& field) {
  std::string ways;
  const bool spherical = field.kind == FieldKind::amplitudes || field.kind == FieldKind::harmonics;
  if (spherical && !field.is_float16()) ways += fmt::format("{} half, ", argument_name("field_precision"));
  ways += fmt::format("{} for fewer voxels, ", argument_name("mask"));
  if (field.kind == FieldKind::amplitudes) {
    ways += fmt::format("a smaller {} or spherical harmonics instead of amplitudes, ", argument_name("sphere"));
  }
  if (device.description().backend != Backend::cpu) {
    ways += fmt::format("{} cpu", argument_name("device"));
  } else {
    ways += fmt::format("another {}", argument_name("device"));
  }
  const auto memory = device.memory();
  if (memory && memory->limit_bytes) ways += ", or raise CINGULUM_MEMORY_LIMIT";
  return ways;
}

}  // namespace

std::uint64_t free_memory_of(const Device& device) {
  const auto memory = device.memory();
  if (!memory || !memory->free_bytes) return ~std::uint64_t{0};
  return *memory->free_bytes + WorkingMemory::kept_on(device);
}

Error out_of_device_memory(const Device& device, const MemoryNeed& need, const Field& field) {
  const std::uint64_t have = free_memory_of(device);
  return Error(ErrorKind::out_of_memory,
               fmt::format("device {}: tracking needs {} at least ({} of it for the field), {}; use {}", device.id(),
                           format_bytes(need.total_bytes()), format_bytes(need.field_bytes),
                           have == ~std::uint64_t{0} ? "which could not be had" : "free are " + format_bytes(have),
                           ways_out(device, field)));
}

Status check_memory(const Device& device, const MemoryNeed& need, const Field& field) {
  if (need.total_bytes() <= free_memory_of(device)) return {};
  return tl::make_unexpected(out_of_device_memory(device, need, field));
}

Status check_host_memory(const Device& device, const Field& field) {
  const auto memory = device.memory();
  if (!memory || !memory->limit_bytes) return {};
  const MemoryNeed need{.field_bytes = field.stored_bytes().size(),
                        .tables_bytes = field.record_of_voxel.size() * sizeof(std::uint32_t)};
  return check_memory(device, need, field);
}

}  // namespace cingulum
