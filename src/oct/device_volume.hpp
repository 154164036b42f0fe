// A volume of float32 in device memory, ordered (z, y, x) with x fastest: what every OCT kernel takes and gives. A map
// over the lateral plane is a volume of one plane. It holds memory and a shape; spacing and place are the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/device.hpp"
#include "oct/boundary.hpp"

namespace cingulum::oct {

struct VolumeShape {
  std::uint32_t z = 0;
  std::uint32_t y = 0;
  std::uint32_t x = 0;

  [[nodiscard]] std::uint64_t plane() const { return std::uint64_t{y} * x; }
  [[nodiscard]] std::uint64_t voxels() const { return z * plane(); }
  [[nodiscard]] std::uint64_t bytes() const { return voxels() * sizeof(float); }
  friend bool operator==(const VolumeShape&, const VolumeShape&) = default;
};

struct DeviceVolume {
  std::shared_ptr<Buffer> buffer;  // at least shape.bytes(), from the first voxel on
  VolumeShape shape;
};

}  // namespace cingulum::oct
