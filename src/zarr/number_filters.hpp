// Filters that compute with the numbers of a chunk: differences, fixed scale and offset, rounding of fractions. They
// give the bytes that numcodecs gives, so the type in which each operation is rounded is a part of the format. Called
// by codec.cpp, which has checked that sizes are multiples of an element; a type that a filter cannot take is a
// failure.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

// The first element, then differences, computed in the decoded type (integers modulo 2^bits) and cast to the encoded.
[[nodiscard]] Status encode_delta(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);
// Sums, taken one after the other in the decoded type.
[[nodiscard]] Status decode_delta(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);

// (x - offset) * scale in the decoded type where it is floating, else in float64; halves are rounded to even. What the
// encoded type cannot hold is taken modulo 2^bits.
[[nodiscard]] Status encode_fixed_scale_offset(const Codec& codec, std::span<const std::byte> in,
                                               std::span<std::byte> out);
// x / scale + offset in the encoded type where it is floating, else in float64.
[[nodiscard]] Status decode_fixed_scale_offset(const Codec& codec, std::span<const std::byte> in,
                                               std::span<std::byte> out);

// Keeps keep_bits of each fraction, halves to even; the rest is zero. Nothing undoes it.
[[nodiscard]] Status encode_bitround(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace cingulum::zarr
