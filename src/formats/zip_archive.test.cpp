#include "formats/zip_archive.hpp"

#include <gtest/gtest.h>

#include "formats/crc32.hpp"
#include "formats/file_bytes.hpp"
#include "formats/zip_writer.hpp"
#include "support/each_device.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::zip_archive_tests {
namespace {

using testing::fails_with;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// An archive with these names; the content of each is "content of NAME".
std::string archive_of(const std::vector<std::string>& names) {
  const TemporaryFolder folder;
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
    for (const std::string& name : names) {
      const std::string content = "content of " + name;
      CGL_TRY(zip.begin_known(name, content.size(), crc32(bytes_of(content))));
      CGL_TRY(zip.append(bytes_of(content)));
      CGL_TRY(zip.end());
    }
    return zip.commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return folder.content("a.zip");
}

auto read(const std::string& archive) {
  return read_zip_directory(bytes_of(archive));
}

const std::string central_mark("PK\1\2", 4);
const std::string end_mark("PK\5\6", 4);

// `archive` with the number of two bytes at `offset` behind the last `mark` changed.
std::string changed(std::string archive, const std::string& mark, std::size_t offset, unsigned value) {
  const std::size_t at = archive.rfind(mark) + offset;
  archive[at] = static_cast<char>(value & 0xffU);
  archive[at + 1] = static_cast<char>(value >> 8U);
  return archive;
}

TEST(ZipArchive, names_that_leave_the_folder_or_are_not_plain_are_refused) {
  for (const char* const name : {"a", "a/b", "..a", "a.", "a b", "\xc2\xb5"})
    EXPECT_TRUE(read(archive_of({name}))) << name;
  for (const char* const name : {"a//b", "./a", "a/.", "..", "../a", "a/../b", "a//"}) {
    EXPECT_TRUE(fails_with(read(archive_of({name})), ErrorKind::corrupt, "leaves its folder or is not plain")) << name;
  }
  EXPECT_TRUE(fails_with(read(archive_of({"/a"})), ErrorKind::corrupt, "absolute names are not allowed"));
  EXPECT_TRUE(fails_with(read(archive_of({"a\\b"})), ErrorKind::corrupt, "a backslash in the name is not allowed"));
  EXPECT_TRUE(fails_with(read(archive_of({"c:a"})), ErrorKind::corrupt, "a colon in the name is not allowed"));
  for (const char* const name : {"a\x1f", "a\x7f", "a\n"}) {
    EXPECT_TRUE(fails_with(read(archive_of({name})), ErrorKind::corrupt, "control characters"));
  }
  EXPECT_TRUE(fails_with(read(archive_of({"a", "b", "a"})), ErrorKind::corrupt, "two entries have the name 'a'"));
}

TEST(ZipArchive, what_is_encrypted_a_link_or_packed_otherwise_is_refused) {
  const std::string good = archive_of({"a", "b"});
  ASSERT_OK(read(good));
  const auto refused = [&](std::size_t offset, unsigned value, const char* why) {
    return fails_with(read(changed(good, central_mark, offset, value)), ErrorKind::corrupt, why);
  };
  for (const unsigned bit : {0U, 6U, 13U}) EXPECT_TRUE(refused(8, 1U << bit, "entry 'b' is encrypted")) << bit;
  for (const unsigned method : {1U, 7U, 9U, 12U}) EXPECT_TRUE(refused(10, method, "is not supported (known: 0 stored"));
  EXPECT_TRUE(refused(34, 1, "lies on disk 1"));
  EXPECT_TRUE(refused(24, 13, "is stored, but its sizes differ: 12 and 13"));
  EXPECT_TRUE(refused(12, 1, "flags, method or time differ"));
  EXPECT_TRUE(refused(16, 1, "sizes or CRC differ"));
  EXPECT_TRUE(refused(42, 0, "the local header has another name"));
  EXPECT_TRUE(refused(42, 1, "no local header at byte 1"));
  EXPECT_TRUE(refused(28, 2, "reaches beyond the directory"));
  // A link is what a system of the Unix kind calls one.
  const auto with_type = [&](unsigned maker, unsigned type) {
    return read(changed(changed(good, central_mark, 4, maker << 8U), central_mark, 40, type));
  };
  EXPECT_TRUE(fails_with(with_type(3, 0120777), ErrorKind::corrupt, "entry 'b' is a symbolic link"));
  EXPECT_TRUE(with_type(3, 0100644));
  EXPECT_TRUE(with_type(0, 0120777));
}

TEST(ZipArchive, the_end_record_is_the_one_whose_comment_reaches_to_the_end) {
  const std::string good = archive_of({"a", "b"});
  EXPECT_TRUE(fails_with(read(good + "x"), ErrorKind::corrupt, "no end record"));
  EXPECT_TRUE(fails_with(read("x" + good), ErrorKind::corrupt, "does not end at byte"));
  for (const unsigned length : {1U, 65535U}) {
    ASSERT_OK_AND_ASSIGN(const auto entries, read(changed(good, end_mark, 20, length) + std::string(length, 'c')));
    EXPECT_EQ(entries.size(), 2U);
  }
  EXPECT_TRUE(fails_with(read(changed(good, end_mark, 20, 1)), ErrorKind::corrupt, "no end record"));
  // A comment that is an end record of its own.
  const std::string own = good.substr(good.size() - 22);
  EXPECT_TRUE(
      fails_with(read(changed(good, end_mark, 20, 22) + own), ErrorKind::corrupt, "two end records are possible"));
  for (const std::size_t disk : {4U, 6U}) {
    EXPECT_TRUE(fails_with(read(changed(good, end_mark, disk, 1)), ErrorKind::corrupt, "several disks"));
  }
  EXPECT_TRUE(
      fails_with(read(changed(changed(good, end_mark, 4, 1), end_mark, 6, 1)), ErrorKind::corrupt, "several disks"));
  EXPECT_TRUE(fails_with(read(changed(good, end_mark, 8, 1)), ErrorKind::corrupt, "several disks"));
  const auto with_entries = [&](unsigned count) {
    return read(changed(changed(good, end_mark, 8, count), end_mark, 10, count));
  };
  EXPECT_TRUE(fails_with(with_entries(1), ErrorKind::corrupt, "bytes more than its 1 entries"));
  EXPECT_TRUE(fails_with(with_entries(3), ErrorKind::corrupt, "3 entries do not fit a directory"));
  EXPECT_TRUE(fails_with(with_entries(65535), ErrorKind::corrupt, "a zip64 record that is not there"));
  EXPECT_TRUE(fails_with(read(std::string(21, 'x')), ErrorKind::corrupt, "21 bytes are too few"));
}

TEST(ZipArchive, entries_that_share_bytes_are_refused_by_their_names) {
  // "b" holds an archive whose only entry is "inside", and the directory has an entry for it as well.
  const std::string within = archive_of({"inside"});
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
  const std::pair<const char*, std::string> contents[] = {
      {"a", "content of a"}, {"b", within}, {"inside", "content of inside"}};
  for (const auto& [name, content] : contents) {
    ASSERT_OK(zip.begin_known(name, content.size(), crc32(bytes_of(content))));
    ASSERT_OK(zip.append(bytes_of(content)));
    ASSERT_OK(zip.end());
  }
  ASSERT_OK(zip.commit());
  const std::string good = folder.content("a.zip");
  ASSERT_OK_AND_ASSIGN(const auto entries, read(good));
  const auto begin = static_cast<unsigned>(entries[1].offset);
  EXPECT_TRUE(fails_with(read(changed(good, central_mark, 42, begin)), ErrorKind::corrupt,
                         fmt::format("entries 'b' and 'inside' overlap at byte {}", begin)));
}

TEST(ZipArchive, content_is_checked_by_its_crc) {
  std::string archive = archive_of({"a", "b"});
  ASSERT_OK_AND_ASSIGN(const auto entries, read(archive));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(archive.substr(static_cast<std::size_t>(entries[1].offset), static_cast<std::size_t>(entries[1].bytes)),
            "content of b");
  EXPECT_TRUE(verify_entry(bytes_of(archive), entries[1]));
  archive[static_cast<std::size_t>(entries[1].offset)] = 'k';
  EXPECT_TRUE(verify_entry(bytes_of(archive), entries[0]));
  EXPECT_FALSE(verify_entry(bytes_of(archive), entries[1]));
}

TEST(ZipWriter, puts_other_content_of_the_same_size_into_any_entry_that_has_ended) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
  for (const char* const name : {"first", "last"}) {
    ASSERT_OK(zip.begin(name));
    ASSERT_OK(zip.append(bytes_of("old")));
    EXPECT_FALSE(zip.replace(0, bytes_of("new"))) << "an entry is open";
    ASSERT_OK(zip.end());
  }
  ASSERT_OK(zip.replace(1, bytes_of("new")));
  EXPECT_TRUE(fails_with(zip.replace(1, bytes_of("newer")), ErrorKind::invalid_argument, "entry 1 cannot be replaced"));
  EXPECT_TRUE(fails_with(zip.replace(2, bytes_of("new")), ErrorKind::invalid_argument, "entry 2 cannot be replaced"));
  ASSERT_OK(zip.commit());
  const std::string archive = folder.content("a.zip");
  ASSERT_OK_AND_ASSIGN(const auto entries, read(archive));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(archive.substr(static_cast<std::size_t>(entries[0].offset), 3), "old");
  EXPECT_EQ(archive.substr(static_cast<std::size_t>(entries[1].offset), 3), "new");
  EXPECT_TRUE(verify_entry(bytes_of(archive), entries[1]));
}

// 2^32 - 1 in the 32 bits of the directory means: see the zip64 field.
TEST(ZipWriter, sizes_are_in_the_zip64_field_from_the_first_that_would_be_its_mark) {
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  const std::vector<std::byte> zeros(std::size_t{16} << 20U);
  layer.leave_holes(std::size_t{1} << 20U);
  ASSERT_OK_AND_ASSIGN(ZipWriter zip,
                       ZipWriter::create(folder / "a.zip", {.sync = false, .buffer_bytes = 4096, .layer = &layer}));
  constexpr std::uint64_t mark = 0xffffffff;
  for (const std::uint64_t size : {mark - 1, mark}) {
    ASSERT_OK(zip.begin("of " + std::to_string(size)));
    for (std::uint64_t rest = size; rest > 0;) {
      const std::uint64_t count = std::min<std::uint64_t>(rest, zeros.size());
      ASSERT_OK(zip.append(std::span(zeros).first(static_cast<std::size_t>(count))));
      rest -= count;
    }
    ASSERT_OK(zip.end());
  }
  ASSERT_OK(zip.commit());
  ASSERT_OK_AND_ASSIGN(const FileBytes file, FileBytes::map(folder / "a.zip"));
  ASSERT_OK_AND_ASSIGN(const auto entries, read_zip_directory(file.bytes()));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].bytes, mark - 1);
  EXPECT_EQ(entries[1].bytes, mark);
  const std::span<const std::byte> tail = file.bytes().last(400);
  const std::string directory(reinterpret_cast<const char*>(tail.data()), tail.size());
  const auto extra_bytes = [&](std::size_t header) { return static_cast<int>(directory[header + 30]); };
  const std::size_t first = directory.find(central_mark);
  EXPECT_EQ(extra_bytes(first), 0);
  // Id and size, both sizes, and where the entry begins.
  EXPECT_EQ(extra_bytes(directory.find(central_mark, first + 1)), 4 + 2 * 8 + 8);
}

// Three entries of several pieces each: text that shrinks, numbers that do not, zeros that shrink a thousandfold.
std::vector<std::string> large_contents() {
  std::string text, noise;
  std::uint64_t state = 1;
  while (text.size() < 1500000) text += "streamline " + std::to_string(text.size()) + "\n";
  while (noise.size() < 1300000) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    noise.push_back(static_cast<char>(state >> 56U));
  }
  return {text, noise, std::string(40 << 20, '\0'), std::string()};
}

std::string deflated_archive(const std::vector<std::string>& contents, std::size_t at_once, ThreadPool* pool) {
  const TemporaryFolder folder;
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
    for (std::size_t i = 0; i < contents.size(); ++i) {
      CGL_TRY(zip.begin_deflated("entry" + std::to_string(i), pool));
      for (std::size_t at = 0; at < contents[i].size(); at += at_once) {
        CGL_TRY(zip.append(bytes_of(std::string_view(contents[i]).substr(at, at_once))));
      }
      CGL_TRY(zip.end());
    }
    return zip.commit();
  };
  const Status status = write();
  EXPECT_TRUE(status) << testing::message_of(status);
  return folder.content("a.zip");
}

TEST(ZipArchive, deflated_entries_come_back_and_never_unpack_to_more_than_is_believed) {
  const std::vector<std::string> contents = large_contents();
  const std::string archive = deflated_archive(contents, 1 << 20, nullptr);
  // 40 MiB of zeros would shrink to 40 kB: 42.8 MB in an archive of 1.6 MB, which the reader takes for a bomb.
  ASSERT_OK_AND_ASSIGN(const auto entries, read(archive));
  ASSERT_EQ(entries.size(), contents.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_TRUE(entries[i].deflated);
    EXPECT_EQ(entries[i].bytes, contents[i].size());
    ASSERT_OK_AND_ASSIGN(const auto content, inflate_entry(bytes_of(archive), entries[i]));
    ASSERT_EQ(content.size(), contents[i].size());
    EXPECT_TRUE(std::equal(content.begin(), content.end(), bytes_of(contents[i]).begin())) << i;
  }
  EXPECT_LT(entries[0].packed_bytes, contents[0].size() / 4);
  EXPECT_GE(entries[1].packed_bytes, contents[1].size());
  EXPECT_LT(entries[2].packed_bytes, contents[2].size() / 8);
  EXPECT_GT(archive.size() * 8 + (16 << 20), std::size_t{42} << 20U);
  EXPECT_LT(archive.size(), std::size_t{5} << 20U);
}

TEST(ZipArchive, bytes_of_deflated_entries_depend_on_their_content_alone) {
  const std::vector<std::string> contents = large_contents();
  const std::string expected = deflated_archive(contents, 1 << 20, nullptr);
  for (const int threads : {1, 2, 7}) {
    const auto pool = ThreadPool::create(threads).value();
    EXPECT_TRUE(deflated_archive(contents, threads == 2 ? 333333 : 1 << 22, pool.get()) == expected) << threads;
  }
}

TEST(ZipArchive, looks_like_one_by_its_first_four_bytes) {
  for (const char* const mark : {"PK\3\4", "PK\5\6", "PK\6\6"}) EXPECT_TRUE(looks_like_zip(bytes_of(mark)));
  for (const char* const mark : {"PK\3", "PK\1\2", "TRACK", ""}) EXPECT_FALSE(looks_like_zip(bytes_of(mark)));
}

}  // namespace
}  // namespace cingulum::zip_archive_tests
