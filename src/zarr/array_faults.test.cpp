// Writing arrays when things fail: every file call that fails while a new array or a region of one is written, power
// cuts between any two calls, and the same bytes on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "support/disk_model.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/memory_store.hpp"
#include "support/temporary_folder.hpp"
#include "zarr/array.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace array_faults_tests {

using testing::MemoryStore;
using testing::StoredKeys;

ArrayMetadata small_metadata(std::string_view codec = "none") {
  return *describe_new_array({.shape = {8, 12},
                              .type = element_type_of<std::uint16_t>(),
                              .chunk_shape = {4, 4},
                              .shard_shape = {8, 8},
                              .codec = *parse_codec_choice(codec),
                              .dimension_names = {}});
}

std::vector<std::byte> variant_elements(const ArrayMetadata& metadata, unsigned variant) {
  std::mt19937 random(variant + 1);
  std::vector<std::byte> elements(static_cast<std::size_t>(metadata.bytes()));
  for (std::byte& byte : elements) byte = static_cast<std::byte>(random());
  return elements;
}

Status write_new(const std::filesystem::path& path, unsigned variant, const WriteOptions& options) {
  const ArrayMetadata metadata = small_metadata();
  CGL_TRY_ASSIGN(const auto output, new_hierarchy(path, options));
  CGL_TRY(write_array_metadata("", metadata, *output));
  const auto elements = variant_elements(metadata, variant);
  CGL_TRY(write_region(Array::describe(nullptr, "", metadata), *output, whole(metadata), elements).map([](auto&&) {}));
  return output->commit();
}

Status write_into(const std::filesystem::path& path, unsigned variant, const WriteOptions& options) {
  CGL_TRY_ASSIGN(auto store, Store::open(path));
  CGL_TRY_ASSIGN(const Array array, Array::open(store, ""));
  CGL_TRY_ASSIGN(const auto output, existing_folder(path, options));
  const auto elements = variant_elements(array.metadata(), variant);
  return write_region(array, *output, whole(array.metadata()), elements).map([](auto&&) {});
}

// What is there: names and bytes, of a folder or of an archive.
StoredKeys content_of(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return MemoryStore::keys_of(path);
  if (!std::filesystem::exists(path)) return {};
  return {{path.filename().native(), MemoryStore::keys_of(path.parent_path()).at(path.filename().native())}};
}

std::vector<FileFault> fault_kinds() {
  return {FileFault{.error = EIO}, FileFault{.error = ENOSPC, .lasting = true}, FileFault{.error = EINTR},
          FileFault{.short_write = true}};
}

TEST(ZarrFaults, whatever_file_call_fails_the_old_array_or_the_new_one_or_none_is_there) {
  for (const char* const name : {"a.zarr", "a.zarr.zip"}) {
    const TemporaryFolder good;
    ASSERT_TRUE(write_new(good / name, 1, {.sync = false}));
    const StoredKeys fresh = content_of(good / name);
    for (const bool replaced : {false, true}) {
      for (const FileFault& kind : fault_kinds()) {
        std::size_t failures = 0;
        for (std::size_t call = 0;; ++call) {
          SCOPED_TRACE(
              fmt::format("{}, {}, error {}, call {}", name, replaced ? "over an old one" : "new", kind.error, call));
          const TemporaryFolder folder;
          if (replaced) {
            ASSERT_TRUE(write_new(folder / name, 0, {.sync = false}));
          }
          const StoredKeys old = content_of(folder / name);
          FileFault fault = kind;
          fault.at_call = call;
          FaultyFileLayer layer(fault);
          layer.skip_real_syncs();
          const Status status = write_new(folder / name, 1, {.force = replaced, .layer = &layer});
          const StoredKeys found = content_of(folder / name);
          EXPECT_EQ(folder.names(), found.empty() ? std::vector<std::string>{} : std::vector<std::string>{name});
          if (!layer.fault_was_met()) {
            EXPECT_TRUE(status);
            EXPECT_GE(call, 8U);
            break;
          }
          if (status) {
            EXPECT_EQ(found, fresh);
          } else {
            ++failures;
            // A folder that cannot be synced is an error, but what it names is complete by then.
            const bool may_be_new = layer.trace()[call].call == FileCall::sync_folder;
            EXPECT_TRUE(found == old || (may_be_new && found == fresh));
            const std::string& message = status.error().message();
            EXPECT_NE(message.find("writing " + (folder / name).native()), std::string::npos) << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
          }
          if (::testing::Test::HasFailure()) return;
        }
        if (kind.error == EIO || kind.error == ENOSPC) {
          EXPECT_GE(failures, 5U) << name;
        } else {
          EXPECT_EQ(failures, 0U) << name;
        }
      }
    }
  }
}

TEST(ZarrFaults, whatever_file_call_fails_every_shard_of_a_region_is_the_old_or_the_new_one) {
  const TemporaryFolder good;
  ASSERT_TRUE(write_new(good / "a.zarr", 1, {.sync = false}));
  const StoredKeys fresh = content_of(good / "a.zarr");
  for (const FileFault& kind : fault_kinds()) {
    std::size_t failures = 0, mixed = 0;
    for (std::size_t call = 0;; ++call) {
      SCOPED_TRACE(fmt::format("error {}, call {}", kind.error, call));
      const TemporaryFolder folder;
      ASSERT_TRUE(write_new(folder / "a.zarr", 0, {.sync = false}));
      const StoredKeys old = content_of(folder / "a.zarr");
      FileFault fault = kind;
      fault.at_call = call;
      FaultyFileLayer layer(fault);
      layer.skip_real_syncs();
      const Status status = write_into(folder / "a.zarr", 1, {.layer = &layer});
      const StoredKeys found = content_of(folder / "a.zarr");
      ASSERT_EQ(found.size(), old.size()) << "something is left, or gone";
      std::size_t old_keys = 0, new_keys = 0;
      for (const auto& [key, bytes] : found) {
        ASSERT_TRUE(bytes == old.at(key) || bytes == fresh.at(key)) << key << " is torn";
        old_keys += bytes == fresh.at(key) ? 0U : 1U;
        new_keys += bytes == old.at(key) ? 0U : 1U;
      }
      mixed += old_keys > 0 && new_keys > 0 ? 1U : 0U;
      if (!layer.fault_was_met()) {
        EXPECT_TRUE(status);
        EXPECT_EQ(old_keys, 0U);
        EXPECT_GE(call, 8U);
        break;
      }
      if (status) {
        EXPECT_EQ(found, fresh);
      } else {
        ++failures;
        EXPECT_NE(status.error().message().find("a.zarr/c/0/"), std::string::npos) << status.error().message();
      }
    }
    if (kind.error == EIO || kind.error == ENOSPC) {
      EXPECT_GE(failures, 5U);
      EXPECT_GT(mixed, 0U) << "no call failed between two shards: nothing was tested";
    } else {
      EXPECT_EQ(failures, 0U);
    }
  }
}

TEST(ZarrPowerLoss, every_shard_of_a_region_is_the_old_or_the_new_one_after_a_power_failure_at_any_moment) {
  for (const bool sync : {true, false}) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_new(folder / "a.zarr", 0, {.sync = false}));
    const std::vector<std::string> names = {folder / "a.zarr/c/0/0", folder / "a.zarr/c/0/1"};
    const auto contents = [&] {
      return std::vector<std::string>{folder.content("a.zarr/c/0/0"), folder.content("a.zarr/c/0/1")};
    };
    const std::vector<std::string> old = contents();
    FaultyFileLayer layer;
    layer.skip_real_syncs();
    ASSERT_TRUE(write_into(folder / "a.zarr", 1, {.sync = sync, .layer = &layer}));
    const std::vector<std::string> fresh = contents();
    DiskModel disk(names);
    for (std::size_t i = 0; i < names.size(); ++i) disk.put(i, old[i]);
    std::set<std::vector<std::string>> possible = disk.possible_contents();
    for (const RecordedCall& call : layer.trace()) {
      disk.apply(call);
      possible.merge(disk.possible_contents());
    }
    std::size_t torn = 0;
    for (const auto& pair : possible) {
      for (std::size_t i = 0; i < names.size(); ++i) torn += pair[i] == old[i] || pair[i] == fresh[i] ? 0U : 1U;
    }
    if (sync) {
      EXPECT_EQ(torn, 0U);
      EXPECT_GE(possible.size(), 3U);  // neither, the first, both
      EXPECT_EQ(disk.possible_contents(), (std::set<std::vector<std::string>>{fresh}));
    } else {
      EXPECT_GT(torn, 0U) << "the model cannot tell";
    }
  }
}

// Every file of a new folder is synced behind its last byte, and every folder behind its last name, before the folder
// as a whole gets its name; then the folder around it.
TEST(ZarrPowerLoss, a_new_folder_gets_its_name_when_all_of_it_is_on_the_disk) {
  for (const bool replaced : {false, true}) {
    const TemporaryFolder folder;
    if (replaced) {
      ASSERT_TRUE(write_new(folder / "a.zarr", 0, {.sync = false}));
    }
    FaultyFileLayer layer;
    layer.skip_real_syncs();
    ASSERT_TRUE(write_new(folder / "a.zarr", 1, {.force = replaced, .layer = &layer}));
    const auto& trace = layer.trace();
    const std::string partial = (folder / "a.zarr").native() + ".partial-";
    std::map<int, std::string> open;
    std::set<std::string> files_to_sync, folders_to_sync;
    std::size_t files = 0;
    bool named = false, parent_synced = false;
    for (const RecordedCall& call : trace) {
      if (call.result < 0) continue;
      switch (call.call) {
        case FileCall::create:
          if (!call.path.starts_with(partial)) break;
          EXPECT_FALSE(named);
          ++files;
          open[static_cast<int>(call.result)] = call.path;
          files_to_sync.insert(call.path);
          folders_to_sync.insert(std::filesystem::path(call.path).parent_path());
          break;
        case FileCall::write:
        case FileCall::write_at: files_to_sync.insert(open.at(call.descriptor)); break;
        case FileCall::sync: files_to_sync.erase(open.at(call.descriptor)); break;
        case FileCall::close: open.erase(call.descriptor); break;
        case FileCall::sync_folder:
          folders_to_sync.erase(call.path);
          // An exchange of two folders does not go through the layer: the sync of the parent comes behind it.
          if (call.path == folder.path().native()) {
            EXPECT_TRUE(files_to_sync.empty() && folders_to_sync.empty());
            parent_synced = true;
          }
          break;
        case FileCall::rename:
        case FileCall::rename_no_replace:
          EXPECT_TRUE(files_to_sync.empty()) << *files_to_sync.begin();
          EXPECT_TRUE(folders_to_sync.empty()) << *folders_to_sync.begin();
          named = true;
          break;
        default: break;
      }
    }
    EXPECT_EQ(files, 3U);  // zarr.json and two shards
    EXPECT_TRUE(named || replaced);
    EXPECT_TRUE(parent_synced);
    EXPECT_EQ(trace.back().call == FileCall::sync_folder || replaced, true);
  }
}

TEST(ZarrThreads, the_same_array_has_the_same_bytes_on_any_number_of_threads) {
  for (const char* const codec : {"none", "zstd", "gzip", "blosc-lz4"}) {
    const ArrayMetadata metadata = *describe_new_array({.shape = {300, 280},
                                                        .type = element_type_of<float>(),
                                                        .chunk_shape = {16, 32},
                                                        .shard_shape = {64, 64},
                                                        .codec = *parse_codec_choice(codec),
                                                        .dimension_names = {}});
    std::vector<std::byte> elements = variant_elements(metadata, 3);
    for (std::size_t i = 0; i < elements.size(); i += 3) elements[i] = std::byte{0};
    for (const char* const name : {"a.zarr", "a.zarr.zip"}) {
      std::vector<StoredKeys> contents;
      for (const int threads : {1, 2, 8}) {
        const TemporaryFolder folder;
        const auto pool = ThreadPool::create(threads);
        auto output = new_hierarchy(folder / name, {.sync = false});
        ASSERT_TRUE(output);
        ASSERT_TRUE(write_array_metadata("", metadata, **output));
        ASSERT_TRUE(write_region(Array::describe(nullptr, "", metadata), **output, whole(metadata), elements,
                                 {.pool = pool->get()}));
        ASSERT_TRUE((*output)->commit());
        contents.push_back(content_of(folder / name));
        auto store = Store::open(folder / name);
        ASSERT_TRUE(store);
        const Array array = *Array::open(*store, "");
        std::vector<std::byte> read(elements.size());
        const auto report = read_region(array, whole(metadata), read, {.pool = pool->get(), .complete = true});
        ASSERT_TRUE(report) << report.error().message();
        EXPECT_EQ(read, elements);
      }
      EXPECT_EQ(contents[0], contents[1]) << codec << ' ' << name;
      EXPECT_EQ(contents[0], contents[2]) << codec << ' ' << name;
    }
  }
}

}  // namespace array_faults_tests
}  // namespace cingulum::zarr
