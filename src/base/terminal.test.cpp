#include "base/terminal.hpp"

#include <gtest/gtest.h>

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

TEST(EscapeControlCharacters, keeps_text_newlines_and_tabs) {
  EXPECT_EQ(escape_control_characters("a\tb\n\u00b5"), "a\tb\n\u00b5");
  EXPECT_EQ(escape_control_characters(std::string_view("\x1b[31m\0", 6)), "\\x1b[31m\\x00");
}

}  // namespace
}  // namespace cingulum
