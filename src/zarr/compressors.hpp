// The compressors of Zarr, as functions from bytes in memory to bytes in memory; each takes the settings of its Codec.
// Called by codec.cpp. Encoders give the same bytes on every processor and for any number of threads; `out` has room
// for largest_compressed(). Decoders verify every checksum that the bytes carry, use all bytes of `in`, and write no
// more than `out` holds: everything else is a failure of kind corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

[[nodiscard]] std::uint64_t largest_compressed(const Codec& codec, std::uint64_t bytes);

// No more than so many bytes can come out of `in`, by what it says itself or by the format: known before memory for
// them is asked for.
[[nodiscard]] std::uint64_t most_decompressed(const Codec& codec, std::span<const std::byte> in);

[[nodiscard]] Result<std::size_t> compress(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);
[[nodiscard]] Result<std::size_t> decompress(const Codec& codec, std::span<const std::byte> in,
                                             std::span<std::byte> out);

}  // namespace cingulum::zarr
