#include "formats/byte_stream.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace
}  // namespace cingulum::byte_stream_tests
