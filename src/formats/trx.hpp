// TRX (github.com/tee-ar-ex/trx-spec): a zip archive or a folder with header.json, positions.3.TYPE, offsets.TYPE,
// dpv/NAME[.N].TYPE, dps/..., groups/NAME.uint32, dpg/GROUP/...; numbers little-endian, positions in RAS+ millimetres.
// Called through tractogram.hpp, and by the fuzz targets. What is read from a zip is verified by its CRC-32: header,
// offsets and deflated arrays when the file is opened, groups when they are asked for, positions and fields as they are
// read through to the end. Written: header.json first, positions.3, offsets.uint64 with one entry more than
// streamlines, fields, groups; stored (the arrays deflated where layout.deflated says so), zip64 where needed, one
// fixed time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "formats/file_bytes.hpp"
#include "formats/image_geometry.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

struct TrxHeader {
  ImageGeometry reference;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
};

[[nodiscard]] Result<TrxHeader> parse_trx_header(std::string_view json);
// The same length for all counts: padded with spaces, so that it can be completed when they are known.
[[nodiscard]] std::string format_trx_header(const TrxHeader& header, std::size_t padded_to);
constexpr std::size_t trx_counts_digits = 20;

// A name that every reader of TRX can take apart again: no dots, slashes or control characters.
[[nodiscard]] Status check_trx_name(std::string_view kind, std::string_view name);

// `shown` is the file's name in messages.
[[nodiscard]] Result<std::unique_ptr<TractogramReader>> open_trx(std::string shown, FileBytes file);
[[nodiscard]] Result<std::unique_ptr<TractogramReader>> open_trx_folder(const std::filesystem::path& folder);

[[nodiscard]] Result<std::unique_ptr<TractogramWriter>> create_trx_writer(const std::filesystem::path& path,
                                                                          const TractogramLayout& layout,
                                                                          const WriteOptions& options);

}  // namespace cingulum
