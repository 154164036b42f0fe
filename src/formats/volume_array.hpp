// Volumes that somebody else holds in memory, in any layout and real type: arrays of Python, or the numbers of an
// image. They are read where they lie, by voxels in the order of files (x fastest), each number rounded once to
// float32. Called by whoever makes signals or a field of them. The memory is the caller's, and stays until he has read
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/cancel.hpp"
#include "base/element_type.hpp"
#include "base/result.hpp"

namespace cingulum {

class VolumeArray {
 public:
  VolumeArray() = default;
  // float32, x fastest, volume after volume; whole volumes of `voxels`.
  VolumeArray(std::span<const float> values, std::size_t voxels);
  // Steps from one number to the next along x, y, z and the volumes, in numbers; they may be negative or 0.
  VolumeArray(const void* first, ElementType type, const std::array<std::size_t, 4>& shape,
              const std::array<std::int64_t, 4>& steps);

  // Booleans, (u)int8 to (u)int64, float32, float64.
  [[nodiscard]] static bool is_readable(ElementType type) noexcept;

  [[nodiscard]] std::size_t voxels() const noexcept { return shape_[0] * shape_[1] * shape_[2]; }
  [[nodiscard]] std::size_t volumes() const noexcept { return shape_[3]; }
  [[nodiscard]] bool empty() const noexcept { return voxels() * volumes() == 0; }
  // The numbers as they lie, where that is float32 with x fastest, volume after volume; else empty.
  [[nodiscard]] std::span<const float> as_they_lie() const;

  // to.size() voxels of a volume from `first` on. any thread
  void read(std::size_t volume, std::size_t first, std::span<float> to) const;
  // All volumes of some voxels, which ascend, a record each. any thread
  void read_records(std::span<const std::uint32_t> voxels, std::span<float> records) const;

  // hash_hex() of the numbers as float32, x fastest, volume after volume, however they lie.
  [[nodiscard]] Result<std::string> hash(const CancelToken& cancel) const;

 private:
  const void* first_ = nullptr;
  ElementType type_ = {};
  std::array<std::size_t, 4> shape_ = {0, 0, 0, 0};
  std::array<std::int64_t, 4> steps_ = {1, 0, 0, 0};
};

}  // namespace cingulum
