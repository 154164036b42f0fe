// OCT volumes as files: OME-Zarr (z, y, x) with units, read as float32 and written with micrometres, and NIfTI (x, y,
// z) in mm, whose translation is not used. What is not finite becomes zero and is counted. Called by the stages that
// take and give whole volumes. Private attributes of a volume (its tile grid) travel as JSON under "cingulum".
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"
#include "zarr/array_metadata.hpp"
#include "zarr/store.hpp"

namespace cingulum::oct {

using VoxelSize = std::array<double, 3>;  // micrometres: z, y, x

struct VolumeReadOptions {
  ThreadPool* pool = nullptr;
  CancelToken cancel = {};
  std::optional<std::string> unit = {};  // of axes that have none; absent: such an image is refused
  bool complete = true;                  // a chunk that is not stored is a failure
};

struct VolumeFile {
  HostVolume volume;
  VoxelSize voxel_um = {1, 1, 1};
  zarr::Json attributes = zarr::Json::object();  // the member "cingulum" of the group
  std::uint64_t replaced_values = 0;             // were not finite
};

// Sizes and units without voxels.
struct VolumeDescription {
  std::array<std::uint64_t, 3> shape = {0, 0, 0};  // z, y, x
  VoxelSize voxel_um = {1, 1, 1};
  zarr::Json attributes = zarr::Json::object();
};
[[nodiscard]] Result<VolumeDescription> describe_volume(const std::filesystem::path& path,
                                                        const VolumeReadOptions& options = {});
[[nodiscard]] Result<VolumeFile> read_volume(const std::filesystem::path& path, const VolumeReadOptions& options = {});

struct VolumeWriteOptions {
  ThreadPool* pool = nullptr;
  CancelToken cancel = {};
  std::string name = "oct";
  std::optional<std::size_t> levels = 1;  // of the pyramid; absent: until a level is a chunk
  std::size_t boxes_behind = 1;           // that are written while the next is made, where it is made by boxes
};

// Writes one image to the root of an output that the caller commits.
[[nodiscard]] Status write_volume(const HostVolume& volume, const VoxelSize& voxel_um, const zarr::Json& attributes,
                                  zarr::StoreOutput& output, const VolumeWriteOptions& options = {});
// The same as a file that appears whole.
[[nodiscard]] Status write_volume_file(const std::filesystem::path& path, const HostVolume& volume,
                                       const VoxelSize& voxel_um, const zarr::Json& attributes,
                                       const WriteOptions& write, const VolumeWriteOptions& options = {});

// Rows [first_row, first_row + rows) of planes [first_plane, first_plane + planes), all columns.
struct PlaneBox {
  std::size_t first_plane = 0, planes = 0;
  std::size_t first_row = 0, rows = 0;
};

// A volume that is made while it is written, a few planes and rows at a time in ascending order: `to` has room for the
// box, and what it held before in it. Boxes that are made are written by threads of their own, each by one. The levels
// of its pyramid pass through a temporary file beside it.
using MakeBox = std::function<Status(const PlaneBox& box, std::span<float> to)>;
[[nodiscard]] Status write_volume_by_boxes(const std::filesystem::path& path, const std::array<std::size_t, 3>& shape,
                                           const VoxelSize& voxel_um, const zarr::Json& attributes, const MakeBox& make,
                                           const WriteOptions& write, const VolumeWriteOptions& options = {});
// The same file, without a pyramid, of a volume in memory: written from where it lies, a shard by each thread of
// `options.pool`.
[[nodiscard]] Status write_volume_from_memory(const std::filesystem::path& path, const HostVolume& volume,
                                              const VoxelSize& voxel_um, const zarr::Json& attributes,
                                              const WriteOptions& write, const VolumeWriteOptions& options = {});
// Planes and rows that are made at a time: those of a shard, so that each shard is written once.
inline constexpr std::size_t planes_at_a_time = 32;
inline constexpr std::size_t rows_at_a_time = 512;
// Shards or boxes that are written at a time where memory is no concern: while some are copied or made, the disk takes
// others, which their threads wait for. Each has one chunk in memory besides.
inline constexpr std::size_t writers_at_a_time = 4;
inline constexpr std::size_t chunk_rows = 64, chunk_columns = 128;
inline constexpr std::uint64_t writer_bytes = sizeof(float) * planes_at_a_time * chunk_rows * chunk_columns;

// A box, or planes [first, first + count), of an OME-Zarr volume of float32, as this file writes them.
[[nodiscard]] Result<HostVolume> read_box(const std::filesystem::path& path, const PlaneBox& box,
                                          const VolumeReadOptions& options = {});
[[nodiscard]] Result<HostVolume> read_planes(const std::filesystem::path& path, std::size_t first, std::size_t count,
                                             const VolumeReadOptions& options = {});

// Sets what is not finite to zero; the value is how many.
[[nodiscard]] std::uint64_t replace_non_finite(std::span<float> values);

// What the system has free for new work; absent where it does not say.
[[nodiscard]] std::optional<std::uint64_t> free_host_memory();
// Refuses work that needs more memory than the machine has free; `doing` begins the message.
[[nodiscard]] Status check_host_memory(std::string_view doing, std::uint64_t needed_bytes);

}  // namespace cingulum::oct
