#include "base/cache_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

namespace cache_folder_tests {

// Entries of 100 bytes, the first the oldest, each a minute younger than the one before.
void put_entries(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  auto used = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& name : names) {
    folder.put(name, std::string(100, 'x'));
    std::filesystem::last_write_time(folder / name, used);
    used += std::chrono::minutes(1);
  }
}

}  // namespace cache_folder_tests

using cache_folder_tests::put_entries;
using Names = std::vector<std::string>;

TEST(CacheFolder, removes_the_oldest_until_what_comes_fits_and_no_more) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder.path(), ".fit");
  put_entries(folder, {"c.fit", "a.fit", "b.fit"});
  cache.make_room(100, 400);
  EXPECT_EQ(folder.names(), (Names{"a.fit", "b.fit", "c.fit"})) << "it fits to the byte";
  cache.make_room(101, 400);
  EXPECT_EQ(folder.names(), (Names{"a.fit", "b.fit"})) << "the oldest goes, whatever its name";
  cache.make_room(300, 400);
  EXPECT_EQ(folder.names(), Names{"b.fit"});
  cache.make_room(401, 400);
  EXPECT_EQ(folder.names(), Names{}) << "what does not fit at all leaves nothing";
}

TEST(CacheFolder, counts_and_clears_its_own_files_alone) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder.path(), ".fit");
  EXPECT_TRUE(cache.entries().empty());
  put_entries(folder, {"b.fit", "a.fit", "notes.txt", "c.fit.partial-1-1"});
  std::filesystem::create_directory(folder / "d.fit");
  const std::vector<CacheEntry> entries = cache.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].path, folder / "a.fit");
  EXPECT_EQ(entries[1].path, folder / "b.fit");
  EXPECT_EQ(entries[0].bytes, 100U);
  EXPECT_LT(entries[1].last_used, entries[0].last_used);
  cache.make_room(1, 0);
  EXPECT_EQ(folder.names(), (Names{"c.fit.partial-1-1", "d.fit", "notes.txt"}));
  put_entries(folder, {"e.fit"});
  EXPECT_EQ(*cache.clear(), 1U);
  EXPECT_EQ(*cache.clear(), 0U);
  EXPECT_EQ(folder.names(), (Names{"c.fit.partial-1-1", "d.fit", "notes.txt"}));
}

TEST(CacheFolder, that_is_not_there_is_empty_and_is_made_with_those_above_it) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder / "deep/cache", ".fit");
  EXPECT_TRUE(cache.entries().empty());
  EXPECT_EQ(*cache.clear(), 0U);
  EXPECT_TRUE(cache.make());
  EXPECT_TRUE(cache.make()) << "again is no error";
  EXPECT_TRUE(std::filesystem::is_directory(folder / "deep/cache"));
  EXPECT_EQ(cache.path_of("ab12"), folder / "deep/cache/ab12.fit");
}

}  // namespace
}  // namespace cingulum
