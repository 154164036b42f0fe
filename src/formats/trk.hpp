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
#include <string>

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
