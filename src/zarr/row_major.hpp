// Boxes whose elements or cells lie in row-major order: how many, one after another, and a box of one copied into a box
// of another. Used where levels are made and copied and where grids of chunks are walked; boxes of chunks in memory are
// box_move.hpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "zarr/array.hpp"

namespace cingulum::zarr {

[[nodiscard]] inline std::uint64_t elements_of(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

// Counts `cell` up in a grid of these counts, the last dimension fastest; false behind the last one, where it is all
// zeros again.
[[nodiscard]] inline bool next_cell(std::span<std::uint64_t> cell, std::span<const std::uint64_t> counts) {
  for (std::size_t d = cell.size(); d-- > 0;) {
    if (++cell[d] < counts[d]) return true;
    cell[d] = 0;
  }
  return false;
}

// Calls row(index) for the first element of each row (along the last dimension) of a box; index counts from the box'
// origin. Nothing where the box is empty. A box without dimensions has one row.
template <class Row>
void for_each_row_of(std::span<const std::uint64_t> shape, Row&& row) {
  if (elements_of(shape) == 0) return;
  Shape index(shape.size());
  const std::size_t outer = shape.empty() ? 0 : shape.size() - 1;
  do {
    row(std::span<const std::uint64_t>(index));
  } while (next_cell(std::span(index).first(outer), shape.first(outer)));
}

// The box `shape` at `from_origin` of an array of from_shape to the one at `to_origin` of another.
inline void copy_box(std::span<const std::uint64_t> shape, std::size_t element_bytes, const std::byte* from,
                     std::span<const std::uint64_t> from_shape, std::span<const std::uint64_t> from_origin,
                     std::byte* to, std::span<const std::uint64_t> to_shape, std::span<const std::uint64_t> to_origin) {
  const std::size_t row_bytes = (shape.empty() ? 1 : shape.back()) * element_bytes;
  for_each_row_of(shape, [&](std::span<const std::uint64_t> index) {
    std::uint64_t source = 0, target = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      source = source * from_shape[d] + from_origin[d] + index[d];
      target = target * to_shape[d] + to_origin[d] + index[d];
    }
    std::memcpy(to + target * element_bytes, from + source * element_bytes, row_bytes);
  });
}

}  // namespace cingulum::zarr
