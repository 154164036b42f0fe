#include "base/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace cingulum {
namespace {

TEST(DisplayWidth, counts_columns_not_bytes) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("plain"), 5U);
  EXPECT_EQ(display_width("\u00b5m \u00b0"), 4U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("\u8133"), 2U);
  EXPECT_EQ(display_width("\U0001f9e0"), 2U);
}

TEST(DisplayWidth, counts_invalid_bytes_one_each) {
  EXPECT_EQ(display_width("a\xff\xfe"
                          "b"),
            4U);
  EXPECT_EQ(display_width("\xe2\x82"), 2U);
  EXPECT_EQ(display_width("\xc3("), 2U);
}

TEST(TruncateToWidth, keeps_whole_characters) {
  EXPECT_EQ(truncate_to_width("abcdef", 3), "abc");
  EXPECT_EQ(truncate_to_width("\u00b5\u00b5\u00b5", 2), "\u00b5\u00b5");
  EXPECT_EQ(truncate_to_width("\u8133\u8133", 3), "\u8133");
  EXPECT_EQ(truncate_to_width("ab", 10), "ab");
}

TEST(TerminalWidth, where_there_is_no_terminal_is_that_of_columns_within_reason) {
  const char* const before = std::getenv("COLUMNS");
  const std::string kept = before == nullptr ? "" : before;
  const auto width = [](const char* columns) {
    ::setenv("COLUMNS", columns, 1);
    return terminal_width(-1, 77);
  };
  EXPECT_EQ(width("50"), 50U);
  EXPECT_EQ(width("20"), 20U);
  EXPECT_EQ(width("10000"), 10000U);
  for (const char* const columns : {"", "19", "10001", "wide", "50x", "-50", " 50"}) EXPECT_EQ(width(columns), 77U);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_width(-1, 77), 77U);
  if (before != nullptr) ::setenv("COLUMNS", kept.c_str(), 1);
}

TEST(Terminal, is_told_from_a_file_and_says_how_wide_it_is) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_GE(file, 0);
  EXPECT_TRUE(is_terminal(terminal));
  EXPECT_FALSE(is_terminal(file));
  EXPECT_FALSE(is_terminal(-1));
  for (winsize size : {winsize{.ws_row = 9, .ws_col = 1, .ws_xpixel = 0, .ws_ypixel = 0},
                       winsize{.ws_row = 9, .ws_col = 93, .ws_xpixel = 0, .ws_ypixel = 0}}) {
    ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(terminal_width(terminal, 77), size.ws_col);
  }
  ::close(terminal);
  ::close(file);
}

TEST(EscapeControlCharacters, keeps_text_newlines_and_tabs) {
  EXPECT_EQ(escape_control_characters("a\tb\n\u00b5"), "a\tb\n\u00b5");
  EXPECT_EQ(escape_control_characters(std::string_view("\x1b[31m\0", 6)), "\\x1b[31m\\x00");
}

}  // namespace
}  // namespace cingulum
