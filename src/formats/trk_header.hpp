// The header of a TRK file: its 1000 bytes taken apart for a reader, and made from a layout for a writer. Called by
// trk_reader.cpp and trk_writer.cpp; of records it knows nothing. The format is described in trk.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

constexpr std::string_view trk_magic{"TRACK\0", 6};
constexpr std::size_t trk_header_bytes = 1000;

// Where those fields lie that are looked at in the bytes of a whole header.
constexpr std::size_t trk_at_scalar_count = 36;
constexpr std::size_t trk_at_property_count = 238;
constexpr std::size_t trk_at_count = 988;

struct TrkHeader {
  bool big_endian = false;
  std::uint64_t streamlines = 0;  // 0: to the end of the file
  std::size_t scalar_columns = 0;
  std::size_t property_columns = 0;
  Affine to_world;  // from the positions of the file
};
// The file's header, checked against the size of the file; grid, fields, number of streamlines and warnings go into the
// layout.
[[nodiscard]] Result<TrkHeader> read_trk_header(std::span<const std::byte> file, TractogramLayout& layout);

// The header of a file whose number of streamlines is not known yet.
struct NewTrkHeader {
  std::array<std::byte, trk_header_bytes> bytes = {};
  Affine to_trackvis;  // from the world to the positions of the file
};
[[nodiscard]] Result<NewTrkHeader> make_trk_header(const TractogramLayout& layout);

// The header of a file, which must be little-endian, with a count of zero.
[[nodiscard]] Result<std::vector<std::byte>> trk_header_without_count(std::span<const std::byte> file);

}  // namespace cingulum
