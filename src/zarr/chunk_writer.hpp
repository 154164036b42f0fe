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
  std::span<const std::uint64_t> origin;  // of its first element in the array
  bool whole = false;                     // the region has all of it
  std::span<std::byte> room;              // leaf_bytes(); where not whole, it holds the elements that stay
};

// any thread
class LeafSource {
 public:
  virtual ~LeafSource() = default;
  // The leaf in stored form (the leaf coding's layout): in part.room, or, where the part is whole, in memory of the
  // source that stays until the window ends. Where it is not whole, the region's elements are put into part.room.
  [[nodiscard]] virtual Result<std::span<const std::byte>> leaf(const LeafPart& part) = 0;
  // Called by one thread before leaves of these outer chunks are asked for: `first` to `first` + `count` of those that
  // meet the region, in the order of the array.
  [[nodiscard]] virtual Status begin_window(std::uint64_t first, std::uint64_t count) {
    (void)first, (void)count;
    return {};
  }
};

// Writes all outer chunks that meet the plan's region. Windows have at most `window_bytes` of elements, and at least
// one outer chunk.
struct ChunkWriteOptions {
  ArrayWriteOptions write = {};
  std::uint64_t window_bytes = std::uint64_t{256} << 20U;
};
[[nodiscard]] Result<WriteReport> write_chunks(const RegionPlan& plan, StoreOutput& output, LeafSource& source,
                                               const ChunkWriteOptions& options = {});

}  // namespace cingulum::zarr
