#include "formats/folder_output.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "support/each_device.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::folder_output_tests {
namespace {

using Names = std::vector<std::string>;
using testing::fails_with;

// The number of a process that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

bool has_a_header(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "header.json", ignored);
}
constexpr FolderKind test_folder{"folder with a header", has_a_header};

Status write(const std::filesystem::path& path, std::string_view text, const WriteOptions& options) {
  CGL_TRY_ASSIGN(FolderOutput output, FolderOutput::create(path, test_folder, options));
  for (const char* const name : {"header.json", "deep/er/one", "deep/er/two", "deep/three"}) {
    CGL_TRY_ASSIGN(AtomicFile file, output.create_file(name));
    CGL_TRY(file.append(std::as_bytes(std::span(text.data(), text.size()))));
    CGL_TRY(file.commit());
  }
  return output.commit();
}

TEST(FolderOutput, what_dead_writers_of_the_same_name_left_is_removed_and_nothing_else) {
  const TemporaryFolder folder;
  const std::int64_t dead = dead_process();
  const std::string own = "a.partial-" + std::to_string(dead);
  for (const std::string& name : {own + "-0", own + "-17", own + "-3-old"}) {
    std::filesystem::create_directories(folder / name / "deep");
    folder.put(name + "/deep/file", "left");
  }
  Names kept = {"b.partial-" + std::to_string(dead) + "-0", "xa.partial-" + std::to_string(dead) + "-0", own, own + "-",
                own + "-x", own + "-1-older", "a.partial-x-1", "a.partial-0-1",
                "a.partial--" + std::to_string(dead) + "-1",
                // Cut to 32 bits these are the dead one's number.
                "a.partial-" + std::to_string((std::int64_t{1} << 32U) + dead) + "-0",
                "a.partial-" + std::to_string(dead - (std::int64_t{1} << 32U)) + "-0", "a.partial-1-0",
                "a.partial-" + std::to_string(::getpid()) + "-99999"};
  for (const std::string& name : kept) std::filesystem::create_directory(folder / name);
  folder.put(own + "-5", "a file beside the folder");
  folder.put("b.partial-" + std::to_string(dead) + "-5", "a file beside another");
  kept.push_back("b.partial-" + std::to_string(dead) + "-5");
  std::filesystem::create_directory_symlink(folder.path(), folder / (own + "-6"));
  kept.push_back(own + "-6");
  kept.push_back("a");
  ASSERT_OK(write(folder / "a/", "new", {.sync = false}));
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(folder.names(), kept);
  EXPECT_EQ(folder.content("a/deep/er/two"), "new");
}

TEST(FolderOutput, appears_as_a_whole_and_is_replaced_as_a_whole) {
  const TemporaryFolder folder;
  for (const std::string_view text : {"one", "two"}) {
    ASSERT_OK(write(folder / "a", text, {.force = true, .sync = false}));
    EXPECT_EQ(folder.names(), Names{"a"});
    for (const char* const name : {"a/header.json", "a/deep/er/one", "a/deep/er/two", "a/deep/three"}) {
      EXPECT_EQ(folder.content(name), text) << name;
    }
  }
  EXPECT_TRUE(fails_with(write(folder / "a", "three", {.sync = false}), ErrorKind::already_exists, "it exists"));
  EXPECT_EQ(folder.content("a/deep/three"), "two");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(FolderOutput, replaces_a_trx_folder_or_an_empty_one_and_nothing_else) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_directory(folder / "other");
  folder.put("other/notes.txt", "mine");
  folder.put("file", "mine, too");
  ASSERT_OK(write(folder / "empty", "new", {.force = true, .sync = false}));
  EXPECT_EQ(folder.content("empty/header.json"), "new");
  for (const char* const name : {"other", "file"}) {
    EXPECT_TRUE(fails_with(write(folder / name, "new", {.force = true, .sync = false}), ErrorKind::already_exists,
                           "it is not a folder with a header"));
  }
  EXPECT_EQ(folder.content("other/notes.txt"), "mine");
  EXPECT_EQ(folder.content("file"), "mine, too");
  EXPECT_EQ(folder.names(), (Names{"empty", "file", "other"}));
}

TEST(FolderOutput, needs_the_folder_in_which_it_lies) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      fails_with(FolderOutput::create(folder / "no/a", test_folder, {}), ErrorKind::not_found, "does not exist"));
  folder.put("file", "x");
  EXPECT_FALSE(FolderOutput::create(folder / "file/a", test_folder, {}));
  EXPECT_EQ(folder.names(), Names{"file"});
}

// What appears while it is filled stays, whether the system can rename without replacing or not.
TEST(FolderOutput, what_was_made_meanwhile_stays) {
  for (const bool can_rename_without_replacing : {true, false}) {
    const TemporaryFolder folder;
    FaultyFileLayer layer;
    if (!can_rename_without_replacing) layer.remove_rename_no_replace();
    ASSERT_OK_AND_ASSIGN(FolderOutput output,
                         FolderOutput::create(folder / "a", test_folder, {.sync = false, .layer = &layer}));
    std::filesystem::create_directory(folder / "a");
    folder.put("a/other", "of another program");
    EXPECT_TRUE(fails_with(output.commit(), ErrorKind::already_exists, "made by another program meanwhile"));
    EXPECT_EQ(folder.content("a/other"), "of another program");
    { const FolderOutput gone = std::move(output); }
    EXPECT_EQ(folder.names(), Names{"a"});
  }
}

}  // namespace
}  // namespace cingulum::folder_output_tests
