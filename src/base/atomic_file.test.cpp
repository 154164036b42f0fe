#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "base/partial_file.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using Names = std::vector<std::string>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The number of a process that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(AtomicFile, nothing_is_under_the_final_name_before_commit_and_everything_after) {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "a.txt");
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE(file->append("hello "));
  ASSERT_TRUE(file->append("world"));
  ASSERT_EQ(folder.names().size(), 1U);
  EXPECT_TRUE(folder.names()[0].starts_with("a.txt.partial-" + std::to_string(::getpid()) + "-"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder.names(), Names{"a.txt"});
  EXPECT_EQ(folder.content("a.txt"), "hello world");
}

TEST(AtomicFile, small_pieces_are_written_together_and_large_ones_as_they_are) {
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  auto file = AtomicFile::create(folder / "a.txt", {.buffer_bytes = 8, .layer = &layer});
  ASSERT_TRUE(file);
  for (const char* const piece : {"one ", "two ", "a long piece ", "three ", "four "}) {
    ASSERT_TRUE(file->append(piece));
  }
  ASSERT_TRUE(file->commit());
  Names writes;
  for (const RecordedCall& call : layer.trace()) {
    if (call.call != FileCall::write) continue;
    writes.emplace_back(reinterpret_cast<const char*>(call.data.data()), call.data.size());
  }
  EXPECT_EQ(writes, (Names{"one two ", "a long piece ", "three fo", "ur "}));
  EXPECT_EQ(folder.content("a.txt"), "one two a long piece three four ");
}

TEST(AtomicFile, destruction_without_commit_leaves_nothing) {
  const TemporaryFolder folder;
  {
    auto file = AtomicFile::create(folder / "a.txt");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append("half"));
  }
  EXPECT_EQ(folder.names(), Names{});
}

TEST(AtomicFile, a_moved_file_is_committed_once) {
  const TemporaryFolder folder;
  auto first = AtomicFile::create(folder / "a.txt");
  ASSERT_TRUE(first);
  AtomicFile second = std::move(*first);
  ASSERT_TRUE(second.append("text"));
  ASSERT_TRUE(second.commit());
  const Status again = second.commit();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::invalid_state);
  EXPECT_EQ(folder.content("a.txt"), "text");
}

TEST(AtomicFile, an_existing_file_is_refused_before_work_starts_and_kept) {
  const TemporaryFolder folder;
  folder.put("a.txt", "old");
  const auto file = AtomicFile::create(folder / "a.txt");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind(), ErrorKind::already_exists);
  EXPECT_EQ(file.error().message(), "writing " + (folder / "a.txt").native() + ": it exists; use force to replace it");
  EXPECT_EQ(file.error().file(), (folder / "a.txt").native());
  EXPECT_EQ(check_output(folder / "a.txt").error().kind(), ErrorKind::already_exists);
  EXPECT_TRUE(check_output(folder / "a.txt", {.force = true}));
  EXPECT_EQ(folder.content("a.txt"), "old");
}

TEST(AtomicFile, a_file_that_appears_during_the_work_is_refused_at_commit_and_kept) {
  for (const bool renames : {true, false}) {
    for (const bool links : {true, false}) {
      const TemporaryFolder folder;
      FaultyFileLayer layer;
      if (!renames) layer.remove_rename_no_replace();
      if (!links) layer.remove_links();
      auto file = AtomicFile::create(folder / "a.txt", {.layer = &layer});
      ASSERT_TRUE(file);
      ASSERT_TRUE(file->append("ours"));
      folder.put("a.txt", "theirs");
      const Status status = file->commit();
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind(), ErrorKind::already_exists);
      EXPECT_EQ(folder.content("a.txt"), "theirs");
      EXPECT_EQ(folder.names(), Names{"a.txt"});
    }
  }
}

TEST(AtomicFile, file_systems_without_exclusive_rename_or_links_are_written_all_the_same) {
  for (const bool links : {true, false}) {
    const TemporaryFolder folder;
    FaultyFileLayer layer;
    layer.remove_rename_no_replace();
    if (!links) layer.remove_links();
    ASSERT_TRUE(write_file_atomically(folder / "a.txt", "text", {.layer = &layer}));
    EXPECT_EQ(folder.content("a.txt"), "text");
    EXPECT_EQ(folder.names(), Names{"a.txt"});
  }
}

TEST(AtomicFile, force_replaces_and_keeps_the_permissions_of_the_old_file) {
  const TemporaryFolder folder;
  folder.put("a.txt", "old");
  ASSERT_EQ(::chmod((folder / "a.txt").c_str(), 0600), 0);
  ASSERT_TRUE(write_file_atomically(folder / "a.txt", "new", {.force = true}));
  EXPECT_EQ(folder.content("a.txt"), "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a.txt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(AtomicFile, what_is_not_a_regular_file_is_never_replaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sub");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const std::string name : {"sub", "fifo"}) {
    EXPECT_EQ(AtomicFile::create(folder / name, {.force = true}).error().kind(), ErrorKind::already_exists) << name;
  }
  EXPECT_EQ(folder.names(), (Names{"fifo", "sub"}));
}

TEST(AtomicFile, a_symbolic_link_is_followed) {
  const TemporaryFolder folder;
  folder.put("real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  ASSERT_TRUE(write_file_atomically(folder / "link", "new", {.force = true}));
  EXPECT_EQ(folder.content("real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_FALSE(AtomicFile::create(folder / "dangling", {.force = true}));
}

TEST(AtomicFile, a_missing_folder_is_named) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "no/such/a.txt";
  for (const Status& status : {write_file_atomically(path, "x"), check_output(path)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::not_found);
    EXPECT_EQ(status.error().message(),
              "writing " + path.native() + ": the folder " + path.parent_path().native() + " does not exist");
  }
}

TEST(AtomicFile, names_that_cannot_be_files_are_refused) {
  for (const std::string& name : {std::string(), std::string("a/"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(AtomicFile::create(name));
  }
}

TEST(AtomicFile, bytes_can_be_patched_in_the_buffer_on_the_disk_and_across_both) {
  const TemporaryFolder folder;
  std::string expected(1000, '\0');
  std::iota(expected.begin(), expected.end(), '\0');
  for (const std::size_t buffer_bytes : {1U, 7U, 64U, 999U, 1000U, 5000U}) {
    for (const std::uint64_t offset : {0U, 1U, 60U, 63U, 64U, 500U, 950U, 990U}) {
      auto file = AtomicFile::create(folder / "a.bin", {.force = true, .sync = false, .buffer_bytes = buffer_bytes});
      ASSERT_TRUE(file);
      for (std::size_t i = 0; i < expected.size(); i += 10) ASSERT_TRUE(file->append(expected.substr(i, 10)));
      ASSERT_TRUE(file->write_at(offset, bytes_of("HEADER")));
      ASSERT_EQ(file->size(), expected.size());
      ASSERT_TRUE(file->append("tail"));
      ASSERT_TRUE(file->commit());
      std::string patched = expected + "tail";
      patched.replace(offset, 6, "HEADER");
      ASSERT_EQ(folder.content("a.bin"), patched) << buffer_bytes << " " << offset;
    }
  }
}

TEST(AtomicFile, patching_beyond_the_end_is_refused) {
  const TemporaryFolder folder;
  auto file = AtomicFile::create(folder / "a.bin");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("12345678"));
  const Status refused = file->write_at(5, bytes_of("1234"));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message().ends_with("a.bin: bytes 5 to 9 are beyond the 8 that were appended"))
      << refused.error().message();
  EXPECT_FALSE(file->write_at(~std::uint64_t{0}, bytes_of("12")));
  EXPECT_TRUE(file->write_at(8, {}));
  EXPECT_TRUE(file->write_at(4, bytes_of("abcd")));
  EXPECT_TRUE(file->commit());
  EXPECT_EQ(folder.content("a.bin"), "1234abcd");
}

TEST(AtomicFile, more_than_the_free_space_is_refused_before_a_file_is_made) {
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  const auto file = AtomicFile::create(folder / "a.bin", {.expected_bytes = std::uint64_t{1} << 62U, .layer = &layer});
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message().find("4.0 EiB needed"), std::string::npos) << file.error().message();
  EXPECT_NE(file.error().message().find(" free in " + folder.path().native()), std::string::npos);
  for (const RecordedCall& call : layer.trace()) EXPECT_NE(call.call, FileCall::create);
  // The same words where only the name is checked.
  const Status checked = check_output(folder / "a.bin", {.expected_bytes = std::uint64_t{1} << 62U});
  ASSERT_FALSE(checked);
  EXPECT_TRUE(checked.error().message().starts_with("writing " + (folder / "a.bin").native() + ": "));
  EXPECT_NE(checked.error().message().find(" free in " + folder.path().native()), std::string::npos);
}

TEST(AtomicFile, leftovers_of_dead_writers_of_the_same_name_are_removed_and_no_others) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  folder.put("a.txt.partial-" + dead + "-0", "left");
  folder.put("a.txt.partial-" + dead + "-17", "left");
  folder.put("b.txt.partial-" + dead + "-0", "another output");
  folder.put("a.txt.partial-" + dead, "not our form");
  folder.put("a.txt.partial-x-1", "not our form");
  folder.put("a.txt.partial-1-0", "of a living process");
  ASSERT_TRUE(write_file_atomically(folder / "a.txt", "new"));
  Names expected = {"a.txt", "a.txt.partial-" + dead, "a.txt.partial-1-0", "a.txt.partial-x-1",
                    "b.txt.partial-" + dead + "-0"};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(folder.names(), expected);
  EXPECT_EQ(remove_dead_partial_files(folder.path(), ""), 1);
  EXPECT_EQ(folder.content("b.txt.partial-" + dead + "-0"), "(absent)");
}

// A number that fits no process was once cut to 32 bits, and named another one.
TEST(AtomicFile, leftovers_whose_number_no_process_can_have_are_kept) {
  const TemporaryFolder folder;
  const std::int64_t dead = dead_process();
  const Names kept = {"a.txt.partial-" + std::to_string((std::int64_t{1} << 32U) + dead) + "-0",
                      "a.txt.partial-" + std::to_string(dead - (std::int64_t{1} << 32U)) + "-0", "a.txt.partial-0-0",
                      "a.txt.partial--" + std::to_string(dead) + "-0"};
  for (const std::string& name : kept) folder.put(name, "not ours");
  EXPECT_EQ(remove_dead_partial_files(folder.path(), ""), 0);
  for (const std::string& name : kept) EXPECT_EQ(folder.content(name), "not ours") << name;
}

TEST(PartialName, is_an_output_a_process_and_a_count) {
  const auto parsed = parse_partial_name("a.txt.partial-12-0");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->output, "a.txt");
  EXPECT_EQ(parsed->process, 12);
  ASSERT_TRUE(parse_partial_name("a.partial-1-18446744073709551615"));
  EXPECT_EQ(parse_partial_name("a.partial-1-0")->process, 1);
  EXPECT_EQ(parse_partial_name("a.partial-2147483647-0")->process, 2147483647);
  // The last mark counts: an output may be called like a leftover.
  EXPECT_EQ(parse_partial_name("a.partial-3-4.partial-5-6")->output, "a.partial-3-4");
  EXPECT_EQ(parse_partial_name("a.partial-3-4.partial-5-6")->process, 5);
  EXPECT_EQ(parse_partial_name("b.partial-5-6")->output, "b");
  for (const char* const other : {"",
                                  "a.txt",
                                  ".partial-1-0",
                                  "a.partial-",
                                  "a.partial-1",
                                  "a.partial-1-",
                                  "a.partial-1-x",
                                  "a.partial-1-0x",
                                  "a.partial-1-0-old",
                                  "a.partial-1-18446744073709551616",
                                  "a.partial-x-1",
                                  "a.partial-1x-1",
                                  "a.partial-1_0",
                                  "a.partial-0-0",
                                  "a.partial--1-0",
                                  "a.partial-2147483648-0",
                                  "a.partial-4294967297-0",
                                  "a.partial-+1-0",
                                  "a.partial 1-0",
                                  "a.partial-1--1"}) {
    EXPECT_FALSE(parse_partial_name(other)) << other;
  }
}

TEST(PartialName, of_the_living_and_the_dead_is_told_apart) {
  EXPECT_TRUE(process_is_alive(::getpid()));
  EXPECT_TRUE(process_is_alive(1)) << "a process that we may not send signals";
  EXPECT_FALSE(process_is_alive(dead_process()));
}

TEST(AtomicFile, a_leftover_that_is_locked_belongs_to_a_living_writer_elsewhere) {
  const TemporaryFolder folder;
  const std::string name = "a.txt.partial-" + std::to_string(dead_process()) + "-0";
  folder.put(name, "being written on another host");
  const int descriptor = ::open((folder / name).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  EXPECT_EQ(remove_dead_partial_files(folder.path(), "a.txt"), 0);
  ::close(descriptor);
  EXPECT_EQ(remove_dead_partial_files(folder.path(), "a.txt"), 1);
}

TEST(AtomicFile, two_writers_of_one_name_do_not_disturb_each_other) {
  const TemporaryFolder folder;
  auto first = AtomicFile::create(folder / "a.txt", {.force = true});
  auto second = AtomicFile::create(folder / "a.txt", {.force = true});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->append("first"));
  ASSERT_TRUE(second->append("second"));
  ASSERT_TRUE(first->commit());
  EXPECT_EQ(folder.content("a.txt"), "first");
  ASSERT_TRUE(second->commit());
  EXPECT_EQ(folder.content("a.txt"), "second");
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(AtomicFile, without_sync_nothing_is_synced) {
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  ASSERT_TRUE(write_file_atomically(folder / "a.txt", "text", {.sync = false, .layer = &layer}));
  for (const RecordedCall& call : layer.trace()) {
    EXPECT_NE(call.call, FileCall::sync);
    EXPECT_NE(call.call, FileCall::sync_folder);
  }
}

}  // namespace
}  // namespace cingulum
