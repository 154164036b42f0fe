// TCK, the tracks of MRtrix: a text header ("mrtrix tracks", key: value lines, END), then x y z of every point as
// Float32 or Float64 in either byte order, a triplet of NaN after each streamline and one of infinity at the end.
// Positions are RAS+ millimetres; there is no grid, no field and no group. Called through tractogram.hpp and by the
// fuzz target. Read: a streamline without points is kept, as MRtrix does (nibabel leaves it out); the header's count is
// a claim, and a warning is added at the end when it was wrong. Written: Float32LE, or Float64LE where the layout asks
// for float64; notes of the layout become header lines; data begin at a multiple of 64 bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "formats/file_bytes.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

[[nodiscard]] bool looks_like_tck(std::span<const std::byte> file);
[[nodiscard]] Result<std::unique_ptr<TractogramReader>> open_tck(std::string shown, FileBytes file);
[[nodiscard]] Result<std::unique_ptr<TractogramWriter>> create_tck_writer(const std::filesystem::path& path,
                                                                          const TractogramLayout& layout,
                                                                          const WriteOptions& options);

}  // namespace cingulum
