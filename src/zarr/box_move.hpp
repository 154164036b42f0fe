// A box of elements that goes from one strided place to another: from the bytes of a chunk to a region in memory, or
// back. Plain numbers, the same for the host's copy and for the kernels of devices. Dimensions that lie alike on both
// sides are joined, so that most boxes have two or three.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cingulum::zarr {

constexpr std::size_t max_move_rank = 8;

struct BoxMove {
  std::uint32_t rank = 0;            // joined dimensions, slowest first; 0: one element
  std::uint32_t element_bytes = 1;   // 1, 2, 4, 8, 16
  std::uint32_t swapped_bytes = 1;   // in numbers of so many bytes the byte order is turned; 1: nowhere (complex: half)
  std::uint32_t shuffled = 0;        // 1: byte b of element e of the chunk stands at b * chunk_elements + e
  std::uint64_t chunk_elements = 0;  // of the whole chunk, where shuffled
  std::uint64_t chunk_offset = 0;    // of the first element in the chunk, in elements
  std::uint64_t place_offset = 0;    // of the first element in the region's memory, in bytes
  std::array<std::uint64_t, max_move_rank> extent{};
  std::array<std::uint64_t, max_move_rank> chunk_stride{};  // in elements
  std::array<std::int64_t, max_move_rank> place_stride{};   // in bytes

  [[nodiscard]] std::uint64_t element_count() const {
    std::uint64_t count = 1;
    for (std::uint32_t d = 0; d < rank; ++d) count *= extent[d];
    return count;
  }
};

// One dimension of a box before it is joined with others.
struct MoveDimension {
  std::uint64_t extent = 1;
  std::uint64_t chunk_stride = 0;  // in elements
  std::int64_t place_stride = 0;   // in bytes
};
// Orders the dimensions by their strides in the place, leaves those of extent 1 out and joins those that lie behind
// each other on both sides. Answers how many are left, at the front of `dimensions`.
[[nodiscard]] std::size_t join_dimensions(std::span<MoveDimension> dimensions);

// The bytes of a chunk to a region at `place` (the move's offsets count from both).
void scatter(const BoxMove& move, const std::byte* chunk, std::byte* place);
// The other way: into a chunk's bytes.
void gather(const BoxMove& move, const std::byte* place, std::byte* chunk);
// One element, over the box. `element` is in the region's byte order.
void fill_box(const BoxMove& move, std::span<const std::byte> element, std::byte* place);

}  // namespace cingulum::zarr
