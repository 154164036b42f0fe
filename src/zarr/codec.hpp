// One step between the elements of a chunk and the bytes that are stored: a filter, a checksum or a compressor, as
// data, and the two functions that do and undo it on bytes in memory. Metadata (array_metadata.hpp) names the steps,
// codec_chain.hpp runs them one behind the other; nothing here knows of arrays, stores or JSON. Every function bounds
// what it reads and writes: damaged input is a failure of kind corrupt, never a write past `out`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"

namespace cingulum::zarr {

enum class CodecKind {
  // bytes of the same number
  swap_bytes,  // numbers of `element_bytes` in the other byte order
  permute,     // the dimensions of an array in another order
  shuffle,     // first bytes of all elements, then all second bytes, ...
  delta,       // differences of neighbours (numcodecs.delta)
  fixed_scale_offset,
  bitround,
  // checksums behind the bytes, four more
  crc32c,      // Castagnoli, little-endian
  fletcher32,  // as HDF5 has it, little-endian
  // compressors
  gzip,
  zlib,
  bz2,
  zstd,
  blosc,
  lz4,  // numcodecs': the size as 32 bits, then a raw block
};

// Numbers of a filter, with the byte order in which it keeps them.
struct FilterType {
  ElementType type = {};
  bool big_endian = false;
  [[nodiscard]] bool operator==(const FilterType&) const = default;
};

enum class BloscCompressor : std::uint8_t { blosclz, lz4, lz4hc, snappy, zlib, zstd };
enum class BloscShuffle : std::uint8_t { none, bytes, bits };

[[nodiscard]] std::string_view blosc_compressor_name(BloscCompressor compressor);
[[nodiscard]] std::optional<BloscCompressor> blosc_compressor_of(std::string_view name);

struct Codec {
  CodecKind kind = CodecKind::crc32c;
  std::string name = {};  // as the metadata spells it, for messages: "numcodecs.zstd"

  std::size_t element_bytes = 0;          // swap_bytes, shuffle, permute, and blosc's type size
  std::vector<std::uint64_t> shape = {};  // permute: of the array before the step
  std::vector<std::uint32_t> order = {};  // permute: dimension i of the result is dimension order[i] before it
  FilterType decoded = {};                // delta, fixed_scale_offset, bitround: before the step
  FilterType encoded = {};                // and behind it
  double scale = 1, offset = 0;           // fixed_scale_offset: round((x - offset) * scale)
  int keep_bits = 0;                      // bitround
  int level = 0;                          // gzip, zlib, bz2, zstd, blosc; lz4: acceleration
  bool checksum = false;                  // zstd: of the content, behind it
  BloscCompressor compressor = BloscCompressor::lz4;
  BloscShuffle blosc_shuffle = BloscShuffle::bytes;
  std::size_t block_bytes = 0;  // blosc: 0 lets it choose

  [[nodiscard]] bool operator==(const Codec&) const = default;
};

// crc32c and fletcher32: four bytes behind the others.
constexpr std::size_t checksum_bytes = 4;
[[nodiscard]] bool is_checksum(CodecKind kind);
// Whether the number of encoded bytes follows from the number of bytes alone.
[[nodiscard]] bool has_fixed_size(CodecKind kind);
// Whether the stored bytes carry a checksum that decoding verifies (crc32c, fletcher32, gzip, zlib, bz2; zstd where
// `checksum` says so, though a frame's own is always verified).
[[nodiscard]] bool has_checksum(const Codec& codec);
// The bytes that `bytes` become: exactly, where has_fixed_size; at most, elsewhere.
[[nodiscard]] std::uint64_t encoded_bytes(const Codec& codec, std::uint64_t bytes);

// No more than so many bytes can come out of `in`, by what it says itself or by the format: asked before memory is.
[[nodiscard]] std::uint64_t most_decoded_bytes(const Codec& codec, std::span<const std::byte> in);

// Both answer how many bytes of `out` were written. `in` and `out` do not overlap.
// `out` has room for encoded_bytes(codec, in.size()).
[[nodiscard]] Result<std::size_t> encode(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);
// More than out.size() bytes are a failure.
[[nodiscard]] Result<std::size_t> decode(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);

// The checksum codecs, whose bytes need no copy: verifies, and answers `in` without its checksum.
[[nodiscard]] Result<std::span<const std::byte>> verified_content(const Codec& codec, std::span<const std::byte> in);
// The other way: writes the checksum of `content` to the four bytes at `place`.
void append_checksum(const Codec& codec, std::span<const std::byte> content, std::span<std::byte> place);

// CRC-32C (Castagnoli) of `bytes` behind bytes whose CRC is `previous`; 0 is the CRC of no bytes.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0) noexcept;

}  // namespace cingulum::zarr
