#include "formats/byte_stream.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/interrupt.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::byte_stream_tests {
namespace {

// How many of the next reads of this thread a signal interrupts; and whether it was Ctrl-C.
thread_local int interrupted_reads = 0;
thread_local bool is_ctrl_c = false;
// Bytes that this thread read past the system's memory.
thread_local std::size_t direct_bytes = 0;
// Whether a file system plays that refuses such reads though it opened the file.
thread_local bool refuses_direct = false;

}  // namespace

bool read_is_interrupted() {
  if (interrupted_reads == 0) return false;
  --interrupted_reads;
  if (is_ctrl_c) request_interrupt();
  return true;
}

bool read_is_refused(int descriptor, std::size_t bytes) {
  if ((::fcntl(descriptor, F_GETFL) & O_DIRECT) == 0) return false;
  if (!refuses_direct) direct_bytes += bytes;
  return refuses_direct;
}

}  // namespace cingulum::byte_stream_tests

// Stands before the C library's: a local disk is never interrupted, a network's or a user's file system is.
extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  if (cingulum::byte_stream_tests::read_is_interrupted()) {
    errno = EINTR;
    return -1;
  }
  if (cingulum::byte_stream_tests::read_is_refused(descriptor, bytes)) {
    errno = EINVAL;
    return -1;
  }
  static const auto real = reinterpret_cast<decltype(&pread)>(::dlsym(RTLD_NEXT, "pread"));
  return real(descriptor, to, bytes, offset);
}

namespace cingulum::byte_stream_tests {
namespace {

TEST(InputFile, an_interrupted_read_goes_on_unless_the_run_is_to_end) {
  const TemporaryFolder folder;
  folder.put("a", "content");
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::open(folder / "a"));
  std::string text(7, '?');
  const auto bytes = std::as_writable_bytes(std::span(text));
  interrupted_reads = 3;
  EXPECT_EQ(file.read_at(0, bytes).value(), 7U);
  EXPECT_EQ(text, "content");
  EXPECT_EQ(interrupted_reads, 0) << "nothing was interrupted";
  interrupted_reads = 1;
  is_ctrl_c = true;
  EXPECT_TRUE(testing::fails_with(file.read_at(0, bytes), ErrorKind::interrupted, "interrupted"));
  is_ctrl_c = false;
  clear_interrupt();
}

TEST(InputFile, what_cannot_be_opened_says_why_and_what_is_no_regular_file_is_refused) {
  using testing::fails_with;
  const TemporaryFolder folder;
  folder.put("a", "content");
  EXPECT_TRUE(fails_with(InputFile::open(folder / "none"), ErrorKind::not_found, "no such file"));
  EXPECT_TRUE(fails_with(InputFile::open(folder / "a/b"), ErrorKind::not_found, "not a directory"));
  EXPECT_TRUE(fails_with(InputFile::open(folder / std::string(300, 'n')), ErrorKind::io, "name too long"));
  EXPECT_TRUE(fails_with(InputFile::open(folder.path()), ErrorKind::io, "it is a folder"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(InputFile::open(folder / "pipe"), ErrorKind::io, "it is not a regular file"));
}

TEST(InputFile, is_read_at_any_place_up_to_its_end) {
  const TemporaryFolder folder;
  folder.put("a", "content");
  folder.put("b", "other");
  ASSERT_OK_AND_ASSIGN(InputFile file, InputFile::open(folder / "a"));
  const auto text_at = [](const InputFile& from, std::uint64_t offset, std::size_t count) {
    std::string text(count, '?');
    const auto got = from.read_at(offset, std::as_writable_bytes(std::span(text)));
    return got ? text.substr(0, *got) : "failed";
  };
  EXPECT_EQ(file.size(), 7U);
  EXPECT_EQ(text_at(file, 0, 7), "content");
  EXPECT_EQ(text_at(file, 3, 2), "te");
  EXPECT_EQ(text_at(file, 3, 100), "tent");
  EXPECT_EQ(text_at(file, 7, 1), "");
  EXPECT_EQ(text_at(file, 3, 0), "");
  // Descriptors go with the files that are moved, and are closed once.
  ASSERT_OK_AND_ASSIGN(InputFile other, InputFile::open(folder / "b"));
  other = std::move(file);
  EXPECT_EQ(other.size(), 7U);
  EXPECT_EQ(text_at(other, 0, 7), "content");
  const InputFile last(std::move(other));
  EXPECT_EQ(text_at(last, 0, 7), "content");
}

// Leaves the system's memory, where the file system has a disk.
void forget(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

TEST(InputFile, what_is_read_once_is_the_same_at_every_place_from_disk_and_from_memory) {
  constexpr std::size_t page = 4096, size = 300 * page + 123;
  const TemporaryFolder folder;
  std::string text(size, '?');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761U) >> 13U);
  folder.put("a", text);
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::open(folder / "a"));
  const auto room = std::unique_ptr<char, decltype(&std::free)>(
      static_cast<char*>(std::aligned_alloc(page, size / page * page + 4 * page)), &std::free);
  struct Case {
    std::size_t offset, bytes, at;  // at: of the room's first page
  };
  const std::vector<Case> cases = {{0, size, 0},
                                   {page, 7 * page, 0},
                                   {100, 9 * page, 100},
                                   {100, 9 * page, 101},
                                   {page - 1, 2 * page, page - 1},
                                   {3 * page, 4096, 0},
                                   {5, 10, 5},
                                   {290 * page, 100 * page, 0},
                                   {size - 1, 2 * page, 122},
                                   {size, page, 0},
                                   {size + 5 * page, page, 0},
                                   {2 * page, 0, 0}};
  for (const bool refuses : {false, true}) {
    for (const bool from_disk : {true, false}) {
      for (const Case& one : cases) {
        SCOPED_TRACE(::testing::Message() << one.offset << " " << one.bytes << " " << refuses << from_disk);
        if (from_disk) forget(folder / "a");
        refuses_direct = refuses;
        const std::span<char> to(room.get() + one.at, one.bytes);
        std::fill(to.begin(), to.end(), '!');
        const auto got = file.read_once_at(one.offset, std::as_writable_bytes(to));
        refuses_direct = false;
        ASSERT_OK(got);
        const std::string expected = one.offset < size ? text.substr(one.offset, one.bytes) : std::string();
        ASSERT_EQ(*got, expected.size());
        EXPECT_TRUE(std::string(to.data(), *got) == expected);
      }
    }
  }
}

TEST(InputFile, what_the_system_has_in_memory_is_not_read_from_the_disk_again) {
  constexpr std::size_t page = 4096, size = 64 * page;
  const TemporaryFolder folder;
  folder.put("a", std::string(size, 'a'));
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::open(folder / "a"));
  const auto room =
      std::unique_ptr<char, decltype(&std::free)>(static_cast<char*>(std::aligned_alloc(page, size)), &std::free);
  const auto to = std::as_writable_bytes(std::span(room.get(), size));
  forget(folder / "a");
  direct_bytes = 0;
  ASSERT_OK(file.read_once_at(0, to));
  if (direct_bytes == 0)
    GTEST_SKIP() << "the file system of " << folder.path() << " has no disk, or no way past memory";
  EXPECT_EQ(direct_bytes, size);
  // It leaves nothing in memory; what others read does.
  direct_bytes = 0;
  ASSERT_OK(file.read_once_at(0, to));
  EXPECT_EQ(direct_bytes, size);
  ASSERT_OK(file.read_at(0, to));
  direct_bytes = 0;
  ASSERT_OK(file.read_once_at(0, to));
  EXPECT_EQ(direct_bytes, 0U);
  // Ctrl-C ends it on either way.
  forget(folder / "a");
  interrupted_reads = 1;
  is_ctrl_c = true;
  EXPECT_TRUE(testing::fails_with(file.read_once_at(0, to), ErrorKind::interrupted, "interrupted"));
  is_ctrl_c = false;
  clear_interrupt();
}

// So many bytes, 1 2 3 ... modulo 251, and then perhaps a failure.
class CountingStream final : public ByteStream {
 public:
  CountingStream(std::size_t bytes, std::size_t at_once, bool fails)
      : bytes_(bytes), at_once_(at_once), fails_(fails) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    if (given_ == bytes_ && fails_) return fail(ErrorKind::corrupt, "damaged");
    const std::size_t count = std::min({to.size(), at_once_, bytes_ - given_});
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::byte>(++given_ % 251);
    return count;
  }

 private:
  std::size_t bytes_, at_once_;
  bool fails_;
  std::size_t given_ = 0;
};

// Blocks have a mebibyte, and there are four.
TEST(ReadAhead, gives_the_same_bytes_and_the_failure_behind_them) {
  constexpr std::size_t block = std::size_t{1} << 20U;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 6 * block + 5}) {
    for (const std::size_t at_once : {std::size_t{100000}, 2 * block}) {
      for (const bool fails : {false, true}) {
        const auto stream = read_ahead(std::make_unique<CountingStream>(bytes, at_once, fails));
        std::vector<std::byte> piece(77777);
        std::size_t came = 0;
        while (true) {
          const auto got = stream->read(piece);
          if (fails && !got) {
            EXPECT_EQ(got.error().message(), "damaged");
            break;
          }
          ASSERT_OK(got);
          if (*got == 0) break;
          for (std::size_t i = 0; i < *got; ++i) {
            ASSERT_EQ(piece[i], static_cast<std::byte>(++came % 251)) << came;
          }
        }
        EXPECT_EQ(came, bytes);
        EXPECT_EQ(stream->read(piece).has_value(), !fails) << "the end stays the end";
      }
    }
  }
}

TEST(ReadAhead, may_be_left_before_its_end) {
  const auto stream = read_ahead(std::make_unique<CountingStream>(std::size_t{1} << 30U, 1000, false));
  std::vector<std::byte> piece(10);
  EXPECT_EQ(stream->read(piece).value(), 10U);
}

}  // namespace
}  // namespace cingulum::byte_stream_tests
