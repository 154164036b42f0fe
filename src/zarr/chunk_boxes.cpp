#include "zarr/chunk_boxes.hpp"

#include <algorithm>
#include <utility>

#include "zarr/row_major.hpp"

namespace cingulum::zarr {
namespace {

// Elements of source chunks that boxes of `extent` read, for each element that they need; of the first box, which
// stands for all.
double reading_ratio(std::uint64_t extent, std::uint64_t chunk, std::uint64_t origin) {
  const std::uint64_t begin = origin / chunk * chunk;
  const std::uint64_t end = (origin + extent + chunk - 1) / chunk * chunk;
  return static_cast<double>(end - begin) / static_cast<double>(extent);
}

}  // namespace

ChunkBoxes::ChunkBoxes(Shape shape, const Shape& chunks, std::span<const std::uint64_t> source_chunks,
                       std::span<const std::uint64_t> source_origin, std::uint64_t element_bytes,
                       std::uint64_t memory_bytes)
    : shape_(std::move(shape)), box_(chunks) {
  const std::size_t rank = shape_.size();
  for (std::size_t d = 0; d < rank; ++d) box_[d] = std::min(box_[d], std::max<std::uint64_t>(shape_[d], 1));
  // Twice as large along one dimension, while there is room: the one that saves most, the last among equals.
  while (true) {
    std::size_t best = rank;
    double best_gain = 0;
    for (std::size_t d = rank; d-- > 0;) {
      if (box_[d] >= shape_[d]) continue;
      const std::uint64_t doubled = std::min(box_[d] * 2, shape_[d]);
      if (elements_of(box_) / box_[d] * doubled * element_bytes > memory_bytes) continue;
      double gain = 1;
      if (!source_chunks.empty()) {
        const std::uint64_t chunk = std::max<std::uint64_t>(source_chunks[d], 1);
        gain = reading_ratio(box_[d], chunk, source_origin[d]) / reading_ratio(doubled, chunk, source_origin[d]);
      }
      if (best != rank && gain <= best_gain) continue;
      best = d;
      best_gain = gain;
    }
    if (best == rank) break;
    box_[best] = std::min(box_[best] * 2, shape_[best]);
  }
  for (std::size_t d = 0; d < rank; ++d) {
    // The least multiple of the chunks that holds it: boxes begin where chunks do.
    const std::uint64_t chunk = std::max<std::uint64_t>(chunks[d], 1);
    box_[d] = (box_[d] + chunk - 1) / chunk * chunk;
    grid_.push_back((shape_[d] + box_[d] - 1) / box_[d]);
    count_ *= grid_.back();
  }
}

Region ChunkBoxes::at(std::uint64_t index) const {
  Region box{Shape(shape_.size()), Shape(shape_.size())};
  for (std::size_t d = shape_.size(); d-- > 0;) {
    box.origin[d] = index % grid_[d] * box_[d];
    box.shape[d] = std::min(box_[d], shape_[d] - box.origin[d]);
    index /= grid_[d];
  }
  return box;
}

std::uint64_t ChunkBoxes::most_elements() const {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shape_.size(); ++d) count *= std::min(box_[d], shape_[d]);
  return count;
}

}  // namespace cingulum::zarr
