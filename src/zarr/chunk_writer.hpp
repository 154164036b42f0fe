// Writing chunks and shards, wherever their elements come from: host memory (write_region in array.hpp) or a device
// (zarr/direct). A source gives the elements of leaf chunks in stored form; here they are encoded, completed by what is
// stored already, put together to shards and handed to the output, each key once and whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "zarr/array.hpp"
#include "zarr/region_plan.hpp"

namespace cingulum::zarr {

// Inner chunks of shards that are large enough begin at multiples of this, so that they can be read past the host.
constexpr std::uint64_t inner_chunk_alignment = 4096;

// A leaf chunk of which the region has a part.
struct LeafPart {
  std::size_t number = 0;                 // in the window, whose ranges are counted one behind the other
  std::span<const std::uint64_t> origin;  // of its first element in the array
  bool whole = false;                     // the region has all of it
  // leaf_bytes(); where not whole, it holds the elements that stay. Empty where the source holds whole leaves.
  std::span<std::byte> room;
};

// Leaves of one outer chunk.
struct LeafRange {
  const LeafWindow* leaves = nullptr;
  std::size_t begin = 0, end = 0;
};

// any thread
class LeafSource {
 public:
  virtual ~LeafSource() = default;
  // The leaf in stored form (the leaf coding's layout): in part.room, or, where the part is whole, in memory of the
  // source that stays until the window ends. Where it is not whole, the region's elements are put into part.room.
  [[nodiscard]] virtual Result<std::span<const std::byte>> leaf(const LeafPart& part) = 0;
  // Whether the source has memory of its own for whole leaves, so that it takes windows of bounded size alone.
  [[nodiscard]] virtual bool holds_whole_leaves() const { return false; }
  // Called by one thread before leaves of these ranges are asked for; those of `next` come after them.
  [[nodiscard]] virtual Status begin_window(std::span<const LeafRange> now, std::span<const LeafRange> next) {
    (void)now, (void)next;
    return {};
  }
};

// Writes all outer chunks that meet the plan's region. Windows have at most `window_bytes` of elements, and at least
// one leaf of a shard that the output takes in pieces, else one outer chunk.
struct ChunkWriteOptions {
  ArrayWriteOptions write = {};
  std::uint64_t window_bytes = std::uint64_t{256} << 20U;
};
[[nodiscard]] Result<WriteReport> write_chunks(const RegionPlan& plan, StoreOutput& output, LeafSource& source,
                                               const ChunkWriteOptions& options = {});

}  // namespace cingulum::zarr
