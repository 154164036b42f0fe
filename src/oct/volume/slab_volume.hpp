// A slice while it is made: float32 (plane, row, column), in memory, or in a temporary file where memory is not to hold
// it. Corrections walk over it in slabs of planes or in bands of rows; what they make does not depend on how large
// these are. Called by slice_blend.cpp and by the corrections along depth. The temporary file has no name, so
// nothing is left of it. It knows nothing of units.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/volume_file.hpp"
#include "zarr/level_file.hpp"

namespace cingulum::oct {

class SlabVolume {
 public:
  // The whole volume is in memory; it stays the caller's.
  explicit SlabVolume(HostVolume& volume);
  // Makes a volume in a temporary file beside `path`, `slab_planes` of it in memory at a time.
  [[nodiscard]] static Result<SlabVolume> in_file(const std::filesystem::path& path,
                                                  const std::array<std::size_t, 3>& shape, std::size_t slab_planes);
  // Makes another volume of the same size and kind, zero or not yet written.
  [[nodiscard]] Result<SlabVolume> another() const;

  [[nodiscard]] std::size_t planes() const { return shape_[0]; }
  [[nodiscard]] std::size_t rows() const { return shape_[1]; }
  [[nodiscard]] std::size_t columns() const { return shape_[2]; }
  [[nodiscard]] std::size_t plane_size() const { return shape_[1] * shape_[2]; }

  // Calls body(first plane, slab) for slabs of planes, or body(first row, band) for bands of rows with all planes, in
  // ascending order. make: what is there is not read; change: what the body leaves is written back.
  using Body = std::function<Status(std::size_t first, HostVolume& part)>;
  using LookingBody = std::function<Status(std::size_t first, const HostVolume& part)>;
  [[nodiscard]] Status make_slabs(const Body& body);
  [[nodiscard]] Status change_slabs(const Body& body);
  [[nodiscard]] Status look_at_slabs(const LookingBody& body) const;
  [[nodiscard]] Status change_bands(const Body& body);

  [[nodiscard]] Status read_box(const PlaneBox& box, std::span<float> to) const;
  // Rows of all planes: the volume itself where it is in memory and all rows are asked for, else `held`.
  [[nodiscard]] Result<const HostVolume*> band(std::size_t first_row, std::size_t rows, HostVolume& held) const;

  // Rows of a band, and of a piece that is written: a slice in a file takes so many rows of all planes.
  static constexpr std::size_t rows_of_band = 16;

 private:
  SlabVolume() = default;
  [[nodiscard]] HostVolume slab_at(std::size_t first) const;
  [[nodiscard]] Status write_rows(std::size_t first_plane, std::size_t first_row, const HostVolume& part);

  std::array<std::size_t, 3> shape_ = {0, 0, 0};
  HostVolume* volume_ = nullptr;
  std::unique_ptr<HostVolume> owned_;
  std::unique_ptr<zarr::LevelFile> file_;
  std::filesystem::path path_;
  std::size_t slab_planes_ = 0;
};

// The mean over planes.
[[nodiscard]] Result<HostImage> mean_projection(const SlabVolume& volume, ThreadPool* pool);

}  // namespace cingulum::oct
