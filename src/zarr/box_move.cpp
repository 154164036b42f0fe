#include "zarr/box_move.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "formats/byte_order.hpp"

namespace cingulum::zarr {
namespace {

struct Bytes16 {
  std::uint64_t low, high;
};
template <std::size_t size>
using ElementOfSize = std::conditional_t<size == 16, Bytes16, UnsignedOfSize<size == 16 ? 8 : size>>;

// An element whose numbers of `turned` bytes have the other byte order.
template <std::size_t turned, class Element>
Element turn(Element value) {
  if constexpr (turned == 1) {
    return value;
  } else if constexpr (sizeof(Element) == 16) {
    static_assert(turned == 8, "elements of 16 bytes are pairs of float64");
    return {swap_bytes(value.low), swap_bytes(value.high)};
  } else if constexpr (turned == sizeof(Element)) {
    return swap_bytes(value);
  } else {
    static_assert(turned * 2 == sizeof(Element), "elements are numbers, or pairs of them");
    using Half = UnsignedOfSize<turned>;
    constexpr unsigned bits = turned * 8;
    const auto low = swap_bytes(static_cast<Half>(value));
    const auto high = swap_bytes(static_cast<Half>(value >> bits));
    return static_cast<Element>((static_cast<Element>(high) << bits) | low);
  }
}

// How one element is read from a chunk and written to one.
template <std::size_t element_bytes, std::size_t turned>
struct PlainChunk {
  using Element = ElementOfSize<element_bytes>;
  static Element load(const std::byte* chunk, std::uint64_t /*elements*/, std::uint64_t index) {
    Element value;
    std::memcpy(&value, chunk + index * element_bytes, element_bytes);
    return turn<turned>(value);
  }
  static void store(std::byte* chunk, std::uint64_t /*elements*/, std::uint64_t index, Element value) {
    value = turn<turned>(value);
    std::memcpy(chunk + index * element_bytes, &value, element_bytes);
  }
};
template <std::size_t element_bytes, std::size_t turned>
struct ShuffledChunk {
  using Element = ElementOfSize<element_bytes>;
  static Element load(const std::byte* chunk, std::uint64_t elements, std::uint64_t index) {
    std::array<std::byte, element_bytes> bytes;
    for (std::size_t b = 0; b < element_bytes; ++b) bytes[b] = chunk[b * elements + index];
    Element value;
    std::memcpy(&value, bytes.data(), element_bytes);
    return turn<turned>(value);
  }
  static void store(std::byte* chunk, std::uint64_t elements, std::uint64_t index, Element value) {
    value = turn<turned>(value);
    std::array<std::byte, element_bytes> bytes;
    std::memcpy(bytes.data(), &value, element_bytes);
    for (std::size_t b = 0; b < element_bytes; ++b) chunk[b * elements + index] = bytes[b];
  }
};

// Calls row(chunk index, place offset) for every combination of the first `outer` dimensions.
template <class Row>
void for_each_row(const BoxMove& move, std::uint32_t outer, Row&& row) {
  std::array<std::uint64_t, max_move_rank> at{};
  std::uint64_t chunk = move.chunk_offset;
  auto place = static_cast<std::int64_t>(move.place_offset);
  while (true) {
    row(chunk, place);
    std::uint32_t d = outer;
    while (d > 0) {
      --d;
      chunk += move.chunk_stride[d];
      place += move.place_stride[d];
      if (++at[d] < move.extent[d]) break;
      chunk -= move.chunk_stride[d] * move.extent[d];
      place -= move.place_stride[d] * static_cast<std::int64_t>(move.extent[d]);
      at[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

// Rows of both sides that are not next to each other in memory on one of them go in squares of this many elements, so
// that lines of the cache are used while they are there.
constexpr std::uint64_t square = 32;

template <bool to_place, class Chunk, class ChunkByte, class PlaceByte>
void move_elements(const BoxMove& original, ChunkByte* chunk, PlaceByte* place) {
  using Element = typename Chunk::Element;
  BoxMove move = original;
  if (move.rank == 0) {
    move.rank = 1;
    move.extent[0] = 1;
  }
  const std::uint32_t last = move.rank - 1;
  // The dimension that is fastest in the chunk comes last but one, where it is not the last.
  bool in_squares = false;
  if (move.rank >= 2 && move.chunk_stride[last] != 1) {
    for (std::uint32_t d = 0; d < last; ++d) {
      if (move.chunk_stride[d] != 1) continue;
      std::rotate(move.extent.begin() + d, move.extent.begin() + d + 1, move.extent.begin() + last);
      std::rotate(move.chunk_stride.begin() + d, move.chunk_stride.begin() + d + 1, move.chunk_stride.begin() + last);
      std::rotate(move.place_stride.begin() + d, move.place_stride.begin() + d + 1, move.place_stride.begin() + last);
      in_squares = true;
      break;
    }
  }
  const auto copy_one = [&](std::uint64_t index, std::int64_t offset) {
    if constexpr (to_place) {
      const Element value = Chunk::load(chunk, move.chunk_elements, index);
      std::memcpy(place + offset, &value, sizeof(Element));
    } else {
      Element value;
      std::memcpy(&value, place + offset, sizeof(Element));
      Chunk::store(chunk, move.chunk_elements, index, value);
    }
  };
  const std::uint64_t count = move.extent[last];
  const std::uint64_t step = move.chunk_stride[last];
  const std::int64_t stride = move.place_stride[last];
  if (!in_squares) {
    for_each_row(move, last, [&](std::uint64_t index, std::int64_t offset) {
      if (step == 1 && stride == static_cast<std::int64_t>(sizeof(Element))) {
        for (std::uint64_t i = 0; i < count; ++i) {
          copy_one(index + i, offset + static_cast<std::int64_t>(i * sizeof(Element)));
        }
        return;
      }
      for (std::uint64_t i = 0; i < count; ++i)
        copy_one(index + i * step, offset + static_cast<std::int64_t>(i) * stride);
    });
    return;
  }
  const std::uint64_t rows = move.extent[last - 1];
  const std::int64_t row_stride = move.place_stride[last - 1];
  for_each_row(move, last - 1, [&](std::uint64_t index, std::int64_t offset) {
    for (std::uint64_t r0 = 0; r0 < rows; r0 += square) {
      const std::uint64_t r1 = std::min(rows, r0 + square);
      for (std::uint64_t i0 = 0; i0 < count; i0 += square) {
        const std::uint64_t i1 = std::min(count, i0 + square);
        for (std::uint64_t r = r0; r < r1; ++r) {
          for (std::uint64_t i = i0; i < i1; ++i) {
            copy_one(index + r + i * step,
                     offset + static_cast<std::int64_t>(r) * row_stride + static_cast<std::int64_t>(i) * stride);
          }
        }
      }
    }
  });
}

template <bool to_place, std::size_t element_bytes, std::size_t turned, class ChunkByte, class PlaceByte>
void move_turned(const BoxMove& move, ChunkByte* chunk, PlaceByte* place) {
  if (move.shuffled != 0 && element_bytes > 1) {
    move_elements<to_place, ShuffledChunk<element_bytes, turned>>(move, chunk, place);
  } else {
    move_elements<to_place, PlainChunk<element_bytes, turned>>(move, chunk, place);
  }
}

template <bool to_place, std::size_t element_bytes, class ChunkByte, class PlaceByte>
void move_sized(const BoxMove& move, ChunkByte* chunk, PlaceByte* place) {
  if constexpr (element_bytes > 1 && element_bytes < 16) {
    if (move.swapped_bytes == element_bytes) {
      return move_turned<to_place, element_bytes, element_bytes>(move, chunk, place);
    }
  }
  if constexpr (element_bytes >= 4) {
    if (move.swapped_bytes == element_bytes / 2) {
      return move_turned<to_place, element_bytes, element_bytes / 2>(move, chunk, place);
    }
  }
  move_turned<to_place, element_bytes, 1>(move, chunk, place);
}

// Whole rows that lie alike on both sides.
bool is_plain_rows(const BoxMove& move) {
  if (move.swapped_bytes != 1 || (move.shuffled != 0 && move.element_bytes > 1)) return false;
  return move.rank == 0 || (move.chunk_stride[move.rank - 1] == 1 &&
                            move.place_stride[move.rank - 1] == static_cast<std::int64_t>(move.element_bytes));
}

template <bool to_place, class ChunkByte, class PlaceByte>
void move_box(const BoxMove& move, ChunkByte* chunk, PlaceByte* place) {
  if (move.element_count() == 0) return;
  if (is_plain_rows(move)) {
    const std::uint64_t row = move.rank == 0 ? 1 : move.extent[move.rank - 1];
    const std::size_t bytes = static_cast<std::size_t>(row * move.element_bytes);
    for_each_row(move, move.rank == 0 ? 0 : move.rank - 1, [&](std::uint64_t index, std::int64_t offset) {
      if constexpr (to_place) {
        std::memcpy(place + offset, chunk + index * move.element_bytes, bytes);
      } else {
        std::memcpy(chunk + index * move.element_bytes, place + offset, bytes);
      }
    });
    return;
  }
  switch (move.element_bytes) {
    case 1: return move_sized<to_place, 1>(move, chunk, place);
    case 2: return move_sized<to_place, 2>(move, chunk, place);
    case 4: return move_sized<to_place, 4>(move, chunk, place);
    case 8: return move_sized<to_place, 8>(move, chunk, place);
    default: return move_sized<to_place, 16>(move, chunk, place);
  }
}

}  // namespace

std::size_t join_dimensions(std::span<MoveDimension> dimensions) {
  const auto end = std::remove_if(dimensions.begin(), dimensions.end(),
                                  [](const MoveDimension& dimension) { return dimension.extent == 1; });
  const auto kept = static_cast<std::size_t>(end - dimensions.begin());
  std::stable_sort(dimensions.begin(), end, [](const MoveDimension& a, const MoveDimension& b) {
    return std::abs(a.place_stride) > std::abs(b.place_stride);
  });
  std::size_t joined = 0;
  for (std::size_t d = 0; d < kept; ++d) {
    const MoveDimension next = dimensions[d];
    if (joined > 0) {
      MoveDimension& before = dimensions[joined - 1];
      if (before.chunk_stride == next.chunk_stride * next.extent &&
          before.place_stride == next.place_stride * static_cast<std::int64_t>(next.extent)) {
        before = {before.extent * next.extent, next.chunk_stride, next.place_stride};
        continue;
      }
    }
    dimensions[joined++] = next;
  }
  return joined;
}

void scatter(const BoxMove& move, const std::byte* chunk, std::byte* place) {
  move_box<true>(move, chunk, place);
}

void gather(const BoxMove& move, const std::byte* place, std::byte* chunk) {
  move_box<false>(move, chunk, place);
}

void fill_box(const BoxMove& move, std::span<const std::byte> element, std::byte* place) {
  if (move.element_count() == 0) return;
  const bool one_byte = std::all_of(element.begin(), element.end(), [&](std::byte byte) { return byte == element[0]; });
  const std::uint64_t count = move.rank == 0 ? 1 : move.extent[move.rank - 1];
  const std::int64_t stride = move.rank == 0 ? 0 : move.place_stride[move.rank - 1];
  for_each_row(move, move.rank == 0 ? 0 : move.rank - 1, [&](std::uint64_t /*index*/, std::int64_t offset) {
    if (one_byte && stride == static_cast<std::int64_t>(element.size())) {
      std::memset(place + offset, static_cast<int>(element[0]), static_cast<std::size_t>(count) * element.size());
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(place + offset + static_cast<std::int64_t>(i) * stride, element.data(), element.size());
    }
  });
}

}  // namespace cingulum::zarr
