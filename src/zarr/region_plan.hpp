// Which stored chunks a region needs, and what goes where: the part of reading that does not depend on where the
// elements end. The reader of host memory and the engines of zarr/direct walk the same plan. Outer chunks (those with
// keys) are taken in windows of bounded size; a window has opened their objects, read the indices of shards, nested
// ones too, and lists the leaf chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "zarr/array.hpp"
#include "zarr/box_move.hpp"
#include "zarr/codec_chain.hpp"

namespace cingulum::zarr {

// A chunk of elements that meets the region.
struct LeafChunk {
  const StoredObject* object = nullptr;  // null: it is not stored
  std::uint64_t offset = 0;              // of its encoded bytes in the object
  std::uint64_t bytes = 0;
  std::size_t origin = 0;  // of its first element in the array: LeafWindow's numbers from here on, one a dimension
};

// In the order of the array: by outer chunks, and by leaves within them.
class LeafWindow {
 public:
  [[nodiscard]] std::size_t size() const { return leaves_.size(); }
  [[nodiscard]] const LeafChunk& leaf(std::size_t i) const { return leaves_[i]; }
  [[nodiscard]] std::span<const std::uint64_t> origin(std::size_t i) const {
    return std::span(origins_).subspan(leaves_[i].origin, rank_);
  }

 private:
  friend class LeafFinder;
  friend class RegionPlan;
  std::size_t rank_ = 0;
  std::vector<LeafChunk> leaves_;
  std::vector<std::uint64_t> origins_;
  std::vector<std::shared_ptr<const StoredObject>> objects_;  // kept open while the window is used
};

// any thread, but for next_window
class RegionPlan {
 public:
  // `strides` of the place in bytes, none of them negative; empty: row-major.
  [[nodiscard]] static Result<RegionPlan> create(const Array& array, Region region,
                                                 std::span<const std::int64_t> strides = {});

  [[nodiscard]] const Array& array() const { return array_; }
  [[nodiscard]] const Region& region() const { return region_; }
  // Bytes from the first element of the place to behind the last one.
  [[nodiscard]] std::uint64_t place_bytes() const { return place_bytes_; }
  // Leaf chunks that meet the region.
  [[nodiscard]] std::uint64_t leaf_count() const { return leaf_count_; }
  // Decoded bytes of a leaf chunk, whole.
  [[nodiscard]] std::uint64_t leaf_bytes() const { return leaf_bytes_; }
  // Outer chunks (those with keys) that meet the region, and the index of one of them in the array's grid.
  [[nodiscard]] std::uint64_t outer_count() const { return outer_total_; }
  [[nodiscard]] Shape outer_index(std::uint64_t i) const;
  // Whether a leaf's move has at most max_move_rank joined dimensions (else no device can do it).
  [[nodiscard]] bool moves_fit() const { return array_.metadata().rank() <= max_move_rank; }

  // The next leaves in the order of the array; false when there are none left. one caller at a time
  [[nodiscard]] Result<bool> next_window(LeafWindow& window, const ReadOptions& options);
  // All leaves of one outer chunk that lie in the array. Where `stored` is false nothing is looked for.
  [[nodiscard]] static Result<LeafWindow> leaves_of(const Array& array, std::span<const std::uint64_t> outer,
                                                    bool stored);

  // Which box of the leaf goes where; moves_fit() holds.
  [[nodiscard]] BoxMove move(const LeafWindow& window, std::size_t i) const;
  // Calls act(move) for the boxes that make up the leaf's part of the region: one, where moves_fit().
  template <class Act>
  void for_each_move(std::span<const std::uint64_t> origin, Act&& act) const;
  // Whether the region has all elements of the leaf, those beyond the array not counted.
  [[nodiscard]] bool covers(std::span<const std::uint64_t> origin) const;
  // Whether the leaf lies in the array with all its elements.
  [[nodiscard]] bool is_inside(std::span<const std::uint64_t> origin) const;

  // "scan.zarr/0, chunk 3.0.1 (key c/1/0/0)": for messages.
  [[nodiscard]] std::string describe(std::span<const std::uint64_t> origin) const;
  [[nodiscard]] std::string describe(const LeafWindow& window, std::size_t i) const {
    return describe(window.origin(i));
  }
  // Adds that, the file and the place in it to a failure of reading or decoding leaf i.
  [[nodiscard]] Error located(const LeafWindow& window, std::size_t i, Error error) const;

  // The encoded bytes of a stored leaf: in the object's memory or in scratch.encoded.
  [[nodiscard]] Result<std::span<const std::byte>> read_encoded(const LeafWindow& window, std::size_t i,
                                                                CodecScratch& scratch) const;
  // Read and decoded: leaf_bytes() bytes, laid out as the leaf coding's layout says.
  [[nodiscard]] Result<std::span<const std::byte>> load(const LeafWindow& window, std::size_t i,
                                                        CodecScratch& scratch) const;

 private:
  // The part of the region in a leaf, as dimensions that are not joined yet.
  [[nodiscard]] std::vector<MoveDimension> dimensions_of(std::span<const std::uint64_t> origin, BoxMove& move) const;

  Array array_;
  Region region_;
  Strides strides_;
  std::uint64_t place_bytes_ = 0;
  std::uint64_t leaf_count_ = 0;
  std::uint64_t leaf_bytes_ = 0;
  Shape leaf_shape_;
  Shape first_outer_, outer_counts_;  // outer chunks that meet the region
  std::uint64_t next_outer_ = 0;
  std::uint64_t outer_total_ = 0;
};

template <class Act>
void RegionPlan::for_each_move(std::span<const std::uint64_t> origin, Act&& act) const {
  BoxMove move;
  std::vector<MoveDimension> dimensions = dimensions_of(origin, move);
  const std::size_t joined = join_dimensions(dimensions);
  const std::size_t outer = joined > max_move_rank ? joined - max_move_rank : 0;
  move.rank = static_cast<std::uint32_t>(joined - outer);
  for (std::size_t d = outer; d < joined; ++d) {
    move.extent[d - outer] = dimensions[d].extent;
    move.chunk_stride[d - outer] = dimensions[d].chunk_stride;
    move.place_stride[d - outer] = dimensions[d].place_stride;
  }
  // The slowest dimensions beyond what a move can have, one box each.
  std::vector<std::uint64_t> at(outer, 0);
  const BoxMove first = move;
  while (true) {
    act(static_cast<const BoxMove&>(move));
    std::size_t d = outer;
    while (d > 0 && ++at[d - 1] == dimensions[d - 1].extent) at[--d] = 0;
    if (d == 0) return;
    move.chunk_offset = first.chunk_offset;
    move.place_offset = first.place_offset;
    for (std::size_t k = 0; k < outer; ++k) {
      move.chunk_offset += at[k] * dimensions[k].chunk_stride;
      move.place_offset += at[k] * static_cast<std::uint64_t>(dimensions[k].place_stride);
    }
  }
}

}  // namespace cingulum::zarr
