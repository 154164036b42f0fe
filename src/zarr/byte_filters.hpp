// Filters that put the bytes of a chunk in another order and look at none of them: byte order, shuffle, transposition.
// Called by codec.cpp, which has checked the sizes: `in` and `out` have the same number of bytes, a multiple of
// element_bytes, and do not overlap. Loops over elements of 2, 4, 8 and 16 bytes are written for the vectoriser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cingulum::zarr {

// The bytes of each element from the last to the first.
void swap_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out);

// First bytes of all elements, then all second bytes, ...
void shuffle_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out);
void unshuffle_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out);

// `in` is an array of `shape`, row-major; dimension i of `out` is dimension order[i] of `in`.
void permute_dimensions(std::span<const std::uint64_t> shape, std::span<const std::uint32_t> order,
                        std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out);
// Back: `out` is the array of `shape`.
void unpermute_dimensions(std::span<const std::uint64_t> shape, std::span<const std::uint32_t> order,
                          std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace cingulum::zarr
