// One item of a box (box_record.hpp) from one side to the other: the arithmetic that the CPU and CUDA share and
// webgpu/move_boxes.wgsl mirrors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"
#include "zarr/direct/box_record.hpp"

namespace cingulum::zarr {

enum class BoxDirection : std::uint32_t {
  scatter,  // from chunks to places
  gather,   // from places to chunks
};

// Where item i stands on both sides: in bytes, but for the chunk's side of records without units (elements).
struct BoxItemPlace {
  std::uint64_t chunk = 0;
  std::uint64_t place = 0;
};

CGL_HD inline BoxItemPlace box_item_place(const BoxRecord& box, std::uint32_t item) {
  BoxItemPlace at{box.unit_bytes != 0 ? box.chunk_at : box.chunk_offset, box.place_offset};
  for (std::uint32_t d = box.rank; d > 0; --d) {
    const std::uint32_t extent = box.extent[d - 1];
    const std::uint32_t rest = item / extent;
    const std::uint32_t index = item - rest * extent;
    at.chunk += index * box.chunk_stride[d - 1];
    at.place += static_cast<std::uint64_t>(static_cast<std::int64_t>(index) * box.place_stride[d - 1]);
    item = rest;
  }
  return at;
}

// Words that a thread moves by one load and one store.
template <std::uint32_t bytes>
struct alignas(bytes) BoxUnit {
  std::uint32_t words[bytes / 4];
};

CGL_HD inline std::uint32_t swapped_word(std::uint32_t word, std::uint32_t swapped_bytes) {
  const std::uint32_t pairs = (word & 0x00ff00ffu) << 8 | (word >> 8 & 0x00ff00ffu);
  return swapped_bytes == 2 ? pairs : pairs << 16 | pairs >> 16;
}

template <std::uint32_t bytes>
CGL_HD inline void move_box_unit(const BoxRecord& box, const std::byte* from, std::byte* to) {
  BoxUnit<bytes> unit;
  if (box.is_fill != 0) {
    for (std::uint32_t w = 0; w < bytes / 4; ++w) unit.words[w] = box.fill[w];
    *reinterpret_cast<BoxUnit<bytes>*>(to) = unit;
    return;
  }
  unit = *reinterpret_cast<const BoxUnit<bytes>*>(from);
  if (box.swapped_bytes > 1) {
    for (std::uint32_t w = 0; w < bytes / 4; ++w) unit.words[w] = swapped_word(unit.words[w], box.swapped_bytes);
    if (box.swapped_bytes == 8) {
      for (std::uint32_t w = 0; w + 1 < bytes / 4; w += 2) {
        const std::uint32_t first = unit.words[w];
        unit.words[w] = unit.words[w + 1];
        unit.words[w + 1] = first;
      }
    }
  }
  *reinterpret_cast<BoxUnit<bytes>*>(to) = unit;
}

// `chunks` and `places` are where the two sides' offsets count from; the one that is not written is only read.
CGL_HD inline void move_box_item(const BoxRecord& box, std::uint32_t item, BoxDirection direction, std::byte* chunks,
                                 std::byte* places) {
  const BoxItemPlace at = box_item_place(box, item);
  const bool scatters = direction == BoxDirection::scatter;
  std::byte* const place = places + at.place;
  if (box.unit_bytes != 0) {
    std::byte* const chunk = chunks + at.chunk;
    const std::byte* const from = scatters ? chunk : place;
    std::byte* const to = scatters ? place : chunk;
    switch (box.unit_bytes) {
      case 16: return move_box_unit<16>(box, from, to);
      case 8: return move_box_unit<8>(box, from, to);
      default: return move_box_unit<4>(box, from, to);
    }
  }
  for (std::uint32_t b = 0; b < box.element_bytes; ++b) {
    if (box.is_fill != 0) {
      place[b] = static_cast<std::byte>(box.fill[b / 4] >> b % 4 * 8);
      continue;
    }
    const std::uint32_t stored = b ^ (box.swapped_bytes - 1);
    std::byte* const chunk =
        chunks + box.chunk_at +
        (box.shuffled != 0 ? stored * box.chunk_elements + at.chunk : at.chunk * box.element_bytes + stored);
    if (scatters) {
      place[b] = *chunk;
    } else {
      *chunk = place[b];
    }
  }
}

// The record of a launch that moves items of `block`.
CGL_HD inline std::uint32_t box_of_block(const BoxRecord* records, std::uint32_t count, std::uint32_t block) {
  std::uint32_t low = 0;
  while (count > 1) {
    const std::uint32_t half = count / 2;
    if (records[low + half].first_block <= block) {
      low += half;
      count -= half;
    } else {
      count = half;
    }
  }
  return low;
}

}  // namespace cingulum::zarr
