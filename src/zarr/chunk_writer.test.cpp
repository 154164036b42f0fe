// Chunks and shards are the same bytes however they were cut on their way: into windows, over threads, piece by piece
// into files or whole into memory.
#include "zarr/chunk_writer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>

#include "base/thread_pool.hpp"
#include "support/memory_store.hpp"
#include "support/temporary_folder.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace chunk_writer_tests {

using testing::MemoryStore;
using testing::StoredKeys;

// As the source of a device: whole leaves lie in memory of its own, which is written over two windows later.
class TwoWindows final : public LeafSource {
 public:
  TwoWindows(const RegionPlan& plan, std::span<const std::byte> from) : plan_(plan), from_(from) {}

  [[nodiscard]] Result<std::span<const std::byte>> leaf(const LeafPart& part) override {
    EXPECT_LT(part.number, windows_[current_].size());
    if (!part.whole) {
      EXPECT_EQ(part.room.size(), plan_.leaf_bytes());
      put(part.origin, part.room);
      return std::span<const std::byte>(part.room);
    }
    EXPECT_TRUE(part.room.empty());
    return std::span<const std::byte>(windows_[current_].at(part.number));
  }
  [[nodiscard]] bool holds_whole_leaves() const override { return true; }
  [[nodiscard]] Status begin_window(std::span<const LeafRange> now, std::span<const LeafRange> next) override {
    if (count_ == 0) make(now, windows_[0]);
    current_ = count_ % 2;
    EXPECT_EQ(windows_[current_].size(), leaves_of(now));
    most_leaves_ = std::max(most_leaves_, leaves_of(now));
    make(next, windows_[1 - current_]);
    ++count_;
    return {};
  }
  [[nodiscard]] std::size_t windows() const { return count_; }
  [[nodiscard]] std::size_t most_leaves() const { return most_leaves_; }

 private:
  using Window = std::vector<std::vector<std::byte>>;
  static std::size_t leaves_of(std::span<const LeafRange> ranges) {
    std::size_t count = 0;
    for (const LeafRange& range : ranges) count += range.end - range.begin;
    return count;
  }
  void put(std::span<const std::uint64_t> origin, std::span<std::byte> room) const {
    plan_.for_each_move(origin, [&](const BoxMove& move) { gather(move, from_.data(), room.data()); });
  }
  void make(std::span<const LeafRange> ranges, Window& window) const {
    for (std::vector<std::byte>& old : window) std::fill(old.begin(), old.end(), std::byte{0xee});
    window.clear();
    for (const LeafRange& range : ranges) {
      for (std::size_t i = range.begin; i < range.end; ++i) {
        std::vector<std::byte>& leaf = window.emplace_back(plan_.leaf_bytes());
        const auto origin = range.leaves->origin(i);
        if (plan_.covers(origin) && plan_.is_inside(origin)) put(origin, leaf);
      }
    }
  }

  const RegionPlan& plan_;
  std::span<const std::byte> from_;
  Window windows_[2];
  std::size_t count_ = 0, current_ = 0, most_leaves_ = 0;
};

struct Coding {
  const char* name;
  const char* codec;
  bool sharded;
  bool checksum;
};
const Coding codings[] = {{"plain shards with checksums", "none", true, true},
                          {"plain shards", "none", true, false},
                          {"compressed shards", "zstd", true, true},
                          {"plain chunks", "none", false, false},
                          {"compressed chunks", "blosc-lz4", false, true}};

ArrayMetadata metadata_of(const Coding& coding, Shape chunk_shape, Shape shard_shape, Shape shape) {
  NewArray wanted;
  wanted.shape = std::move(shape);
  wanted.type = element_type_of<std::uint16_t>();
  wanted.chunk_shape = std::move(chunk_shape);
  wanted.sharded = coding.sharded;
  if (coding.sharded) wanted.shard_shape = std::move(shard_shape);
  wanted.codec = *parse_codec_choice(coding.codec);
  wanted.codec->checksum = coding.checksum;
  return *describe_new_array(wanted);
}

std::vector<std::byte> noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> content(bytes);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random() % 7);
  return content;
}

// Keys go whole into memory: the way of archives.
StoredKeys written_whole(const ArrayMetadata& metadata, std::span<const std::byte> elements) {
  const TemporaryFolder folder;
  const auto output = *new_hierarchy(folder / "a.zip", {.sync = false});
  EXPECT_TRUE(write_array_metadata("", metadata, *output));
  EXPECT_TRUE(write_region(Array::describe(nullptr, "", metadata), *output, whole(metadata), elements));
  EXPECT_TRUE(output->commit());
  const auto store = *Store::open(folder / "a.zip");
  StoredKeys keys;
  const std::function<void(const std::string&)> walk = [&](const std::string& prefix) {
    const auto children = *store->children(prefix);
    const std::string before = prefix.empty() ? "" : prefix + "/";
    for (const std::string& name : children.keys) {
      const auto object = *store->open_object(before + name);
      auto& content = keys[before + name];
      content.resize(static_cast<std::size_t>(object->size()));
      EXPECT_TRUE(object->read_at(0, std::as_writable_bytes(std::span(content))));
    }
    for (const std::string& name : children.folders) walk(before + name);
  };
  walk("");
  return keys;
}

TEST(ZarrChunkWriter, windows_and_threads_change_no_byte) {
  for (const Coding& coding : codings) {
    const ArrayMetadata metadata = metadata_of(coding, {4, 6}, {16, 24}, {61, 95});
    const auto elements = noise(static_cast<std::size_t>(metadata.bytes()), 1);
    const StoredKeys expected = written_whole(metadata, elements);
    ASSERT_GT(expected.size(), 10U);
    const Array array = Array::describe(nullptr, "", metadata);
    const RegionPlan plan = *RegionPlan::create(array, whole(metadata));
    for (const int threads : {1, 2, 5}) {
      const auto pool = *ThreadPool::create(threads);
      for (const std::uint64_t window_bytes : {1U, 400U, 2000U, 1U << 20U}) {
        SCOPED_TRACE(fmt::format("{}, {} threads, windows of {} bytes", coding.name, threads, window_bytes));
        const TemporaryFolder folder;
        const auto output = *new_hierarchy(folder / "a.zarr", {.sync = false});
        ASSERT_TRUE(write_array_metadata("", metadata, *output));
        TwoWindows source(plan, elements);
        const auto report = write_chunks(plan, *output, source, {{pool.get(), {}}, window_bytes});
        ASSERT_TRUE(report);
        EXPECT_EQ(report->chunks, plan.leaf_count());
        ASSERT_TRUE(output->commit());
        EXPECT_EQ(MemoryStore::keys_of(folder / "a.zarr"), expected);
        // At least a leaf of each shard that is written at a time; chunks are written one window after another.
        const std::uint64_t leaf_bytes = plan.leaf_bytes();
        EXPECT_LE(source.most_leaves(), std::max<std::uint64_t>(window_bytes / leaf_bytes, 5 * 16));
        if (window_bytes == 1) {
          EXPECT_GT(source.windows(), 3U);
        }
      }
    }
  }
}

// Chunks of 64 KiB and more begin at pages of 4 KiB, also behind a checksum and in another window than the one before.
TEST(ZarrChunkWriter, aligned_chunks_are_so_in_every_window) {
  for (const Coding& coding : codings) {
    if (!coding.sharded) continue;
    const ArrayMetadata metadata = metadata_of(coding, {128, 256}, {256, 512}, {300, 1300});
    const auto elements = noise(static_cast<std::size_t>(metadata.bytes()), 5);
    const StoredKeys expected = written_whole(metadata, elements);
    const Array array = Array::describe(nullptr, "", metadata);
    const RegionPlan plan = *RegionPlan::create(array, whole(metadata));
    const auto pool = *ThreadPool::create(2);
    for (const std::uint64_t window_bytes : {1U, 1U << 24U}) {
      SCOPED_TRACE(fmt::format("{}, windows of {} bytes", coding.name, window_bytes));
      const TemporaryFolder folder;
      const auto output = *new_hierarchy(folder / "a.zarr", {.sync = false});
      ASSERT_TRUE(write_array_metadata("", metadata, *output));
      TwoWindows source(plan, elements);
      ASSERT_TRUE(write_chunks(plan, *output, source, {{pool.get(), {}}, window_bytes}));
      ASSERT_TRUE(output->commit());
      EXPECT_EQ(MemoryStore::keys_of(folder / "a.zarr"), expected);
    }
    const std::uint64_t entry = expected.at("c/0/0").size() - 4 - 4 * 16;  // four chunks, behind them a checksum
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint64_t offset = 0;
      std::memcpy(&offset, expected.at("c/0/0").data() + entry + i * 16, 8);
      EXPECT_EQ(offset % inner_chunk_alignment, 0U) << coding.name;
    }
  }
}

TEST(ZarrChunkWriter, a_part_of_shards_that_are_there_is_replaced_piece_by_piece) {
  for (const Coding& coding : codings) {
    const ArrayMetadata metadata = metadata_of(coding, {4, 6}, {16, 24}, {61, 95});
    auto elements = noise(static_cast<std::size_t>(metadata.bytes()), 2);
    const Region region{{7, 13}, {41, 60}};
    const auto part = noise(static_cast<std::size_t>(region.shape[0] * region.shape[1] * 2), 3);
    for (const std::uint64_t window_bytes : {1U, 700U, 1U << 20U}) {
      SCOPED_TRACE(fmt::format("{}, windows of {} bytes", coding.name, window_bytes));
      const TemporaryFolder folder;
      const auto made = *new_hierarchy(folder / "a.zarr", {.sync = false});
      ASSERT_TRUE(write_array_metadata("", metadata, *made));
      ASSERT_TRUE(write_region(Array::describe(nullptr, "", metadata), *made, whole(metadata), elements));
      ASSERT_TRUE(made->commit());

      const auto pool = *ThreadPool::create(3);
      const Array array = *Array::open(*Store::open(folder / "a.zarr"), "");
      const RegionPlan plan = *RegionPlan::create(array, region);
      TwoWindows source(plan, part);
      const auto output = *existing_folder(folder / "a.zarr", {.sync = false});
      ASSERT_TRUE(write_chunks(plan, *output, source, {{pool.get(), {}}, window_bytes}));
      std::vector<std::byte> found(elements.size());
      ASSERT_TRUE(read_region(array, whole(metadata), found));
      std::vector<std::byte> expected = elements;
      for (std::uint64_t row = 0; row < region.shape[0]; ++row) {
        std::memcpy(expected.data() + ((region.origin[0] + row) * 95 + region.origin[1]) * 2,
                    part.data() + row * region.shape[1] * 2, region.shape[1] * 2);
      }
      EXPECT_TRUE(found == expected);
    }
  }
}

// A failure in the middle of a shard leaves the old one, and nothing beside it.
TEST(ZarrChunkWriter, a_source_that_fails_leaves_shards_whole) {
  const ArrayMetadata metadata = metadata_of(codings[0], {4, 6}, {16, 24}, {64, 96});
  const auto elements = noise(static_cast<std::size_t>(metadata.bytes()), 4);
  const TemporaryFolder folder;
  const auto made = *new_hierarchy(folder / "a.zarr", {.sync = false});
  ASSERT_TRUE(write_array_metadata("", metadata, *made));
  ASSERT_TRUE(write_region(Array::describe(nullptr, "", metadata), *made, whole(metadata), elements));
  ASSERT_TRUE(made->commit());
  const StoredKeys before = MemoryStore::keys_of(folder / "a.zarr");

  class Failing final : public LeafSource {
   public:
    explicit Failing(std::uint64_t bytes) : zeros_(bytes) {}
    [[nodiscard]] Result<std::span<const std::byte>> leaf(const LeafPart& part) override {
      if (part.origin[0] % 16 == 8) return fail(ErrorKind::io, "the source is gone");
      return std::span<const std::byte>(zeros_);
    }

   private:
    std::vector<std::byte> zeros_;
  };
  const Array array = *Array::open(*Store::open(folder / "a.zarr"), "");
  const RegionPlan plan = *RegionPlan::create(array, whole(metadata));
  Failing source(plan.leaf_bytes());
  const auto output = *existing_folder(folder / "a.zarr", {.sync = false});
  const auto written = write_chunks(plan, *output, source, {{}, 1});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("the source is gone"), std::string::npos);
  EXPECT_NE(written.error().message().find("chunk 2.0 in shard c/0/0"), std::string::npos) << written.error().message();
  EXPECT_EQ(MemoryStore::keys_of(folder / "a.zarr"), before);
}

}  // namespace chunk_writer_tests
}  // namespace cingulum::zarr
