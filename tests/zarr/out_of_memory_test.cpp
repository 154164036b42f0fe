// Memory runs out for Zarr: allocation n fails, for every n, while regions are read and written and while arrays are
// opened and made. The answer is an Error, nothing is leaked, and a failed writer leaves nothing.
//
// Opening and making arrays handles JSON, so that each attempt has a process of its own (failing_allocations.hpp).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/sidecar.hpp"
#include "support/failing_allocations.hpp"
#include "support/memory_store.hpp"
#include "support/temporary_folder.hpp"
#include "zarr/array.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace out_of_memory_tests {

using cingulum::testing::allocations_of;
using cingulum::testing::attempts_in_children;
using cingulum::testing::expect_errors_for_every_allocation;
using cingulum::testing::without_counting;

NewArray small_array(int format, const char* codec) {
  return {.format = format,
          .shape = {10, 9},
          .type = element_type_of<std::uint16_t>(),
          .chunk_shape = {4, 4},
          .shard_shape = {8, 8},
          .sharded = format == 3,
          .codec = *parse_codec_choice(codec),
          .dimension_names = {}};
}

Status write_whole(const Array& array, StoreOutput& output, std::span<const std::byte> elements) {
  return write_region(array, output, whole(array.metadata()), elements).map([](auto&&) {});
}

TEST(OutOfMemoryInZarr, while_regions_are_read_is_an_error) {
  const TemporaryFolder folder;
  for (const char* const codec : {"none", "zstd", "gzip", "bz2", "lz4", "blosc-lz4"}) {
    for (const int format : {3, 2}) {
      SCOPED_TRACE(fmt::format("{}, format {}", codec, format));
      const ArrayMetadata metadata = *describe_new_array(small_array(format, codec));
      const std::vector<std::byte> elements(static_cast<std::size_t>(metadata.bytes()), std::byte{7});
      for (const char* const name : {"an-array-with-a-long-name.zarr", "an-array-with-a-long-name.zarr.zip"}) {
        const std::filesystem::path path = folder / name;
        auto output = new_hierarchy(path, {.force = true, .sync = false});
        ASSERT_TRUE(output);
        ASSERT_TRUE(write_array_metadata("", metadata, **output));
        ASSERT_TRUE(write_whole(Array::describe(nullptr, "", metadata), **output, elements));
        ASSERT_TRUE((*output)->commit());
        const auto store = *Store::open(path);
        std::vector<std::byte> read(elements.size());
        // An array of its own for each attempt: what one keeps of shards the next would find.
        expect_errors_for_every_allocation(
            [&]() -> Status {
              return catch_out_of_memory([&]() -> Status {
                const Array array = Array::describe(store, "", metadata);
                return read_region(array, whole(metadata), read).map([](auto&&) {});
              });
            },
            5);
        EXPECT_EQ(read, elements);
      }
    }
  }
}

TEST(OutOfMemoryInZarr, while_regions_are_written_is_an_error_and_leaves_old_or_new_chunks) {
  const TemporaryFolder folder;
  for (const char* const codec : {"none", "zstd", "gzip"}) {
    SCOPED_TRACE(codec);
    const ArrayMetadata metadata = *describe_new_array(small_array(3, codec));
    const std::filesystem::path path = folder / "an-array-with-a-long-name.zarr";
    const std::vector<std::byte> old(static_cast<std::size_t>(metadata.bytes()), std::byte{7});
    const std::vector<std::byte> fresh(old.size(), std::byte{8});
    {
      auto output = new_hierarchy(path, {.force = true, .sync = false});
      ASSERT_TRUE(output);
      ASSERT_TRUE(write_array_metadata("", metadata, **output));
      ASSERT_TRUE(write_whole(Array::describe(nullptr, "", metadata), **output, old));
      ASSERT_TRUE((*output)->commit());
    }
    const auto store = *Store::open(path);
    const auto keys_before = cingulum::testing::MemoryStore::keys_of(path).size();
    const Region inside{{1, 1}, {8, 7}};  // every chunk is completed by what is stored
    expect_errors_for_every_allocation(
        [&]() -> Status {
          return catch_out_of_memory([&]() -> Status {
            const auto write = [&]() -> Status {
              CGL_TRY_ASSIGN(const auto output, existing_folder(path, {.sync = false}));
              return write_region(Array::describe(store, "", metadata), *output, inside, fresh).map([](auto&&) {});
            };
            Status status = write();
            without_counting([&] {
              EXPECT_EQ(cingulum::testing::MemoryStore::keys_of(path).size(), keys_before) << "something is left";
              std::vector<std::byte> read(old.size());
              EXPECT_TRUE(read_region(Array::describe(store, "", metadata), whole(metadata), read));
              for (const std::byte byte : read) EXPECT_TRUE(byte == std::byte{7} || byte == std::byte{8});
            });
            return status;
          });
        },
        10);
  }
}

TEST(OutOfMemoryInZarr, ends_the_process_only_where_json_is_handled) {
  const TemporaryFolder folder;
  const ArrayMetadata metadata = *describe_new_array(small_array(3, "zstd"));
  const std::filesystem::path path = folder / "an-array-with-a-long-name.zarr";
  const std::vector<std::byte> elements(static_cast<std::size_t>(metadata.bytes()), std::byte{7});
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto output, new_hierarchy(path, {.force = true, .sync = false}));
    CGL_TRY(write_array_metadata("", metadata, *output));
    CGL_TRY(write_whole(Array::describe(nullptr, "", metadata), *output, elements));
    return output->commit();
  };
  // Writing handles none. What cannot be removed, since memory has run out there, stays for the next process.
  expect_errors_for_every_allocation(
      [&]() -> Status {
        Status status = catch_out_of_memory(write);  // describe() is called by whoever catches
        without_counting([&] {
          for (const std::string& name : folder.names()) {
            EXPECT_TRUE((folder / name) == path || name.find(".partial-") != std::string::npos) << name;
            if ((folder / name) != path) std::filesystem::remove_all(folder / name);
          }
        });
        return status;
      },
      10);
  ASSERT_TRUE(write());
  const std::size_t parsing = allocations_of([&] {
    const auto json = parse_json(metadata.document);
    EXPECT_TRUE(json && parse_v3_array(*json));
  });
  expect_errors_for_every_allocation([&] { return Store::open(path).map([](auto&&) {}); }, 1);
  const auto store = *Store::open(path);
  const auto opening = attempts_in_children([&]() -> Status { return Array::open(store, "").map([](auto&&) {}); });
  EXPECT_GT(opening.refused, 10U);
  EXPECT_LE(opening.ended, parsing);
}

}  // namespace out_of_memory_tests
}  // namespace cingulum::zarr
