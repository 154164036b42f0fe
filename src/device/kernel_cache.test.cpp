#include "device/kernel_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> code(std::size_t size, int value = 7) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

KernelCacheKey key(std::string source) {
  return {.source = std::move(source),
          .entry_point = "f",
          .options = {"-a", "-b"},
          .architecture = "sm_90",
          .driver = "13.0",
          .toolkit = "13.0"};
}

TEST(KernelCache, gives_back_what_was_stored_also_to_another_run) {
  const TemporaryFolder folder;
  ASSERT_OK(KernelCache(folder.path() / "deep" / "cache", 1 << 20).store(key("one"), code(1000)));
  const KernelCache again(folder.path() / "deep" / "cache", 1 << 20);
  EXPECT_EQ(again.load(key("one")), code(1000));
  EXPECT_EQ(again.load(key("two")), std::nullopt);
  EXPECT_EQ(again.statistics().entries, 1u);
}

TEST(KernelCache, every_field_of_the_key_counts_and_fields_do_not_run_together) {
  std::set<std::string> digests = {key("s").digest()};
  std::vector<KernelCacheKey> others(9, key("s"));
  others[0].source = "t";
  others[1].entry_point = "g";
  others[2].options = {"-a"};
  others[3].options = {"-b", "-a"};
  others[4].options = {"-a-b"};
  others[5].architecture = "sm_75";
  others[6].driver = "13.1";
  others[7].toolkit = "13.1";
  others[8].source = "sf";
  others[8].entry_point = "";
  for (const auto& other : others) digests.insert(other.digest());
  EXPECT_EQ(digests.size(), others.size() + 1);
}

// Every single-bit flip of an entry, and every truncation, is found: the entry is not loaded, and it is gone.
TEST(KernelCache, a_damaged_entry_is_never_loaded) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path(), 1 << 20);
  ASSERT_OK(cache.store(key("one"), code(40)));
  const fs::path file = fs::directory_iterator(folder.path())->path();
  std::ifstream stream(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(stream)), {});
  const auto write = [&](const std::string& content) { std::ofstream(file, std::ios::binary) << content; };
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    write(bad);
    ASSERT_EQ(cache.load(key("one")), std::nullopt) << "bit " << bit;
    ASSERT_FALSE(fs::exists(file));
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    write(good.substr(0, size));
    ASSERT_EQ(cache.load(key("one")), std::nullopt) << "size " << size;
  }
  write(good + "x");
  ASSERT_EQ(cache.load(key("one")), std::nullopt);
  write(good);
  EXPECT_EQ(cache.load(key("one")), code(40));
}

TEST(KernelCache, the_least_recently_used_entries_go_first_when_the_limit_is_passed) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path(), 3500);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_OK(cache.store(key(name), code(1000)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(cache.load(key("a")));  // now b is the oldest
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_OK(cache.store(key("d"), code(1000)));
  EXPECT_FALSE(cache.load(key("b")));
  for (const char* name : {"a", "c", "d"}) EXPECT_TRUE(cache.load(key(name))) << name;
  EXPECT_LE(cache.statistics().bytes, 3500u);
  ASSERT_OK(cache.store(key("too large"), code(5000)));
  EXPECT_FALSE(cache.load(key("too large")));
  EXPECT_EQ(cache.statistics().entries, 3u);
}

TEST(KernelCache, an_entry_that_fills_the_limit_to_the_byte_is_kept) {
  const TemporaryFolder folder;
  ASSERT_OK(KernelCache(folder.path(), 1 << 20).store(key("a"), code(1000)));
  const std::uint64_t bytes = KernelCache(folder.path(), 1 << 20).statistics().bytes;
  const KernelCache full(folder.path(), bytes);
  ASSERT_OK(full.store(key("b"), code(1000)));
  EXPECT_TRUE(full.load(key("b")));
  EXPECT_EQ(full.statistics().entries, 1u);
  const KernelCache small(folder.path(), bytes - 1);
  ASSERT_OK(small.store(key("c"), code(1000)));
  EXPECT_FALSE(small.load(key("c"))) << "a byte too many";
  ASSERT_OK(full.store(key("d"), {}));
  EXPECT_FALSE(full.load(key("d"))) << "a kernel without code is none";
}

TEST(KernelCache, clearing_removes_entries_and_nothing_else) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path(), 1 << 20);
  ASSERT_OK(cache.store(key("a"), code(10)));
  ASSERT_OK(cache.store(key("b"), code(10)));
  std::ofstream(folder.path() / "notes.txt") << "mine";
  ASSERT_OK_AND_ASSIGN(const std::uint64_t removed, cache.clear());
  EXPECT_EQ(removed, 2u);
  EXPECT_TRUE(fs::exists(folder.path() / "notes.txt"));
  EXPECT_EQ(cache.load(key("a")), std::nullopt);
  EXPECT_EQ(cache.statistics().entries, 0u);
}

TEST(KernelCache, a_folder_that_cannot_be_made_is_an_error_that_names_it) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "in the way";
  const KernelCache cache(folder.path() / "file" / "cache", 1 << 20);
  EXPECT_TRUE(testing::fails_with(cache.store(key("a"), code(10)), ErrorKind::io, "cache"));
  EXPECT_EQ(cache.load(key("a")), std::nullopt);
}

}  // namespace
}  // namespace cingulum
