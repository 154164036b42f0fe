// The index of a shard: where its inner chunks are. Read, checked against the shard's size and kept for a while, so
// that small regions out of large shards cost one read each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "zarr/array_metadata.hpp"
#include "zarr/store.hpp"

namespace cingulum::zarr {

constexpr std::uint64_t absent_chunk = ~std::uint64_t{0};

struct ShardEntry {
  std::uint64_t offset = absent_chunk;  // from the beginning of the shard
  std::uint64_t bytes = absent_chunk;
  [[nodiscard]] bool is_stored() const { return offset != absent_chunk || bytes != absent_chunk; }
};
using ShardIndex = std::vector<ShardEntry>;

// Inner chunks of a shard of this shape.
[[nodiscard]] std::uint64_t inner_count(const Sharding& sharding, std::span<const std::uint64_t> shard_shape);
// The place in the index of the inner chunk at `cell` (in inner chunks, in the order of the array's dimensions).
[[nodiscard]] std::uint64_t index_of(const Sharding& sharding, std::span<const std::uint64_t> shard_shape,
                                     std::span<const std::uint64_t> cell);

// The index of the shard that stands in `object` from `offset` on with `bytes` bytes. Entries lie within the shard,
// outside of the index, and do not overlap; else it is corrupt.
[[nodiscard]] Result<ShardIndex> read_shard_index(const Sharding& sharding, std::span<const std::uint64_t> shard_shape,
                                                  const StoredObject& object, std::uint64_t offset,
                                                  std::uint64_t bytes);
// The stored form.
[[nodiscard]] Result<std::vector<std::byte>> encode_shard_index(const Sharding& sharding, const ShardIndex& index);

// An object that is open, and its index where it is a shard.
struct OpenChunk {
  std::shared_ptr<const StoredObject> object;  // null: nothing is stored
  std::shared_ptr<const ShardIndex> index;     // null: a leaf
};

// Chunks of one array that were opened last. any thread
class ShardIndexCache {
 public:
  // What is kept and unchanged; null object where it is not.
  [[nodiscard]] OpenChunk find(const Store& store, const std::string& key);
  void keep(const std::string& key, const OpenChunk& chunk);
  void forget(const std::string& key);

 private:
  struct Kept {
    OpenChunk chunk;
    std::uint64_t used = 0;
  };
  // Descriptors and memory that stay open behind a reader's back are few.
  static constexpr std::size_t most_chunks = 32;
  static constexpr std::size_t most_entries = std::size_t{1} << 21U;  // 32 MiB
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::size_t entries_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace cingulum::zarr
