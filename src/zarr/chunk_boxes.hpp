// An array in boxes of whole chunks, in a fixed order: how arrays are copied and levels made in bounded memory. A box
// is as large as `memory_bytes` allows, and grows first along the dimensions where it saves the most reading twice of
// the chunks of the array that the elements come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "zarr/array.hpp"

namespace cingulum::zarr {

class ChunkBoxes {
 public:
  // `chunks` are the chunks with keys of the array that is written; `source_chunks` the chunks of elements of what is
  // read, whose element 0 stands `source_origin` elements before the array's own (both empty: it does not matter).
  ChunkBoxes(Shape shape, const Shape& chunks, std::span<const std::uint64_t> source_chunks,
             std::span<const std::uint64_t> source_origin, std::uint64_t element_bytes, std::uint64_t memory_bytes);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Region at(std::uint64_t index) const;
  // Elements of the largest box: one chunk at least, whatever the memory.
  [[nodiscard]] std::uint64_t most_elements() const;

 private:
  Shape shape_;
  Shape box_;   // extents, multiples of the chunks
  Shape grid_;  // boxes along each dimension
  std::uint64_t count_ = 1;
};

}  // namespace cingulum::zarr
