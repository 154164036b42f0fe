#include "base/read_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

TEST(ReadFile, gives_all_bytes_of_files_of_any_size) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 100000U}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31);
    folder.put("a", text);
    EXPECT_EQ(*read_text_file(folder / "a"), text);
    const auto bytes = read_file(folder / "a");
    ASSERT_TRUE(bytes);
    ASSERT_EQ(bytes->size(), size);
    EXPECT_TRUE(size == 0 || std::memcmp(bytes->data(), text.data(), size) == 0);
  }
}

TEST(ReadFile, reads_files_whose_stated_size_is_zero) {
  const auto text = read_text_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Pid:\t" + std::to_string(::getpid())), std::string::npos);
}

TEST(ReadFile, names_file_and_cause) {
  const TemporaryFolder folder;
  const auto missing = read_file(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::not_found);
  EXPECT_EQ(missing.error().message(), "reading " + (folder / "missing").native() + ": no such file or directory");
  EXPECT_EQ(read_file(folder.path()).error().message(), "reading " + folder.path().native() + ": it is a folder");
}

TEST(ReadFile, refuses_more_than_the_limit_before_and_while_reading) {
  const TemporaryFolder folder;
  folder.put("a", std::string(2048, 'x'));
  EXPECT_TRUE(read_file(folder / "a", 2048));
  EXPECT_EQ(read_file(folder / "a", 2047).error().message(),
            "reading " + (folder / "a").native() + ": 2048 bytes is above the limit of 2047 (2.0 KiB)");
  const auto endless = read_file("/dev/zero", 10000);
  ASSERT_FALSE(endless);
  EXPECT_TRUE(endless.error().message().starts_with("reading /dev/zero: at least ")) << endless.error().message();
}

}  // namespace
}  // namespace cingulum
