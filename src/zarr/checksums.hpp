// The checksums that codecs put behind the bytes of a chunk. Called by codec.cpp and, for CRC-32C alone, by whoever
// reads an index (zarr::crc32c of codec.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cingulum::zarr {

// As HDF5 computes it: sums of big-endian words of 16 bits modulo 65535, an odd last byte as the upper half of a word.
[[nodiscard]] std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept;

// Copies `from` to `to` and answers its CRC-32C; every byte is fetched from memory once.
[[nodiscard]] std::uint32_t copy_with_crc32c(std::span<const std::byte> from, std::byte* to) noexcept;

}  // namespace cingulum::zarr
