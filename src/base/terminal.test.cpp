#include "base/terminal.hpp"

#include <gtest/gtest.h>

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

TEST(EscapeControlCharacters, keeps_text_newlines_and_tabs) {
  EXPECT_EQ(escape_control_characters("a\tb\n\u00b5"), "a\tb\n\u00b5");
  EXPECT_EQ(escape_control_characters(std::string_view("\x1b[31m\0", 6)), "\\x1b[31m\\x00");
}

}  // namespace
}  // namespace cingulum
