#include "zarr/region_plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/first_failure.hpp"
#include "formats/corrupt.hpp"
#include "zarr/row_major.hpp"
#include "zarr/shard_index.hpp"

namespace cingulum::zarr {
namespace {

// A window ends with the outer chunk that brings one of these counts.
constexpr std::size_t window_leaves = 16384;
constexpr std::size_t window_outer_chunks = 1024;

// Bytes that a shard's own steps gave back.
class MemoryObject final : public StoredObject {
 public:
  explicit MemoryObject(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> to) const override {
    if (offset > bytes_.size() || to.size() > bytes_.size() - offset) {
      return corrupt("the shard ends at byte {}, {} bytes from byte {} on were expected", bytes_.size(), to.size(),
                     offset);
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
    return {};
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> in_memory() const override { return bytes_; }
  [[nodiscard]] std::string stamp() const override { return {}; }

 private:
  std::vector<std::byte> bytes_;
};

// Cells of a grid that a range of elements meets.
struct CellRange {
  std::uint64_t first = 0, count = 0;
};
CellRange cells_of(std::uint64_t begin, std::uint64_t end, std::uint64_t extent) {
  if (begin >= end) return {begin / extent, 0};
  return {begin / extent, (end - 1) / extent - begin / extent + 1};
}

}  // namespace

// The leaves of one outer chunk that meet a region.
class LeafFinder {
 public:
  LeafFinder(const Array& array, const Region& region, LeafWindow& found)
      : array_(array), region_(region), found_(found) {
    found_.rank_ = array.metadata().rank();
  }

  [[nodiscard]] Status outer_chunk(std::span<const std::uint64_t> index, bool stored) {
    const ArrayMetadata& metadata = array_.metadata();
    Shape origin(metadata.rank());
    for (std::size_t d = 0; d < origin.size(); ++d) origin[d] = index[d] * metadata.chunk_shape[d];
    OpenChunk chunk;
    if (stored) {
      const std::string key = array_.key_of(index);
      CGL_TRY_ASSIGN(chunk, add_context(open(key), "{}, key {}", array_.name(), key));
    }
    if (chunk.object != nullptr) found_.objects_.push_back(chunk.object);
    const std::uint64_t bytes = chunk.object != nullptr ? chunk.object->size() : 0;
    return add_context(expand(metadata.coding, metadata.chunk_shape, origin, chunk, 0, bytes), "{}, key {}",
                       array_.name(), array_.key_of(index));
  }

 private:
  // The object under a key, its shard's steps undone, with its index.
  [[nodiscard]] Result<OpenChunk> open(const std::string& key) {
    const ChunkCoding& coding = array_.metadata().coding;
    if (coding.sharding != nullptr) {
      OpenChunk kept = array_.shard_indices().find(array_.store(), key);
      if (kept.object != nullptr) return kept;
    }
    OpenChunk chunk;
    CGL_TRY_ASSIGN(chunk.object, array_.store().open_object(key));
    if (chunk.object == nullptr || coding.sharding == nullptr) return chunk;
    const bool as_it_is = coding.chain.empty();
    if (!as_it_is) {
      CGL_TRY_ASSIGN(chunk.object, decoded_shard(coding.chain, *chunk.object, 0, chunk.object->size()));
    }
    CGL_TRY_ASSIGN(ShardIndex index, read_shard_index(*coding.sharding, array_.metadata().chunk_shape, *chunk.object, 0,
                                                      chunk.object->size()));
    chunk.index = std::make_shared<const ShardIndex>(std::move(index));
    if (as_it_is) array_.shard_indices().keep(key, chunk);
    return chunk;
  }

  // Steps behind a shard are checksums: of fixed size (codec_names.cpp).
  [[nodiscard]] static Result<std::shared_ptr<const StoredObject>> decoded_shard(const CodecChain& chain,
                                                                                 const StoredObject& object,
                                                                                 std::uint64_t offset,
                                                                                 std::uint64_t bytes) {
    std::vector<std::byte> encoded(static_cast<std::size_t>(bytes));
    CGL_TRY(object.read_at(offset, encoded));
    const std::uint64_t added = encoded_bytes(chain, 0);
    if (added > bytes) return corrupt("the shard has {} bytes, its checksums alone have {}", bytes, added);
    CodecScratch scratch;
    CGL_TRY_ASSIGN(const auto plain, decode_chain(chain, encoded, bytes - added, scratch));
    return std::make_shared<const MemoryObject>(std::vector<std::byte>(plain.begin(), plain.end()));
  }

  [[nodiscard]] Status expand(const ChunkCoding& coding, std::span<const std::uint64_t> shape, const Shape& origin,
                              const OpenChunk& chunk, std::uint64_t offset, std::uint64_t bytes) {
    if (coding.sharding == nullptr) {
      found_.leaves_.push_back({chunk.object.get(), offset, bytes, found_.origins_.size()});
      found_.origins_.insert(found_.origins_.end(), origin.begin(), origin.end());
      return {};
    }
    const Sharding& sharding = *coding.sharding;
    const std::size_t rank = origin.size();
    // Inner chunks that meet the region.
    Shape first(rank), counts(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t begin = std::max(origin[d], region_.origin[d]);
      const std::uint64_t end = std::min(origin[d] + shape[d], region_.origin[d] + region_.shape[d]);
      const CellRange cells = cells_of(begin - origin[d], end - origin[d], sharding.inner_shape[d]);
      if (cells.count == 0) return {};
      first[d] = cells.first;
      counts[d] = cells.count;
    }
    Shape step(rank), cell(rank), inner_origin(rank);
    do {
      for (std::size_t d = 0; d < rank; ++d) {
        cell[d] = first[d] + step[d];
        inner_origin[d] = origin[d] + cell[d] * sharding.inner_shape[d];
      }
      ShardEntry entry;
      if (chunk.index != nullptr) entry = (*chunk.index)[static_cast<std::size_t>(index_of(sharding, shape, cell))];
      CGL_TRY(inner_chunk(sharding, inner_origin, chunk, offset, entry));
    } while (next_cell(step, counts));
    return {};
  }

  [[nodiscard]] Status inner_chunk(const Sharding& sharding, const Shape& origin, const OpenChunk& shard,
                                   std::uint64_t shard_offset, const ShardEntry& entry) {
    if (!entry.is_stored()) return expand(*sharding.inner, sharding.inner_shape, origin, {}, 0, 0);
    OpenChunk inner{shard.object, nullptr};
    std::uint64_t offset = shard_offset + entry.offset;
    std::uint64_t bytes = entry.bytes;
    if (sharding.inner->sharding != nullptr) {
      if (!sharding.inner->chain.empty()) {
        CGL_TRY_ASSIGN(inner.object, decoded_shard(sharding.inner->chain, *shard.object, offset, bytes));
        found_.objects_.push_back(inner.object);
        offset = 0;
        bytes = inner.object->size();
      }
      CGL_TRY_ASSIGN(ShardIndex index,
                     read_shard_index(*sharding.inner->sharding, sharding.inner_shape, *inner.object, offset, bytes));
      inner.index = std::make_shared<const ShardIndex>(std::move(index));
    }
    return expand(*sharding.inner, sharding.inner_shape, origin, inner, offset, bytes);
  }

  const Array& array_;
  const Region& region_;
  LeafWindow& found_;
};

Result<RegionPlan> RegionPlan::create(const Array& array, Region region, std::span<const std::int64_t> strides) {
  CGL_TRY(check_region(array, region));
  const ArrayMetadata& metadata = array.metadata();
  RegionPlan plan;
  plan.array_ = array;
  plan.region_ = std::move(region);
  plan.leaf_shape_ = metadata.leaf_shape();
  plan.leaf_bytes_ = metadata.type.bytes();
  for (const std::uint64_t extent : plan.leaf_shape_) plan.leaf_bytes_ *= extent;
  plan.strides_ = strides.empty() ? row_major_strides(plan.region_.shape, metadata.type.bytes())
                                  : Strides(strides.begin(), strides.end());
  if (plan.strides_.size() != metadata.rank()) {
    return fail(ErrorKind::invalid_argument, "{} strides for an array of {} dimensions", plan.strides_.size(),
                metadata.rank());
  }
  plan.place_bytes_ = metadata.type.bytes();
  plan.leaf_count_ = 1;
  plan.outer_total_ = 1;
  bool empty = false;
  for (std::size_t d = 0; d < metadata.rank(); ++d) {
    const std::uint64_t begin = plan.region_.origin[d];
    const std::uint64_t end = begin + plan.region_.shape[d];
    empty = empty || begin == end;
    const CellRange outer = cells_of(begin, end, metadata.chunk_shape[d]);
    plan.first_outer_.push_back(outer.first);
    plan.outer_counts_.push_back(outer.count);
    plan.outer_total_ *= outer.count;
    plan.leaf_count_ *= cells_of(begin, end, plan.leaf_shape_[d]).count;
    if (empty) continue;
    const std::int64_t stride = plan.strides_[d];
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62U;
    if (stride < 0 || (stride > 0 && plan.region_.shape[d] - 1 >
                                         (most_bytes - plan.place_bytes_) / static_cast<std::uint64_t>(stride))) {
      return fail(ErrorKind::invalid_argument, "a stride of {} bytes over {} elements is not accepted", stride,
                  plan.region_.shape[d]);
    }
    plan.place_bytes_ += (plan.region_.shape[d] - 1) * static_cast<std::uint64_t>(stride);
  }
  if (empty) plan.place_bytes_ = plan.leaf_count_ = plan.outer_total_ = 0;
  return plan;
}

Shape RegionPlan::outer_index(std::uint64_t i) const {
  Shape index(outer_counts_.size());
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = first_outer_[d] + i % outer_counts_[d];
    i /= outer_counts_[d];
  }
  return index;
}

Result<bool> RegionPlan::next_window(LeafWindow& window, const ReadOptions& options) {
  window = LeafWindow();
  window.rank_ = array_.metadata().rank();
  if (next_outer_ == outer_total_) return false;
  // How many outer chunks a window takes follows from what one of them has, whole.
  std::uint64_t leaves_each = 1;
  for (std::size_t d = 0; d < leaf_shape_.size(); ++d) leaves_each *= array_.metadata().chunk_shape[d] / leaf_shape_[d];
  const std::uint64_t most = std::clamp<std::uint64_t>(window_leaves / leaves_each, 1, window_outer_chunks);
  const auto count = static_cast<std::size_t>(std::min(most, outer_total_ - next_outer_));
  std::vector<LeafWindow> found(count);
  FirstFailure failure;
  const auto find = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Shape index = outer_index(next_outer_ + i);
      Status status = options.cancel.check();
      if (status) {
        status = catch_out_of_memory([&] { return LeafFinder(array_, region_, found[i]).outer_chunk(index, true); });
      }
      failure.note(i, std::move(status));
    }
  };
  if (options.pool != nullptr && count > 1) {
    options.pool->parallel_for(count, 0, find);
  } else {
    find(0, count);
  }
  CGL_TRY(failure.take());
  next_outer_ += count;
  if (count == 1) {
    window = std::move(found[0]);
    return true;
  }
  for (LeafWindow& part : found) {
    const std::size_t shift = window.origins_.size();
    for (LeafChunk leaf : part.leaves_) {
      leaf.origin += shift;
      window.leaves_.push_back(leaf);
    }
    window.origins_.insert(window.origins_.end(), part.origins_.begin(), part.origins_.end());
    std::move(part.objects_.begin(), part.objects_.end(), std::back_inserter(window.objects_));
  }
  return true;
}

Result<LeafWindow> RegionPlan::leaves_of(const Array& array, std::span<const std::uint64_t> outer, bool stored) {
  const ArrayMetadata& metadata = array.metadata();
  Region region = whole(metadata);
  for (std::size_t d = 0; d < metadata.rank(); ++d) {
    region.origin[d] = outer[d] * metadata.chunk_shape[d];
    region.shape[d] = std::min(metadata.chunk_shape[d], metadata.shape[d] - region.origin[d]);
  }
  LeafWindow window;
  CGL_TRY(LeafFinder(array, region, window).outer_chunk(outer, stored));
  return window;
}

std::vector<MoveDimension> RegionPlan::dimensions_of(std::span<const std::uint64_t> origin, BoxMove& move) const {
  const ArrayMetadata& metadata = array_.metadata();
  const ChunkLayout& layout = metadata.leaf_coding().layout;
  const std::size_t element = metadata.type.bytes();
  move.element_bytes = static_cast<std::uint32_t>(element);
  const bool turned = layout.big_endian && element > 1;
  const std::size_t number = metadata.type.code == ElementType::Code::complex ? element / 2 : element;
  move.swapped_bytes = turned ? static_cast<std::uint32_t>(number) : 1;
  move.shuffled = layout.shuffled && element > 1 ? 1 : 0;
  move.chunk_elements = leaf_bytes_ / element;
  std::vector<MoveDimension> dimensions(origin.size());
  std::uint64_t stride = 1;
  for (std::size_t j = origin.size(); j-- > 0;) {
    const std::uint32_t d = layout.order[j];
    const std::uint64_t begin = std::max(origin[d], region_.origin[d]);
    const std::uint64_t end = std::min(origin[d] + leaf_shape_[d], region_.origin[d] + region_.shape[d]);
    dimensions[d] = {end - begin, stride, strides_[d]};
    move.chunk_offset += (begin - origin[d]) * stride;
    move.place_offset += (begin - region_.origin[d]) * static_cast<std::uint64_t>(strides_[d]);
    stride *= leaf_shape_[d];
  }
  return dimensions;
}

BoxMove RegionPlan::move(const LeafWindow& window, std::size_t i) const {
  BoxMove found;
  for_each_move(window.origin(i), [&](const BoxMove& move) { found = move; });
  return found;
}

bool RegionPlan::covers(std::span<const std::uint64_t> origin) const {
  const Shape& shape = array_.metadata().shape;
  for (std::size_t d = 0; d < origin.size(); ++d) {
    if (origin[d] < region_.origin[d]) return false;
    if (std::min(origin[d] + leaf_shape_[d], shape[d]) > region_.origin[d] + region_.shape[d]) return false;
  }
  return true;
}

bool RegionPlan::is_inside(std::span<const std::uint64_t> origin) const {
  const Shape& shape = array_.metadata().shape;
  for (std::size_t d = 0; d < origin.size(); ++d) {
    if (origin[d] + leaf_shape_[d] > shape[d]) return false;
  }
  return true;
}

std::string RegionPlan::describe(std::span<const std::uint64_t> origin) const {
  const ArrayMetadata& metadata = array_.metadata();
  Shape leaf(origin.size()), outer(origin.size());
  for (std::size_t d = 0; d < origin.size(); ++d) {
    leaf[d] = origin[d] / leaf_shape_[d];
    outer[d] = origin[d] / metadata.chunk_shape[d];
  }
  const std::string key = array_.key_of(outer);
  if (metadata.coding.sharding == nullptr) return fmt::format("{}, chunk {}", array_.name(), key);
  return fmt::format("{}, chunk {} in shard {}", array_.name(), fmt::join(leaf, "."), key);
}

Error RegionPlan::located(const LeafWindow& window, std::size_t i, Error error) const {
  const LeafChunk& leaf = window.leaf(i);
  std::string where = describe(window, i);
  std::string file = array_.has_store() ? array_.store().path().native() : std::string();
  if (leaf.object != nullptr) {
    if (const auto extent = leaf.object->extent()) file = extent->path.native();
    where += fmt::format(" ({} bytes at byte {} of {})", leaf.bytes, leaf.offset, file);
  }
  return std::move(error).with_file(file).with_context(where);
}

Result<std::span<const std::byte>> RegionPlan::read_encoded(const LeafWindow& window, std::size_t i,
                                                            CodecScratch& scratch) const {
  const LeafChunk& leaf = window.leaf(i);
  const CodecChain& chain = array_.metadata().leaf_coding().chain;
  if (has_fixed_size(chain)) {
    const std::uint64_t expected = encoded_bytes(chain, leaf_bytes_);
    if (leaf.bytes != expected) {
      return tl::make_unexpected(located(
          window, i, Error(ErrorKind::corrupt, fmt::format("{} bytes were expected, {} found", expected, leaf.bytes))));
    }
  }
  if (const auto memory = leaf.object->in_memory()) {
    return memory->subspan(static_cast<std::size_t>(leaf.offset), static_cast<std::size_t>(leaf.bytes));
  }
  const std::span<std::byte> room = scratch.room(scratch.encoded, static_cast<std::size_t>(leaf.bytes));
  if (Status status = leaf.object->read_at(leaf.offset, room); !status) {
    return tl::make_unexpected(located(window, i, std::move(status.error())));
  }
  return std::span<const std::byte>(room);
}

Result<std::span<const std::byte>> RegionPlan::load(const LeafWindow& window, std::size_t i,
                                                    CodecScratch& scratch) const {
  CGL_TRY_ASSIGN(const auto encoded, read_encoded(window, i, scratch));
  auto decoded = decode_chain(array_.metadata().leaf_coding().chain, encoded, leaf_bytes_, scratch);
  if (!decoded) return tl::make_unexpected(located(window, i, std::move(decoded.error())));
  return decoded;
}

}  // namespace cingulum::zarr
