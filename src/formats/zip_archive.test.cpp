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

// The bytes of a local header, as they are written.
std::string local_header_of(std::string_view name, std::uint64_t bytes, std::uint32_t crc) {
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  const auto write = [&]() -> Status {
    CGL_TRY_ASSIGN(ZipWriter zip,
                   ZipWriter::create(folder / "a.zip", {.sync = false, .buffer_bytes = 1, .layer = &layer}));
    return zip.begin_known(name, bytes, crc);
  };
  EXPECT_TRUE(write());
  std::string header;
  for (const RecordedCall& call : layer.trace()) {
    if (call.call == FileCall::write) header.append(reinterpret_cast<const char*>(call.data.data()), call.data.size());
  }
  return header;
}

// APPNOTE 6.3: 4.3.7 and 4.5.3, put together by hand.
TEST(ZipWriter, a_local_header_has_its_size_in_32_bits_below_the_mark_and_in_the_zip64_field_from_it_on) {
  using namespace std::string_literals;
  const std::string begin = "PK\3\4"s, time = "\0\0\x21\0"s, crc = "\x78\x56\x34\x12"s;
  EXPECT_EQ(local_header_of("ab", 0x01020304, 0x12345678),
            begin + "\x14\0\0\0\0\0"s + time + crc + "\4\3\2\1\4\3\2\1"s + "\2\0\0\0ab"s);
  EXPECT_EQ(local_header_of("ab", 0xfffffffe, 0x12345678),
            begin + "\x14\0\0\0\0\0"s + time + crc + "\xfe\xff\xff\xff\xfe\xff\xff\xff"s + "\2\0\0\0ab"s);
  const std::string marked =
      begin + "\x2d\0\0\0\0\0"s + time + crc + "\xff\xff\xff\xff\xff\xff\xff\xff"s + "\2\0\x14\0ab\1\0\x10\0"s;
  EXPECT_EQ(local_header_of("ab", 0xffffffff, 0x12345678),
            marked + "\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0"s);
  EXPECT_EQ(local_header_of("ab", 0x100000000, 0x12345678), marked + "\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0"s);
  EXPECT_EQ(ZipWriter::header_bytes("ab", true), local_header_of("ab", 5, 0).size());
  EXPECT_EQ(ZipWriter::header_bytes("ab", false), marked.size() + 16);
}

// The same for a whole archive of one entry: 4.3.12 and 4.3.16.
TEST(ZipWriter, an_archive_is_headers_content_directory_and_end) {
  using namespace std::string_literals;
  const std::string sizes = "\x0c\0\0\0\x0c\0\0\0"s, time = "\0\0\x21\0"s;
  const std::string archive = archive_of({"a"});
  const std::string own_crc = archive.substr(14, 4);
  std::uint32_t number = crc32(bytes_of("content of a"));
  for (const char c : own_crc) {
    EXPECT_EQ(static_cast<std::uint8_t>(c), number & 0xffU);
    number >>= 8U;
  }
  EXPECT_EQ(archive, "PK\3\4\x14\0\0\0\0\0"s + time + own_crc + sizes + "\1\0\0\0a"s + "content of a" +
                         "PK\1\2\x2d\3\x14\0\0\0\0\0"s + time + own_crc + sizes + "\1\0\0\0\0\0\0\0\0\0"s +
                         "\0\0\xa4\x81"s + "\0\0\0\0a"s + "PK\5\6\0\0\0\0\1\0\1\0"s + "\x2f\0\0\0"s + "\x2b\0\0\0"s +
                         "\0\0"s);
}

// 65535 in the 16 bits of the end means: see the zip64 end.
TEST(ZipWriter, as_many_entries_as_the_mark_have_a_zip64_end) {
  const std::string zip64_end("PK\6\6", 4), locator("PK\6\7", 4);
  for (const std::size_t count : {0xfffeU, 0xffffU, 0x10000U}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    const std::string archive = archive_of(names);
    ASSERT_OK_AND_ASSIGN(const auto entries, read(archive));
    ASSERT_EQ(entries.size(), count);
    EXPECT_EQ(entries.back().name, std::to_string(count - 1));
    const std::string tail = archive.substr(archive.size() - 22 - 20 - 56);
    const std::string end = archive.substr(archive.size() - 22);
    ASSERT_TRUE(end.starts_with(end_mark));
    const std::size_t said = static_cast<std::uint8_t>(end[8]) + 256U * static_cast<std::uint8_t>(end[9]);
    EXPECT_EQ(said, std::min<std::size_t>(count, 0xffff));
    EXPECT_EQ(end.substr(8, 2), end.substr(10, 2));
    EXPECT_EQ(tail.starts_with(zip64_end), count >= 0xffff) << count;
    EXPECT_EQ(tail.substr(56).starts_with(locator), count >= 0xffff) << count;
    if (count < 0xffff) continue;
    const auto number = [&](std::size_t at, std::size_t bytes) {
      std::uint64_t value = 0;
      for (std::size_t i = bytes; i-- > 0;) value = value << 8U | static_cast<std::uint8_t>(tail[at + i]);
      return value;
    };
    EXPECT_EQ(number(4, 8), 44U) << "bytes that follow";
    EXPECT_EQ(number(12, 2), 3U << 8U | 45U);
    EXPECT_EQ(number(14, 2), 45U);
    EXPECT_EQ(number(16, 8), 0U) << "disks";
    EXPECT_EQ(number(24, 8), count);
    EXPECT_EQ(number(32, 8), count);
    EXPECT_EQ(number(40, 8) + number(48, 8), archive.size() - 22 - 20 - 56)
        << "the directory ends where the end begins";
    EXPECT_TRUE(archive.substr(static_cast<std::size_t>(number(48, 8))).starts_with(central_mark));
    EXPECT_EQ(number(56 + 4, 4), 0U);
    EXPECT_EQ(number(56 + 8, 8), archive.size() - 22 - 20 - 56);
    EXPECT_EQ(number(56 + 16, 4), 1U);
  }
}

TEST(ZipArchive, every_number_of_the_zip64_end_is_held_against_the_others) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 0xffffU; ++i) names.push_back(std::to_string(i));
  const std::string good = archive_of(names);
  const std::size_t end = good.size() - 22, locator = end - 20, record = locator - 56;
  const auto with = [&](std::size_t at, int difference) {
    std::string other = good;
    other[at] = static_cast<char>(other[at] + difference);
    return read(other);
  };
  const auto refused = [&](std::size_t at, const char* why) {
    for (const int difference : {1, -1}) {
      if (!fails_with(with(at, difference), ErrorKind::corrupt, why))
        return fails_with(with(at, difference), ErrorKind::corrupt, why);
    }
    return ::testing::AssertionSuccess();
  };
  EXPECT_TRUE(refused(record, "no zip64 end record at byte"));
  EXPECT_TRUE(refused(record + 4, "its place allows 44"));
  EXPECT_TRUE(refused(record + 16, "several disks"));
  EXPECT_TRUE(refused(record + 20, "several disks"));
  EXPECT_TRUE(refused(record + 24, "several disks"));
  EXPECT_TRUE(refused(record + 32, "several disks"));
  EXPECT_TRUE(refused(record + 40, "contradict each other"));
  EXPECT_TRUE(refused(record + 48, "contradict each other"));
  EXPECT_TRUE(refused(locator, "a zip64 record that is not there"));
  EXPECT_TRUE(refused(locator + 4, "several disks"));
  EXPECT_TRUE(refused(locator + 8, "no zip64 end record at byte"));
  EXPECT_TRUE(with(locator + 16, -1)) << "no disk, or one";
  EXPECT_TRUE(fails_with(with(locator + 16, 1), ErrorKind::corrupt, "several disks"));
  EXPECT_TRUE(refused(end + 4, "several disks"));
  EXPECT_TRUE(refused(end + 12, "contradict each other"));
  EXPECT_TRUE(refused(end + 16, "contradict each other"));
  // Both counts, in both records.
  std::string fewer = good;
  for (const std::size_t at : {record + 24, record + 32, end + 8, end + 10})
    fewer[at] = static_cast<char>(fewer[at] - 1);
  EXPECT_TRUE(fails_with(read(fewer), ErrorKind::corrupt, "bytes more than its 65534 entries"));
  // Marks in the end leave it to the zip64 end.
  std::string marked = good;
  for (std::size_t at = end + 12; at < end + 20; ++at) marked[at] = static_cast<char>(0xff);
  EXPECT_TRUE(read(marked));
}

TEST(ZipWriter, refuses_names_that_are_too_long_and_calls_out_of_order) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
  const std::uint64_t offsets[] = {0, 1};
  const auto make = [](std::size_t, std::span<std::byte> place) { place[0] = std::byte{'b'}; };
  EXPECT_TRUE(fails_with(zip.append(bytes_of("x")), ErrorKind::invalid_state, "no entry was begun"));
  EXPECT_TRUE(fails_with(zip.append_parts(offsets, make), ErrorKind::invalid_state, "no entry was begun"));
  EXPECT_TRUE(fails_with(zip.end(), ErrorKind::invalid_state, "no entry was begun"));
  EXPECT_TRUE(fails_with(zip.begin(std::string(0xffff, 'a')), ErrorKind::invalid_argument, "65535 bytes is too long"));
  const std::string longest(0xfffe, 'a');
  ASSERT_OK(zip.begin(longest));
  EXPECT_TRUE(fails_with(zip.begin("b"), ErrorKind::invalid_state, "has not ended"));
  EXPECT_TRUE(fails_with(zip.commit(), ErrorKind::invalid_state, "has not ended"));
  ASSERT_OK(zip.append(bytes_of("a")));
  EXPECT_TRUE(fails_with(zip.replace(0, bytes_of("z")), ErrorKind::invalid_argument, "entry 0 cannot be replaced"));
  ASSERT_OK(zip.append_parts(offsets, make));
  ASSERT_OK(zip.end());
  EXPECT_TRUE(fails_with(zip.end(), ErrorKind::invalid_state, "no entry was begun"));
  EXPECT_TRUE(fails_with(zip.replace(1, bytes_of("zz")), ErrorKind::invalid_argument, "entry 1 cannot be replaced"));
  EXPECT_TRUE(fails_with(zip.replace(0, bytes_of("z")), ErrorKind::invalid_argument, "by 1 bytes"));
  ASSERT_OK(zip.begin_deflated("packed", nullptr));
  ASSERT_OK(zip.append_parts(offsets, make));
  ASSERT_OK(zip.append(bytes_of("c")));
  ASSERT_OK(zip.end());
  EXPECT_TRUE(fails_with(zip.replace(1, bytes_of("zz")), ErrorKind::invalid_argument, "entry 1 cannot be replaced"));
  ASSERT_OK(zip.commit());
  const std::string archive = folder.content("a.zip");
  ASSERT_OK_AND_ASSIGN(const auto entries, read(archive));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, longest);
  EXPECT_EQ(entries[0].offset, 30U + longest.size() + 20U);
  EXPECT_EQ(archive.substr(static_cast<std::size_t>(entries[0].offset), 2), "ab");
  EXPECT_EQ(entries[0].crc, crc32(bytes_of("ab")));
  EXPECT_EQ(entries[1].bytes, 2U);
  EXPECT_EQ(entries[1].crc, crc32(bytes_of("bc")));
}

TEST(ZipWriter, content_that_is_not_as_announced_leaves_nothing) {
  for (const auto& [bytes, crc] : {std::pair{3U, crc32(bytes_of("ab"))}, {2U, crc32(bytes_of("ac"))}}) {
    const TemporaryFolder folder;
    ASSERT_OK_AND_ASSIGN(ZipWriter zip, ZipWriter::create(folder / "a.zip", {.sync = false}));
    ASSERT_OK(zip.begin_known("x", bytes, crc));
    ASSERT_OK(zip.append(bytes_of("ab")));
    EXPECT_TRUE(fails_with(zip.end(), ErrorKind::io, "entry 'x': 2 bytes came"));
    EXPECT_FALSE(zip.commit());
    EXPECT_TRUE(folder.names().empty());
  }
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
