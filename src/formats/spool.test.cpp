#include "formats/spool.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "formats/byte_stream.hpp"
#include "formats/crc32.hpp"
#include "formats/file_bytes.hpp"
#include "support/each_device.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::spool_tests {
namespace {

using testing::fails_with;

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 256);
  return bytes;
}

TEST(Spool, gives_back_what_was_appended_and_makes_a_file_only_beyond_its_memory) {
  const TemporaryFolder folder;
  struct Case {
    std::size_t memory, bytes, piece;
  };
  // The last two are read back in pieces of 1 MiB.
  for (const Case& c : {Case{64, 0, 1}, Case{64, 64, 64}, Case{64, 64, 1}, Case{64, 65, 65}, Case{64, 65, 1},
                        Case{64, 200, 7}, Case{1 << 20, (1 << 21) + 1, 1 << 19}, Case{1 << 19, 3 << 19, 12345}}) {
    SCOPED_TRACE(::testing::Message() << c.bytes << " bytes in pieces of " << c.piece);
    FaultyFileLayer layer;
    Spool spool(layer, (folder / "out").native(), c.memory);
    const auto bytes = some_bytes(c.bytes);
    for (std::size_t at = 0; at < bytes.size(); at += c.piece) {
      ASSERT_OK(spool.append(std::span(bytes).subspan(at, std::min(c.piece, bytes.size() - at))));
    }
    EXPECT_EQ(spool.size(), c.bytes);
    EXPECT_EQ(spool.crc(), crc32(bytes));
    const auto made = std::count_if(layer.trace().begin(), layer.trace().end(),
                                    [](const RecordedCall& call) { return call.call == FileCall::create; });
    EXPECT_EQ(made, c.bytes > c.memory ? 1 : 0);
    EXPECT_TRUE(folder.names().empty()) << "the file has no name";
    std::vector<std::byte> drained;
    ASSERT_OK(spool.drain([&](std::span<const std::byte> piece) -> Status {
      drained.insert(drained.end(), piece.begin(), piece.end());
      return {};
    }));
    EXPECT_EQ(drained, bytes);
  }
}

TEST(FileBytes, a_pipe_or_a_folder_is_refused_without_waiting_and_an_empty_file_has_no_bytes) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  folder.put("empty", "");
  folder.put("three", "abc");
  EXPECT_TRUE(fails_with(FileBytes::map(folder / "pipe"), ErrorKind::invalid_argument, "it is not a regular file"));
  EXPECT_TRUE(fails_with(FileBytes::map(folder.path()), ErrorKind::invalid_argument, "it is not a regular file"));
  EXPECT_TRUE(fails_with(FileBytes::map(folder / "absent"), ErrorKind::not_found, "no such file"));
  EXPECT_TRUE(fails_with(FileBytes::map(folder / "three" / "a"), ErrorKind::io, "not a directory"));
  EXPECT_TRUE(FileBytes::map(folder / "empty").value().bytes().empty());
  EXPECT_EQ(FileBytes::map(folder / "three").value().bytes().size(), 3U);
  EXPECT_TRUE(fails_with(InputFile::open(folder / "pipe"), ErrorKind::io, "it is not a regular file"));
  EXPECT_TRUE(fails_with(InputFile::open(folder.path()), ErrorKind::io, "it is a folder"));
  EXPECT_TRUE(fails_with(InputFile::open(folder / "absent"), ErrorKind::not_found, "no such file"));
  EXPECT_TRUE(fails_with(InputFile::open(folder / "three" / "a"), ErrorKind::not_found, "not a directory"));
}

TEST(FileBytes, an_input_file_is_read_from_any_place_up_to_its_end) {
  const TemporaryFolder folder;
  folder.put("a", "0123456789");
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::open(folder / "a"));
  const auto read = [&](std::uint64_t offset, std::size_t count) {
    std::string text(count, '-');
    const auto got = file.read_at(offset, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(got);
    return text.substr(0, got.value_or(0));
  };
  EXPECT_EQ(read(0, 10), "0123456789");
  EXPECT_EQ(read(3, 4), "3456");
  EXPECT_EQ(read(8, 4), "89");
  EXPECT_EQ(read(10, 4), "");
  EXPECT_EQ(read(100, 4), "");
}

}  // namespace
}  // namespace cingulum::spool_tests
