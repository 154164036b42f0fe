#include "zarr/store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace cingulum::zarr {
namespace {

namespace store_tests {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
std::string text_at(const Store& store, const std::string& key) {
  const auto text = store.read_text(key, 1000);
  EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().message());
  return text && *text ? **text : "(nothing)";
}

TEST(ZarrStores, keys_that_lead_out_are_refused) {
  for (const char* key : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/."}) {
    EXPECT_FALSE(check_key(key).has_value()) << key;
  }
  EXPECT_FALSE(check_key(std::string("a\0b", 3)).has_value());
  for (const char* key : {"a", "a/b", ".zarray", "a.b", "..a", "a/..b"}) EXPECT_TRUE(check_key(key).has_value()) << key;
}

TEST(ZarrStores, a_folder_gives_what_is_under_a_key_and_nothing_for_other_keys) {
  const TemporaryFolder folder;
  write(folder.path() / "s/a/b", "hello");
  const auto store = Store::open(folder.path() / "s");
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(text_at(**store, "a/b"), "hello");
  EXPECT_EQ(text_at(**store, "a/c"), "(nothing)");
  EXPECT_EQ(text_at(**store, "a"), "(nothing)");
  EXPECT_EQ(text_at(**store, "a/b/c"), "(nothing)");
  const auto object = (*store)->open_object("a/b");
  ASSERT_TRUE(object.has_value());
  std::array<std::byte, 4> bytes{};
  const Status beyond = (*object)->read_at(2, bytes);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().kind(), ErrorKind::corrupt);
  EXPECT_NE(beyond.error().message().find("ends at byte 5"), std::string::npos) << beyond.error().message();
}

TEST(ZarrStores, links_out_of_a_folder_are_refused_and_links_within_it_are_followed) {
  const TemporaryFolder folder;
  write(folder.path() / "secret", "secret");
  write(folder.path() / "s/real", "real");
  fs::create_symlink("../secret", folder.path() / "s/out");
  fs::create_symlink(folder.path() / "secret", folder.path() / "s/absolute");
  fs::create_directory_symlink("..", folder.path() / "s/up");
  fs::create_symlink("real", folder.path() / "s/inside");
  const auto store = Store::open(folder.path() / "s");
  ASSERT_TRUE(store.has_value());
  for (const char* key : {"out", "absolute", "up/secret"}) {
    const auto object = (*store)->open_object(key);
    ASSERT_FALSE(object.has_value()) << key;
    EXPECT_NE(object.error().message().find("leads out"), std::string::npos) << object.error().message();
  }
  EXPECT_EQ(text_at(**store, "inside"), "real");
}

TEST(ZarrStores, a_pipe_is_refused_and_not_waited_for) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "s");
  ASSERT_EQ(::mkfifo((folder.path() / "s/pipe").c_str(), 0600), 0);
  const auto store = Store::open(folder.path() / "s");
  ASSERT_TRUE(store.has_value());
  EXPECT_FALSE((*store)->open_object("pipe").has_value());
}

TEST(ZarrStores, children_are_listed_in_folders_and_archives_alike) {
  const TemporaryFolder folder;
  for (const char* name : {"h.zarr", "h.zip"}) {
    const auto output = new_hierarchy(folder.path() / name, {});
    ASSERT_TRUE(output.has_value());
    for (const char* key : {"zarr.json", "b/zarr.json", "b/c/0", "a/x", "b/c/1"}) {
      ASSERT_TRUE((*output)->put_text(key, key).has_value());
    }
    EXPECT_FALSE(fs::exists(folder.path() / name));
    ASSERT_TRUE((*output)->commit().has_value());
    const auto store = Store::open(folder.path() / name);
    ASSERT_TRUE(store.has_value()) << store.error().message();
    const auto root = (*store)->children("");
    ASSERT_TRUE(root.has_value());
    EXPECT_EQ(root->keys, std::vector<std::string>{"zarr.json"});
    EXPECT_EQ(root->folders, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ((*store)->children("b/c")->keys, (std::vector<std::string>{"0", "1"}));
    EXPECT_TRUE((*store)->children("none")->keys.empty());
    EXPECT_EQ(text_at(**store, "b/c/1"), "b/c/1");
  }
}

TEST(ZarrStores, an_output_that_is_not_committed_leaves_nothing) {
  const TemporaryFolder folder;
  for (const char* name : {"h.zarr", "h.zip"}) {
    {
      const auto output = new_hierarchy(folder.path() / name, {});
      ASSERT_TRUE(output.has_value());
      ASSERT_TRUE((*output)->put_text("zarr.json", "{}").has_value());
    }
    EXPECT_TRUE(fs::is_empty(folder.path())) << name;
  }
}

TEST(ZarrStores, force_replaces_a_hierarchy_and_no_other_folder) {
  const TemporaryFolder folder;
  write(folder.path() / "photos/me.png", "x");
  WriteOptions force;
  force.force = true;
  const auto refused = new_hierarchy(folder.path() / "photos", force);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message().find("not a Zarr hierarchy"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder.path() / "photos/me.png"));
  write(folder.path() / "old.zarr/.zgroup", "{}");
  write(folder.path() / "old.zarr/stale", "x");
  EXPECT_FALSE(new_hierarchy(folder.path() / "old.zarr", {}).has_value());
  const auto output = new_hierarchy(folder.path() / "old.zarr", force);
  ASSERT_TRUE(output.has_value());
  ASSERT_TRUE((*output)->put_text("zarr.json", "{}").has_value());
  EXPECT_TRUE(fs::exists(folder.path() / "old.zarr/stale"));
  ASSERT_TRUE((*output)->commit().has_value());
  EXPECT_FALSE(fs::exists(folder.path() / "old.zarr/stale"));
  EXPECT_TRUE(fs::exists(folder.path() / "old.zarr/zarr.json"));
}

TEST(ZarrStores, more_than_the_disk_has_is_refused_before_anything_is_made) {
  const TemporaryFolder folder;
  WriteOptions options;
  options.expected_bytes = std::uint64_t{1} << 60U;
  for (const char* name : {"h.zarr", "h.zip"}) {
    const auto output = new_hierarchy(folder.path() / name, options);
    ASSERT_FALSE(output.has_value()) << name;
    EXPECT_NE(output.error().message().find("not enough space"), std::string::npos) << output.error().message();
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST(ZarrStores, only_a_hierarchy_that_is_there_is_written_into) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "empty");
  EXPECT_FALSE(existing_folder(folder.path() / "empty", {}).has_value());
  write(folder.path() / "h/zarr.json", "{}");
  const auto output = existing_folder(folder.path() / "h", {});
  ASSERT_TRUE(output.has_value());
  ASSERT_TRUE((*output)->put_text("c/0/1", "one").has_value());
  ASSERT_TRUE((*output)->put_text("c/0/1", "two").has_value());
  EXPECT_EQ(text_at(**Store::open(folder.path() / "h"), "c/0/1"), "two");
}

TEST(ZarrStores, a_flipped_bit_in_an_archive_is_found_when_its_entry_is_opened) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "h.zip";
  const auto output = new_hierarchy(path, {});
  ASSERT_TRUE(output.has_value());
  ASSERT_TRUE((*output)->put_text("zarr.json", "some content").has_value());
  ASSERT_TRUE((*output)->commit().has_value());
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[bytes.find("content")] ^= 1;
  write(path, bytes);
  const auto store = Store::open(path);
  ASSERT_TRUE(store.has_value());
  const auto object = (*store)->open_object("zarr.json");
  ASSERT_FALSE(object.has_value());
  EXPECT_EQ(object.error().kind(), ErrorKind::corrupt);
}

}  // namespace store_tests
}  // namespace
}  // namespace cingulum::zarr
