// The kernel tables as one buffer of 32-bit words, for devices: every table begins at a multiple of 32 words, found by
// its offset. CUDA turns the offsets into the pointers of TrackingInput; WGSL, which has no pointers, reads by offset.
// Records and the numbers of records per voxel are buffers of their own, uploaded from the Field as they are. Made by
// the trackers of devices.
#pragma once

#include <cstdint>
#include <vector>

#include "tract/cpu/tables.hpp"
#include "tract/field/field.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum {

// Offsets in words. A table that this plan does not need has offset 0 and is not there.
struct TableOffsets {
  std::uint32_t occupied;        // words
  std::uint32_t sphere_x;        // floats
  std::uint32_t sphere_y;        //
  std::uint32_t sphere_z;        //
  std::uint32_t neighbours;      // words
  std::uint32_t harmonics;       // floats
  std::uint32_t record_index;    // words
  std::uint32_t recurrence;      // floats
  std::uint32_t boot_basis;      // floats
  std::uint32_t boot_fit;        //
  std::uint32_t boot_level;      // words
  std::uint32_t residual_scale;  // floats
  std::uint32_t disc_k1;         //
  std::uint32_t disc_k2;         //
  std::uint32_t nearest;         // words
};

struct DeviceTables {
  TrackingInput input{};  // plan and counts; its pointers are null
  TableOffsets offsets{};
  std::vector<std::uint32_t> words;  // the first 32 are zero
};

// Fails where plan and field do not fit each other.
[[nodiscard]] Result<DeviceTables> make_device_tables(const TrackingPlan& plan, const Field& field);

// The input with pointers into device memory (or host memory, for a device that shares it).
[[nodiscard]] TrackingInput with_pointers(const DeviceTables& tables, const std::uint32_t* words,
                                          const std::uint32_t* record_of_voxel, const void* records);

}  // namespace cingulum
