#include "zarr/shard_index.hpp"

#include <algorithm>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t entry_bytes = 16;

// Chunks that share bytes would be read as one another's.
Status check_overlaps(const ShardIndex& index, std::uint64_t index_begin, std::uint64_t index_end) {
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    if (index[i].is_stored() && index[i].bytes > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return index[a].offset < index[b].offset; });
  for (std::size_t k = 0; k < order.size(); ++k) {
    const ShardEntry& entry = index[order[k]];
    if (k > 0 && entry.offset < index[order[k - 1]].offset + index[order[k - 1]].bytes) {
      return corrupt("shard index: inner chunks {} and {} overlap at byte {}", order[k - 1], order[k], entry.offset);
    }
    if (entry.offset < index_end && entry.offset + entry.bytes > index_begin) {
      return corrupt("shard index: inner chunk {} (bytes {} to {}) lies in the index (bytes {} to {})", order[k],
                     entry.offset, entry.offset + entry.bytes, index_begin, index_end);
    }
  }
  return {};
}

}  // namespace

std::uint64_t inner_count(const Sharding& sharding, std::span<const std::uint64_t> shard_shape) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shard_shape.size(); ++d) count *= shard_shape[d] / sharding.inner_shape[d];
  return count;
}

std::uint64_t index_of(const Sharding& sharding, std::span<const std::uint64_t> shard_shape,
                       std::span<const std::uint64_t> cell) {
  std::uint64_t index = 0;
  for (const std::uint32_t dimension : sharding.order) {
    index = index * (shard_shape[dimension] / sharding.inner_shape[dimension]) + cell[dimension];
  }
  return index;
}

Result<ShardIndex> read_shard_index(const Sharding& sharding, std::span<const std::uint64_t> shard_shape,
                                    const StoredObject& object, std::uint64_t offset, std::uint64_t bytes) {
  // No overflow: a shard's elements fit into 2^60 bytes, and an inner chunk has at least one.
  const std::uint64_t count = inner_count(sharding, shard_shape);
  if (count > bytes / entry_bytes) {
    return corrupt("shard index: the shard has {} bytes, the index of {} inner chunks alone has {} or more", bytes,
                   count, count * entry_bytes);
  }
  const std::uint64_t stored = encoded_bytes(sharding.index_chain, count * entry_bytes);
  if (stored > bytes) {
    return corrupt("shard index: the shard has {} bytes, its index alone has {}", bytes, stored);
  }
  const std::uint64_t begin = sharding.index_at_start ? 0 : bytes - stored;
  std::vector<std::byte> read(static_cast<std::size_t>(stored));
  CGL_TRY(object.read_at(offset + begin, read));
  CodecScratch scratch;
  CGL_TRY_ASSIGN(const auto decoded, add_context(decode_chain(sharding.index_chain, read, count * entry_bytes, scratch),
                                                 "shard index at byte {}", offset + begin));
  ShardIndex index(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] = {load<std::uint64_t>(decoded, i * entry_bytes), load<std::uint64_t>(decoded, i * entry_bytes + 8)};
    const ShardEntry& entry = index[i];
    if (!entry.is_stored()) continue;
    if (entry.bytes > bytes || entry.offset > bytes - entry.bytes) {
      return corrupt("shard index: inner chunk {} has {} bytes at byte {}, the shard has {}", i, entry.bytes,
                     entry.offset, bytes);
    }
  }
  CGL_TRY(check_overlaps(index, begin, begin + stored));
  return index;
}

Result<std::vector<std::byte>> encode_shard_index(const Sharding& sharding, const ShardIndex& index) {
  std::vector<std::byte> plain(index.size() * entry_bytes);
  for (std::size_t i = 0; i < index.size(); ++i) {
    store(std::span(plain), i * entry_bytes, index[i].offset);
    store(std::span(plain), i * entry_bytes + 8, index[i].bytes);
  }
  CodecScratch scratch;
  CGL_TRY_ASSIGN(const auto encoded, encode_chain(sharding.index_chain, plain, scratch));
  return std::vector<std::byte>(encoded.begin(), encoded.end());
}

OpenChunk ShardIndexCache::find(const Store& store, const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (kept_.find(key) == kept_.end()) return {};
  }
  const auto now = store.stamp_of_key(key);
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return {};
  if (!now || *now != found->second.chunk.object->stamp()) {
    entries_ -= found->second.chunk.index->size();
    kept_.erase(found);
    return {};
  }
  found->second.used = ++clock_;
  return found->second.chunk;
}

void ShardIndexCache::keep(const std::string& key, const OpenChunk& chunk) {
  if (chunk.object == nullptr || chunk.index == nullptr || chunk.index->size() > most_entries) return;
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = kept_.try_emplace(key);
  if (!is_new) entries_ -= place->second.chunk.index->size();
  place->second = {chunk, ++clock_};
  entries_ += chunk.index->size();
  while (kept_.size() > most_chunks || entries_ > most_entries) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    entries_ -= oldest->second.chunk.index->size();
    kept_.erase(oldest);
  }
}

void ShardIndexCache::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return;
  entries_ -= found->second.chunk.index->size();
  kept_.erase(found);
}

}  // namespace cingulum::zarr
