#include "formats/byte_stream.hpp"

#include <dlfcn.h>
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

}  // namespace

bool read_is_interrupted() {
  if (interrupted_reads == 0) return false;
  --interrupted_reads;
  if (is_ctrl_c) request_interrupt();
  return true;
}

}  // namespace cingulum::byte_stream_tests

// Stands before the C library's: a local disk is never interrupted, a network's or a user's file system is.
extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  if (cingulum::byte_stream_tests::read_is_interrupted()) {
    errno = EINTR;
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
