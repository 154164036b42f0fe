// A box as the kernels see it: a BoxMove (zarr/box_move.hpp) with its place in a batch, in units that a thread moves at
// once. Written by box_plan.cpp, read by the kernels of cuda/ and webgpu/; plain numbers, laid out alike on all sides.
// WGSL has no 64-bit numbers and reads the low words: sums of low words, less that of the place where the bound bytes
// begin, are right because the result is below 2^32.
#pragma once

#include <cstdint>

namespace cingulum::zarr {

constexpr std::uint32_t box_rank = 8;
constexpr std::uint32_t box_block_threads = 256;
// Sixteen items a thread: a block moves 64 KiB where items have 16 bytes, enough to hide the search for its record.
constexpr std::uint32_t box_items_per_block = 16 * box_block_threads;

struct BoxRecord {
  std::uint32_t rank;           // dimensions, slowest first
  std::uint32_t unit_bytes;     // an item is so many bytes on both sides (4, 8, 16); 0: it is an element, byte by byte
  std::uint32_t element_bytes;  // 1, 2, 4, 8, 16
  std::uint32_t swapped_bytes;  // byte order is turned in numbers of so many bytes; 1: nowhere
  std::uint32_t shuffled;       // byte b of element e of the chunk stands at b * chunk_elements + e
  std::uint32_t is_fill;        // nothing is read: every item is `fill`
  std::uint32_t first_block;    // of the launch, that moves items of this box
  std::uint32_t items;
  std::uint32_t extent[box_rank];  // in items
  std::uint32_t fill[4];           // the element, over and over
  std::uint64_t chunk_elements;
  std::uint64_t chunk_at;                // with units: of the first item, in bytes; else of the chunk
  std::uint64_t chunk_offset;            // without units: of the first element in the chunk
  std::uint64_t place_offset;            // in bytes
  std::uint64_t chunk_stride[box_rank];  // with units: in bytes; else in elements
  std::int64_t place_stride[box_rank];   // in bytes
};

constexpr std::uint32_t box_record_words = 60;
static_assert(sizeof(BoxRecord) == box_record_words * 4, "the shader counts words");

}  // namespace cingulum::zarr
