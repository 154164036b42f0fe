#include "zarr/chunk_writer.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/first_failure.hpp"
#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
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

// A leaf on its way to the output.
struct PendingLeaf {
  BulkVector<std::byte> memory;  // kept from window to window
  std::size_t bytes = 0;         // of it, encoded
  bool stored = false;           // false: neither the region nor the store has it
};

// An outer chunk on its way to the output: its leaves, in the order of the array.
struct PendingChunk {
  Shape index;
  LeafWindow leaves;
  std::size_t first_leaf = 0;  // of the window's
};

class ChunkWriting {
 public:
  ChunkWriting(const RegionPlan& plan, StoreOutput& output, LeafSource& source, const ChunkWriteOptions& options)
      : plan_(plan), metadata_(plan.array().metadata()), output_(output), source_(source), options_(options) {}

  [[nodiscard]] Result<WriteReport> run() {
    std::uint64_t outer_bytes = metadata_.type.bytes();
    for (const std::uint64_t extent : metadata_.chunk_shape) outer_bytes *= extent;
    const std::uint64_t each =
        std::max<std::uint64_t>(1, options_.window_bytes / std::max<std::uint64_t>(1, outer_bytes));
    for (std::uint64_t first = 0; first < plan_.outer_count(); first += each) {
      const std::uint64_t count = std::min(each, plan_.outer_count() - first);
      CGL_TRY(source_.begin_window(first, count));
      CGL_TRY(window(first, static_cast<std::size_t>(count)));
    }
    return report_;
  }

 private:
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

  [[nodiscard]] Status window(std::uint64_t first, std::size_t count) {
    std::vector<PendingChunk> chunks(count);
    CGL_TRY(for_all(count, [&](std::size_t i) { return open(plan_.outer_index(first + i), chunks[i]); }));
    std::vector<std::pair<std::size_t, std::size_t>> tasks;  // chunk, leaf in it
    for (std::size_t c = 0; c < count; ++c) {
      chunks[c].first_leaf = tasks.size();
      for (std::size_t i = 0; i < chunks[c].leaves.size(); ++i) tasks.emplace_back(c, i);
    }
    if (leaves_.size() < tasks.size()) leaves_.resize(tasks.size());
    CGL_TRY(for_all(tasks.size(), [&](std::size_t task) {
      const PendingChunk& chunk = chunks[tasks[task].first];
      return add_context(make_leaf(chunk.leaves, tasks[task].second, leaves_[task]), "writing {}",
                         plan_.describe(chunk.leaves, tasks[task].second));
    }));
    CGL_TRY(for_all(
        count, [&](std::size_t c) { return put(chunks[c]); }, output_.ordered()));
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      report_.chunks += leaves_[task].stored ? 1U : 0U;
      report_.stored_bytes += leaves_[task].stored ? leaves_[task].bytes : 0;
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

  [[nodiscard]] Status make_leaf(const LeafWindow& leaves, std::size_t i, PendingLeaf& leaf) {
    const std::span<const std::uint64_t> origin = leaves.origin(i);
    const LeafChunk& old = leaves.leaf(i);
    leaf.stored = true;
    const ScratchPool::Loan scratch = scratches_.take();
    if (!meets_region(origin, leaf_shape_)) {
      leaf.stored = old.object != nullptr;
      if (!leaf.stored) return {};
      // As it is: it need not even be decoded.
      CGL_TRY_ASSIGN(const auto bytes, plan_.read_encoded(leaves, i, *scratch));
      return keep(bytes, leaf);
    }
    const CodecChain& chain = metadata_.leaf_coding().chain;
    const auto size = static_cast<std::size_t>(plan_.leaf_bytes());
    const bool only_checksum = chain.empty() || (chain.size() == 1 && chain[0].kind == CodecKind::crc32c);
    // Elements go straight to where they are written from, where nothing but a checksum comes behind them.
    BulkVector<std::byte>& memory = only_checksum ? leaf.memory : (*scratch).encoded;
    const std::size_t checksum_bytes = only_checksum && !chain.empty() ? sizeof(std::uint32_t) : 0;
    LeafPart part{origin, plan_.covers(origin) && plan_.is_inside(origin),
                  (*scratch).room(memory, size + checksum_bytes).first(size)};
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
    if (!only_checksum) {
      CGL_TRY_ASSIGN(const auto encoded, encode_chain(chain, elements, *scratch));
      return keep(encoded, leaf);
    }
    if (elements.data() != part.room.data()) std::copy(elements.begin(), elements.end(), part.room.begin());
    leaf.bytes = size + checksum_bytes;
    if (checksum_bytes > 0) store(std::span(leaf.memory), size, crc32c(part.room));
    return {};
  }

  [[nodiscard]] static Status keep(std::span<const std::byte> bytes, PendingLeaf& leaf) {
    if (leaf.memory.size() < bytes.size()) leaf.memory.resize(bytes.size());
    std::copy(bytes.begin(), bytes.end(), leaf.memory.begin());
    leaf.bytes = bytes.size();
    return {};
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

  [[nodiscard]] Status put(const PendingChunk& chunk) {
    Assembly assembly;
    std::size_t next = 0;
    CGL_TRY_ASSIGN(const bool any, assemble(metadata_.coding, metadata_.chunk_shape, chunk, next, assembly));
    if (!any) return {};
    const std::string key = plan_.array().key_of(chunk.index);
    plan_.array().shard_indices().forget(key);
    return output_.put(key, assembly.parts);
  }

  // Leaves follow in the order of the array within every level, so that shards in shards take theirs one after another.
  [[nodiscard]] Result<bool> assemble(const ChunkCoding& coding, std::span<const std::uint64_t> shape,
                                      const PendingChunk& chunk, std::size_t& next, Assembly& assembly) {
    if (coding.sharding == nullptr) {
      const PendingLeaf& leaf = leaves_[chunk.first_leaf + next];
      ++next;
      if (leaf.stored) assembly.add(std::span(leaf.memory).first(leaf.bytes));
      return leaf.stored;
    }
    const Sharding& sharding = *coding.sharding;
    const std::uint64_t begin = assembly.bytes;
    const std::size_t rank = shape.size();
    ShardIndex index(static_cast<std::size_t>(inner_count(sharding, shape)));
    const std::uint64_t index_bytes = encoded_bytes(sharding.index_chain, index.size() * sizeof(ShardEntry));
    std::size_t index_part = assembly.parts.size();
    if (sharding.index_at_start) assembly.add_owned(std::vector<std::byte>(static_cast<std::size_t>(index_bytes)));
    const std::size_t index_owned = assembly.owned.size();
    const bool aligned = sharding.inner->sharding == nullptr && plan_.leaf_bytes() >= aligned_from_bytes;
    bool any = false;
    // Only cells in the array have leaves.
    const Shape first_origin = origin_of(chunk, next);
    Shape counts(rank), cell(rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t end = std::min(first_origin[d] + shape[d], metadata_.shape[d]);
      counts[d] = (end - first_origin[d] + sharding.inner_shape[d] - 1) / sharding.inner_shape[d];
    }
    while (true) {
      const std::uint64_t position = assembly.bytes - begin;
      const std::uint64_t padding =
          aligned ? (inner_chunk_alignment - position % inner_chunk_alignment) % inner_chunk_alignment : 0;
      Assembly inner;
      CGL_TRY_ASSIGN(const bool stored, assemble(*sharding.inner, sharding.inner_shape, chunk, next, inner));
      if (stored) {
        any = true;
        if (padding > 0) assembly.add(std::span(padding_).first(static_cast<std::size_t>(padding)));
        index[static_cast<std::size_t>(index_of(sharding, shape, cell))] = {assembly.bytes - begin, inner.bytes};
        for (const auto part : inner.parts) assembly.add(part);
        std::move(inner.owned.begin(), inner.owned.end(), std::back_inserter(assembly.owned));
      }
      std::size_t d = rank;
      while (d > 0 && ++cell[d - 1] == counts[d - 1]) cell[--d] = 0;
      if (d == 0) break;
    }
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
  const std::vector<std::byte> padding_ = std::vector<std::byte>(inner_chunk_alignment);
  ScratchPool scratches_;
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
