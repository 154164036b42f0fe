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

class LeafWindow {
 public:
  [[nodiscard]] std::size_t size() const { return leaves_.size(); }
  [[nodiscard]] const LeafChunk& leaf(std::size_t i) const { return leaves_[i]; }
  [[nodiscard]] std::span<const std::uint64_t> origin(std::size_t i) const {
    return std::span(origins_).subspan(leaves_[i].origin, rank_);
  }

 private:
  friend class RegionPlan;
  std::size_t rank_ = 0;
  std::vector<LeafChunk> leaves_;
  std::vector<std::uint64_t> origins_;
  std::vector<std::shared_ptr<const StoredObject>> objects_;  // kept open while the window is used
};

// any thread, but for next_window
class RegionPlan {
 public:
  // `strides` of the place in bytes; empty: row-major.
  [[nodiscard]] static Result<RegionPlan> create(const Array& array, Region region,
                                                 std::span<const std::int64_t> strides = {});

  [[nodiscard]] const Array& array() const { return array_; }
  [[nodiscard]] const Region& region() const { return region_; }
  // Leaf chunks that meet the region.
  [[nodiscard]] std::uint64_t leaf_count() const { return leaf_count_; }
  // Decoded bytes of a leaf chunk, whole.
  [[nodiscard]] std::uint64_t leaf_bytes() const { return leaf_bytes_; }
  // Whether a leaf's move has at most max_move_rank joined dimensions (else no device can do it).
  [[nodiscard]] bool moves_fit() const { return moves_fit_; }

  // The next leaves in the order of the array; false when there are none left. one caller at a time
  [[nodiscard]] Result<bool> next_window(LeafWindow& window, const ReadOptions& options);

  // Which box of the leaf goes where.
  [[nodiscard]] BoxMove move(const LeafWindow& window, std::size_t i) const;
  // Host memory, any rank.
  void scatter_leaf(const LeafWindow& window, std::size_t i, std::span<const std::byte> chunk, std::byte* place) const;
  void fill_leaf(const LeafWindow& window, std::size_t i, std::byte* place) const;

  // "scan.zarr/0, chunk 3.0.1 (c/1/0/0)": for messages.
  [[nodiscard]] std::string describe(const LeafWindow& window, std::size_t i) const;
  // Adds that, the file and the place in it to a failure of reading or decoding leaf i.
  [[nodiscard]] Error located(const LeafWindow& window, std::size_t i, Error error) const;

  // The encoded bytes of a stored leaf: in the object's memory or in scratch.encoded.
  [[nodiscard]] Result<std::span<const std::byte>> read_encoded(const LeafWindow& window, std::size_t i,
                                                                CodecScratch& scratch) const;
  // Read and decoded: leaf_bytes() bytes, laid out as the leaf coding's layout says.
  [[nodiscard]] Result<std::span<const std::byte>> load(const LeafWindow& window, std::size_t i,
                                                        CodecScratch& scratch) const;

 private:
  struct Level;
  Array array_;
  Region region_;
  Strides strides_;
  std::uint64_t leaf_count_ = 0;
  std::uint64_t leaf_bytes_ = 0;
  bool moves_fit_ = true;
  Shape leaf_shape_;
  Shape first_outer_, outer_count_;  // outer chunks that meet the region
  std::uint64_t next_outer_ = 0;
};

}  // namespace cingulum::zarr
