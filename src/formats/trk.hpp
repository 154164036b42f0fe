// TRK, the tracks of TrackVis (trackvis.org/docs/?subsect=fileformat): a header of 1000 bytes, then for each streamline
// its number of points, the points with their scalars, and its properties, all float32 in either byte order. Called
// through tractogram.hpp and by the fuzz target. Positions in the file are millimetres along the voxel axes from the
// corner of the first voxel; in memory they are world coordinates: p_world = vox_to_ras (order (p / voxel_size - 1/2)),
// where `order` turns the axes of voxel_order into those of vox_to_ras as nibabel does. This is computed in float64
// from the numbers that the header holds and rounded once: batches hold doubles unless float is asked for, so that TRK
// to TRK gives the same coordinates again. layout.position_type is float32. Fields are named as nibabel names them:
// "name", or "name" 0 "columns" in the 20 bytes. Read: versions 1, 2 and 3 (warning for 1 and 3); a missing vox_to_ras
// is the identity, with a warning; a count of 0 means to the end of the file. Written: version 2, voxel_order as the
// affine implies, fields of any real type as float32.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "formats/file_bytes.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

constexpr std::size_t trk_most_fields = 10;  // of points, and of streamlines

[[nodiscard]] bool looks_like_trk(std::span<const std::byte> file);
[[nodiscard]] Result<std::unique_ptr<TractogramReader>> open_trk(std::string shown, FileBytes file);
[[nodiscard]] Result<std::unique_ptr<TractogramWriter>> create_trk_writer(const std::filesystem::path& path,
                                                                          const TractogramLayout& layout,
                                                                          const WriteOptions& options);
// A file of the records of others, whose bytes are not touched: of one that differs from the first in more than its
// count, nothing is taken. After a failure nothing is left.
class TrkJoin {
 public:
  // The header is that of `first`.
  [[nodiscard]] static Result<TrkJoin> create(const std::filesystem::path& out, std::span<const std::byte> first,
                                              const WriteOptions& options);
  // The first streamlines of a file; the value is their number of points.
  [[nodiscard]] Result<std::uint64_t> add(std::span<const std::byte> file, std::uint64_t streamlines);
  [[nodiscard]] Status commit();

 private:
  TrkJoin(AtomicFile file, std::vector<std::byte> header) : file_(std::move(file)), header_(std::move(header)) {}

  AtomicFile file_;
  std::vector<std::byte> header_;  // with a count of zero
  std::uint64_t streamlines_ = 0;
};

// Whether a field's name and columns fit the 20 bytes; the failure says why not.
[[nodiscard]] Status check_trk_field(const DataField& field);

// The world axis (0 to 2) and direction (1 or -1) that each voxel axis is nearest to, by the polar factor of the
// affine as nibabel's io_orientation does. Fails for a singular affine.
struct AxisOrientation {
  int world_axis = 0;
  int direction = 1;
};
[[nodiscard]] Result<std::array<AxisOrientation, 3>> orientation_of(const Affine& affine);

}  // namespace cingulum
