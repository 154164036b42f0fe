#include "zarr/chunk_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "base/first_failure.hpp"
#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "zarr/row_major.hpp"
#include "zarr/scratch_pool.hpp"
#include "zarr/shard_index.hpp"

namespace cingulum::zarr {
namespace {

// Inner chunks of this size and more are aligned.
constexpr std::uint64_t aligned_from_bytes = std::uint64_t{64} << 10U;

// The fill value in every element of a chunk in stored form.
void fill_stored(const ArrayMetadata& metadata, std::span<std::byte> chunk) {
  const std::size_t size = metadata.type.bytes();
  const ChunkLayout& layout = metadata.leaf_coding().layout;
  FillValue element = metadata.fill;
  const std::size_t number = metadata.type.code == ElementType::Code::complex ? size / 2 : size;
  if (layout.big_endian) swap_in_place(std::span(element).first(size), number);
  const std::size_t count = chunk.size() / size;
  if (layout.shuffled) {
    for (std::size_t b = 0; b < size; ++b)
      std::fill_n(chunk.begin() + static_cast<std::ptrdiff_t>(b * count), count, element[b]);
    return;
  }
  for (std::size_t e = 0; e < count; ++e) std::memcpy(chunk.data() + e * size, element.data(), size);
}

// A leaf on its way to the output: encoded, but for a checksum behind elements that are stored as they are.
struct PendingLeaf {
  BulkVector<std::byte> memory;        // kept from window to window
  std::span<const std::byte> content;  // in it, or in the source's
  std::array<std::byte, sizeof(std::uint32_t)> checksum = {};
  std::size_t checksum_bytes = 0;  // of it, behind the content
  bool stored = false;             // false: neither the region nor the store has it

  [[nodiscard]] std::uint64_t bytes() const { return content.size() + checksum_bytes; }
  [[nodiscard]] std::span<const std::byte> checksum_part() const { return std::span(checksum).first(checksum_bytes); }
};

// A shard of which some leaves are in the output.
struct OpenShard {
  std::unique_ptr<KeyOutput> output;
  ShardIndex index;
  std::uint64_t bytes = 0;  // that belong to it so far
  // The bytes among them that wait for what comes next: the last leaf's checksum.
  std::vector<std::byte> waiting;
};

// An outer chunk on its way to the output: its leaves, in the order of the array.
struct PendingChunk {
  Shape index;
  LeafWindow leaves;
  OpenShard shard;
};

// Outer chunks that are written at the same time, each by a thread.
struct ChunkGroup {
  std::vector<PendingChunk> chunks;
  std::size_t most_leaves = 0;  // of a chunk
};

// The same range of leaves of every chunk of a group.
struct WriteWindow {
  std::shared_ptr<ChunkGroup> group;  // null: behind the last one
  std::vector<LeafRange> ranges;      // one per chunk
  std::vector<std::size_t> first;     // of each range, counted through the window
  std::size_t leaves = 0;
  bool last_of_group = false;
};

class ChunkWriting {
 public:
  ChunkWriting(const RegionPlan& plan, StoreOutput& output, LeafSource& source, const ChunkWriteOptions& options)
      : plan_(plan), metadata_(plan.array().metadata()), output_(output), source_(source), options_(options) {
    shape_windows();
  }

  [[nodiscard]] Result<WriteReport> run() {
    CGL_TRY_ASSIGN(WriteWindow now, next_window());
    while (now.group != nullptr) {
      CGL_TRY_ASSIGN(WriteWindow next, next_window());
      CGL_TRY(source_.begin_window(now.ranges, next.ranges));
      CGL_TRY(write(now));
      now = std::move(next);
    }
    return report_;
  }

 private:
  // Every thread has an outer chunk to write where there are enough of them. Shards are cut over several windows where
  // the output takes pieces; such a piece can be made by the thread that writes it, just before, where no codec has
  // work for more threads than that: its bytes are still in the core's cache then.
  void shape_windows() {
    const ChunkCoding& coding = metadata_.coding;
    const CodecChain& chain = metadata_.leaf_coding().chain;
    std::uint64_t outer_bytes = metadata_.type.bytes();
    for (const std::uint64_t extent : metadata_.chunk_shape) outer_bytes *= extent;
    outer_bytes = std::max<std::uint64_t>(1, outer_bytes);
    const std::uint64_t leaf_bytes = std::max<std::uint64_t>(1, plan_.leaf_bytes());
    const ThreadPool* const pool = options_.write.pool;
    const auto threads = static_cast<std::uint64_t>(pool == nullptr ? 1 : pool->threads());

    only_checksum_ = chain.empty() || (chain.size() == 1 && chain[0].kind == CodecKind::crc32c);
    in_pieces_ = output_.takes_pieces() && coding.sharding != nullptr && coding.chain.empty() &&
                 coding.sharding->inner->sharding == nullptr && !coding.sharding->index_at_start;
    made_when_written_ = only_checksum_ && (in_pieces_ || coding.sharding == nullptr) && plan_.outer_count() >= threads;
    const bool bounded = !made_when_written_ || source_.holds_whole_leaves();
    group_chunks_ = std::max<std::uint64_t>(1, options_.window_bytes / outer_bytes);
    if (group_chunks_ > threads) group_chunks_ -= group_chunks_ % threads;
    if (in_pieces_ && group_chunks_ < threads) {
      group_chunks_ = threads;
      slice_ = std::max<std::uint64_t>(1, options_.window_bytes / (leaf_bytes * threads));
      // A group that is not full leaves its share of the window to the others.
      if (plan_.outer_count() < threads) slice_ = slice_ * threads / std::max<std::uint64_t>(1, plan_.outer_count());
    }
    if (!bounded) slice_ = all_leaves;
  }

  // Opens the group's chunks where a new one begins.
  [[nodiscard]] Result<WriteWindow> next_window() {
    WriteWindow window;
    if (group_ == nullptr || next_leaf_ >= group_->most_leaves) {
      if (next_outer_ == plan_.outer_count()) return window;
      group_ = std::make_shared<ChunkGroup>();
      const std::uint64_t count = std::min(group_chunks_, plan_.outer_count() - next_outer_);
      group_->chunks.resize(static_cast<std::size_t>(count));
      CGL_TRY(for_all(group_->chunks.size(),
                      [&](std::size_t i) { return open(plan_.outer_index(next_outer_ + i), group_->chunks[i]); }));
      for (const PendingChunk& chunk : group_->chunks) {
        group_->most_leaves = std::max(group_->most_leaves, chunk.leaves.size());
      }
      next_outer_ += count;
      next_leaf_ = 0;
    }
    const std::size_t begin = next_leaf_;
    const std::size_t end =
        begin + static_cast<std::size_t>(std::min<std::uint64_t>(slice_, group_->most_leaves - begin));
    next_leaf_ = end;
    window.group = group_;
    window.last_of_group = end == group_->most_leaves;
    for (const PendingChunk& chunk : group_->chunks) {
      const std::size_t size = chunk.leaves.size();
      window.ranges.push_back({&chunk.leaves, std::min(begin, size), std::min(end, size)});
      window.first.push_back(window.leaves);
      window.leaves += window.ranges.back().end - window.ranges.back().begin;
    }
    return window;
  }

  template <class Body>
  [[nodiscard]] Status for_all(std::size_t count, Body&& body, bool in_order = false) {
    FirstFailure failure;
    const auto piece = [&](std::size_t begin, std::size_t end) {
      failure.note(begin, catch_out_of_memory([&]() -> Status {
                     for (std::size_t i = begin; i < end; ++i) {
                       CGL_TRY(options_.write.cancel.check());
                       CGL_TRY(body(i));
                     }
                     return {};
                   }));
    };
    if (options_.write.pool != nullptr && count > 1 && !in_order) {
      options_.write.pool->parallel_for(count, 1, piece);
    } else {
      piece(0, count);
    }
    return failure.take();
  }

  [[nodiscard]] Status write(const WriteWindow& window) {
    const std::size_t chunks = window.ranges.size();
    const std::size_t kept_leaves = made_when_written_ ? chunks : window.leaves;
    if (leaves_.size() < kept_leaves) leaves_.resize(kept_leaves);
    if (!made_when_written_) {
      std::vector<std::size_t> chunk_of(window.leaves);
      for (std::size_t c = 0; c < chunks; ++c) {
        const LeafRange& range = window.ranges[c];
        std::fill_n(chunk_of.begin() + static_cast<std::ptrdiff_t>(window.first[c]), range.end - range.begin, c);
      }
      CGL_TRY(for_all(window.leaves, [&](std::size_t number) {
        const std::size_t c = chunk_of[number];
        const std::size_t i = window.ranges[c].begin + (number - window.first[c]);
        return make_leaf_of(*window.ranges[c].leaves, i, number, leaves_[number]);
      }));
    }
    std::vector<WriteReport> reports(chunks);
    CGL_TRY(for_all(
        chunks, [&](std::size_t c) { return put(window, c, reports[c]); }, output_.ordered()));
    for (const WriteReport& report : reports) {
      report_.chunks += report.chunks;
      report_.stored_bytes += report.stored_bytes;
    }
    return {};
  }

  // What is stored is looked at only where the region leaves something of it.
  [[nodiscard]] Status open(Shape index, PendingChunk& chunk) {
    bool covered = true;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const std::uint64_t begin = index[d] * metadata_.chunk_shape[d];
      const std::uint64_t end = std::min(begin + metadata_.chunk_shape[d], metadata_.shape[d]);
      const Region& region = plan_.region();
      covered = covered && begin >= region.origin[d] && end <= region.origin[d] + region.shape[d];
    }
    chunk.index = std::move(index);
    CGL_TRY_ASSIGN(chunk.leaves,
                   RegionPlan::leaves_of(plan_.array(), chunk.index, !covered && plan_.array().has_store()));
    return {};
  }

  [[nodiscard]] bool meets_region(std::span<const std::uint64_t> origin, const Shape& shape) const {
    const Region& region = plan_.region();
    for (std::size_t d = 0; d < origin.size(); ++d) {
      if (origin[d] >= region.origin[d] + region.shape[d] || origin[d] + shape[d] <= region.origin[d]) return false;
    }
    return true;
  }

  [[nodiscard]] Status make_leaf_of(const LeafWindow& leaves, std::size_t i, std::size_t number, PendingLeaf& leaf) {
    Status made = make_leaf(leaves, i, number, leaf);
    if (made) return made;
    return add_context(std::move(made), "writing {}", plan_.describe(leaves, i));
  }

  [[nodiscard]] Status make_leaf(const LeafWindow& leaves, std::size_t i, std::size_t number, PendingLeaf& leaf) {
    const std::span<const std::uint64_t> origin = leaves.origin(i);
    const LeafChunk& old = leaves.leaf(i);
    leaf.stored = true;
    leaf.checksum_bytes = 0;
    const ScratchPool::Loan scratch = scratches_.take();
    if (!meets_region(origin, leaf_shape_)) {
      leaf.stored = old.object != nullptr;
      if (!leaf.stored) return {};
      // As it is: it need not even be decoded.
      CGL_TRY_ASSIGN(const auto bytes, plan_.read_encoded(leaves, i, *scratch));
      keep(bytes, leaf);
      return {};
    }
    LeafPart part{number, origin, plan_.covers(origin) && plan_.is_inside(origin), {}};
    if (!part.whole || !source_.holds_whole_leaves()) {
      // Elements go straight to where they are written from, where no codec comes behind them.
      BulkVector<std::byte>& memory = only_checksum_ ? leaf.memory : (*scratch).encoded;
      part.room = (*scratch).room(memory, static_cast<std::size_t>(plan_.leaf_bytes()));
    }
    if (!part.whole) {
      if (!plan_.covers(origin) && old.object != nullptr) {
        // load() reads into scratch.encoded, which may be the room: a copy of its own.
        CodecScratch own;
        CGL_TRY_ASSIGN(const auto before, plan_.load(leaves, i, own));
        std::copy(before.begin(), before.end(), part.room.begin());
      } else {
        fill_stored(metadata_, part.room);
      }
    }
    CGL_TRY_ASSIGN(const auto elements, source_.leaf(part));
    const CodecChain& chain = metadata_.leaf_coding().chain;
    if (!only_checksum_) {
      CGL_TRY_ASSIGN(const auto encoded, encode_chain(chain, elements, *scratch));
      keep(encoded, leaf);
      return {};
    }
    leaf.content = elements;
    if (chain.empty()) return {};
    store(std::span(leaf.checksum), 0, crc32c(elements));
    leaf.checksum_bytes = leaf.checksum.size();
    return {};
  }

  static void keep(std::span<const std::byte> bytes, PendingLeaf& leaf) {
    if (leaf.memory.size() < bytes.size()) leaf.memory.resize(bytes.size());
    std::copy(bytes.begin(), bytes.end(), leaf.memory.begin());
    leaf.content = std::span(leaf.memory).first(bytes.size());
  }

  // The pieces of a key's bytes one behind the other; what is made for them lives in `owned`.
  struct Assembly {
    std::vector<std::span<const std::byte>> parts;
    std::deque<std::vector<std::byte>> owned;
    std::uint64_t bytes = 0;
    void add(std::span<const std::byte> part) {
      if (part.empty()) return;
      parts.push_back(part);
      bytes += part.size();
    }
    void add_owned(std::vector<std::byte> part) {
      owned.push_back(std::move(part));
      add(owned.back());
    }
  };

  // What the window has of a chunk.
  [[nodiscard]] Status put(const WriteWindow& window, std::size_t c, WriteReport& report) {
    PendingChunk& chunk = window.group->chunks[c];
    const LeafRange& range = window.ranges[c];
    const auto leaf_at = [&](std::size_t i) -> Result<const PendingLeaf*> {
      const std::size_t number = window.first[c] + (i - range.begin);
      PendingLeaf& leaf = leaves_[made_when_written_ ? c : number];
      if (made_when_written_) CGL_TRY(make_leaf_of(*range.leaves, i, number, leaf));
      report.chunks += leaf.stored ? 1U : 0U;
      report.stored_bytes += leaf.stored ? leaf.bytes() : 0;
      return &leaf;
    };
    if (in_pieces_) {
      for (std::size_t i = range.begin; i < range.end; ++i) {
        CGL_TRY_ASSIGN(const PendingLeaf* const leaf, leaf_at(i));
        if (leaf->stored) CGL_TRY(append(chunk, i, *leaf));
      }
      return window.last_of_group ? end_shard(chunk) : Status();
    }
    Assembly assembly;
    std::size_t next = 0;
    CGL_TRY_ASSIGN(const bool any, assemble(metadata_.coding, metadata_.chunk_shape, chunk, leaf_at, next, assembly));
    if (!any) return {};
    const std::string key = plan_.array().key_of(chunk.index);
    plan_.array().shard_indices().forget(key);
    return output_.put(key, assembly.parts);
  }

  // One leaf behind the others of its shard.
  [[nodiscard]] Status append(PendingChunk& chunk, std::size_t i, const PendingLeaf& leaf) {
    const Sharding& sharding = *metadata_.coding.sharding;
    OpenShard& shard = chunk.shard;
    if (shard.output == nullptr) {
      shard.index.resize(static_cast<std::size_t>(inner_count(sharding, metadata_.chunk_shape)));
      const std::uint64_t leaf_bytes = encoded_bytes(metadata_.leaf_coding().chain, plan_.leaf_bytes());
      const std::uint64_t most = chunk.leaves.size() * (leaf_bytes + (is_aligned() ? inner_chunk_alignment : 0)) +
                                 encoded_bytes(sharding.index_chain, shard.index.size() * sizeof(ShardEntry));
      CGL_TRY_ASSIGN(shard.output, output_.begin(plan_.array().key_of(chunk.index), most));
    }
    const std::uint64_t padding = padding_at(shard.bytes);
    shard.waiting.resize(shard.waiting.size() + static_cast<std::size_t>(padding));
    shard.bytes += padding;
    if (!shard.waiting.empty()) CGL_TRY(shard.output->append(shard.waiting));
    CGL_TRY(shard.output->append(leaf.content));
    const auto checksum = leaf.checksum_part();
    shard.waiting.assign(checksum.begin(), checksum.end());
    const auto origin = chunk.leaves.origin(i);
    Shape cell(origin.size());
    for (std::size_t d = 0; d < cell.size(); ++d) {
      cell[d] = (origin[d] - chunk.index[d] * metadata_.chunk_shape[d]) / sharding.inner_shape[d];
    }
    shard.index[static_cast<std::size_t>(index_of(sharding, metadata_.chunk_shape, cell))] = {shard.bytes,
                                                                                              leaf.bytes()};
    shard.bytes += leaf.bytes();
    return {};
  }

  [[nodiscard]] Status end_shard(PendingChunk& chunk) {
    OpenShard& shard = chunk.shard;
    if (shard.output == nullptr) return {};
    CGL_TRY_ASSIGN(const std::vector<std::byte> index, encode_shard_index(*metadata_.coding.sharding, shard.index));
    shard.waiting.insert(shard.waiting.end(), index.begin(), index.end());
    CGL_TRY(shard.output->append(shard.waiting));
    plan_.array().shard_indices().forget(plan_.array().key_of(chunk.index));
    CGL_TRY(shard.output->end());
    shard = {};
    return {};
  }

  [[nodiscard]] bool is_aligned() const { return plan_.leaf_bytes() >= aligned_from_bytes; }
  [[nodiscard]] std::uint64_t padding_at(std::uint64_t position) const {
    return is_aligned() ? (inner_chunk_alignment - position % inner_chunk_alignment) % inner_chunk_alignment : 0;
  }

  // Leaves follow in the order of the array within every level, so that shards in shards take theirs one after another.
  template <class LeafAt>
  [[nodiscard]] Result<bool> assemble(const ChunkCoding& coding, std::span<const std::uint64_t> shape,
                                      const PendingChunk& chunk, const LeafAt& leaf_at, std::size_t& next,
                                      Assembly& assembly) {
    if (coding.sharding == nullptr) {
      CGL_TRY_ASSIGN(const PendingLeaf* const leaf, leaf_at(next));
      ++next;
      if (!leaf->stored) return false;
      assembly.add(leaf->content);
      assembly.add(leaf->checksum_part());
      return true;
    }
    const Sharding& sharding = *coding.sharding;
    const std::uint64_t begin = assembly.bytes;
    const std::size_t rank = shape.size();
    ShardIndex index(static_cast<std::size_t>(inner_count(sharding, shape)));
    const std::uint64_t index_bytes = encoded_bytes(sharding.index_chain, index.size() * sizeof(ShardEntry));
    std::size_t index_part = assembly.parts.size();
    if (sharding.index_at_start) assembly.add_owned(std::vector<std::byte>(static_cast<std::size_t>(index_bytes)));
    const std::size_t index_owned = assembly.owned.size();
    const bool of_leaves = sharding.inner->sharding == nullptr;
    bool any = false;
    // Only cells in the array have leaves.
    const Shape first_origin = origin_of(chunk, next);
    Shape counts(rank), cell(rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t end = std::min(first_origin[d] + shape[d], metadata_.shape[d]);
      counts[d] = (end - first_origin[d] + sharding.inner_shape[d] - 1) / sharding.inner_shape[d];
    }
    do {
      const std::uint64_t padding = of_leaves ? padding_at(assembly.bytes - begin) : 0;
      Assembly inner;
      CGL_TRY_ASSIGN(const bool stored, assemble(*sharding.inner, sharding.inner_shape, chunk, leaf_at, next, inner));
      if (stored) {
        any = true;
        if (padding > 0) assembly.add(std::span(padding_).first(static_cast<std::size_t>(padding)));
        index[static_cast<std::size_t>(index_of(sharding, shape, cell))] = {assembly.bytes - begin, inner.bytes};
        for (const auto part : inner.parts) assembly.add(part);
        std::move(inner.owned.begin(), inner.owned.end(), std::back_inserter(assembly.owned));
      }
    } while (next_cell(cell, counts));
    CGL_TRY_ASSIGN(std::vector<std::byte> encoded, encode_shard_index(sharding, index));
    if (sharding.index_at_start) {
      std::copy(encoded.begin(), encoded.end(), assembly.owned[index_owned - 1].begin());
    } else {
      assembly.add_owned(std::move(encoded));
    }
    for (const Codec& codec : coding.chain) CGL_TRY(add_checksum(codec, index_part, begin, assembly));
    return any;
  }

  // Steps behind a shard are checksums over all its bytes.
  [[nodiscard]] static Status add_checksum(const Codec& codec, std::size_t first_part, std::uint64_t begin,
                                           Assembly& assembly) {
    std::vector<std::byte> all;
    all.reserve(static_cast<std::size_t>(assembly.bytes - begin));
    for (std::size_t p = first_part; p < assembly.parts.size(); ++p) {
      all.insert(all.end(), assembly.parts[p].begin(), assembly.parts[p].end());
    }
    CodecScratch scratch;
    CGL_TRY_ASSIGN(const auto encoded, encode_chain({codec}, all, scratch));
    const auto checksum = encoded.subspan(all.size());
    assembly.add_owned(std::vector<std::byte>(checksum.begin(), checksum.end()));
    return {};
  }

  [[nodiscard]] Shape origin_of(const PendingChunk& chunk, std::size_t leaf) const {
    const auto origin = chunk.leaves.origin(leaf);
    return {origin.begin(), origin.end()};
  }

  const RegionPlan& plan_;
  const ArrayMetadata& metadata_;
  const Shape leaf_shape_ = metadata_.leaf_shape();
  StoreOutput& output_;
  LeafSource& source_;
  const ChunkWriteOptions& options_;
  static constexpr std::uint64_t all_leaves = ~std::uint64_t{0};
  bool only_checksum_ = false;      // leaves are stored as their elements are
  bool in_pieces_ = false;          // shards grow in the output, leaf by leaf
  bool made_when_written_ = false;  // a leaf is made by the thread that writes it, else by any, before
  std::uint64_t group_chunks_ = 1;
  std::uint64_t slice_ = all_leaves;  // leaves of a chunk in a window
  const std::vector<std::byte> padding_ = std::vector<std::byte>(inner_chunk_alignment);
  ScratchPool scratches_;
  // What next_window() goes on with.
  std::shared_ptr<ChunkGroup> group_;
  std::size_t next_leaf_ = 0;
  std::uint64_t next_outer_ = 0;
  // Leaves of the window that is being written; one for each chunk where leaves are made when they are written.
  std::vector<PendingLeaf> leaves_;
  WriteReport report_;
};

// Elements of a region in host memory.
class HostSource final : public LeafSource {
 public:
  HostSource(const RegionPlan& plan, const std::byte* from) : plan_(plan), from_(from) {}
  [[nodiscard]] Result<std::span<const std::byte>> leaf(const LeafPart& part) override {
    plan_.for_each_move(part.origin, [&](const BoxMove& move) { gather(move, from_, part.room.data()); });
    return std::span<const std::byte>(part.room);
  }

 private:
  const RegionPlan& plan_;
  const std::byte* from_;
};

}  // namespace

Result<WriteReport> write_chunks(const RegionPlan& plan, StoreOutput& output, LeafSource& source,
                                 const ChunkWriteOptions& options) {
  return catch_out_of_memory([&] { return ChunkWriting(plan, output, source, options).run(); });
}

Result<WriteReport> write_region(const Array& array, StoreOutput& output, const Region& region,
                                 std::span<const std::byte> from, const ArrayWriteOptions& options) {
  return write_region(array, output, region, from, {}, options);
}

Result<WriteReport> write_region(const Array& array, StoreOutput& output, const Region& region,
                                 std::span<const std::byte> from, std::span<const std::int64_t> strides,
                                 const ArrayWriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<WriteReport> {
    CGL_TRY_ASSIGN(const RegionPlan plan, RegionPlan::create(array, region, strides));
    if (plan.place_bytes() > from.size()) {
      return fail(ErrorKind::invalid_argument, "a region of {} bytes does not lie in {}", plan.place_bytes(),
                  from.size());
    }
    HostSource source(plan, from.data());
    return write_chunks(plan, output, source, {options, ChunkWriteOptions{}.window_bytes});
  });
}

}  // namespace cingulum::zarr
