#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace cingulum {
namespace {

TEST(ParseBytes, accepts_bare_numbers_binary_and_decimal_units_in_any_case) {
  const std::vector<std::pair<std::string, std::uint64_t>> cases = {{"0", 0},
                                                                    {"4096", 4096},
                                                                    {"64K", 65536},
                                                                    {"64k", 65536},
                                                                    {"64 KiB", 65536},
                                                                    {"64KB", 64000},
                                                                    {"1.5 GiB", 1610612736},
                                                                    {" 2 G ", 2147483648},
                                                                    {"1t", 1ULL << 40U},
                                                                    {"1TB", 1000000000000},
                                                                    {"0.5M", 524288},
                                                                    {"10 B", 10},
                                                                    {"16777215T", ((1ULL << 24U) - 1) << 40U},
                                                                    {"16777215.0T", ((1ULL << 24U) - 1) << 40U},
                                                                    {"18446744073709551615", ~std::uint64_t{0}}};
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseBytes, refuses_what_is_not_a_size_with_the_value_and_what_is_accepted) {
  for (const std::string text : {"", " ", "G", "-1", "1.2.3", "1e3", "1 XB", "nan", "inf", "0x10",
                                 "18446744073709551616", "16777216T", "16777216.0T", "99999999999T", "1.5.G", "."}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(parsed.error().message().starts_with("'" + text + "' is not a size; accepted is ")) << text;
  }
}

TEST(FormatBytes, has_one_decimal_and_never_shows_1024_of_a_unit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(19541950996), "18.2 GiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16.0 EiB");
}

TEST(Durations, are_printed_with_two_units_at_most) {
  const auto printed = [](double seconds) { return format_duration(std::chrono::duration<double>(seconds)); };
  EXPECT_EQ(printed(0.012), "12 ms");
  EXPECT_EQ(printed(0.9999), "1.0 s");
  EXPECT_EQ(printed(3.42), "3.4 s");
  EXPECT_EQ(printed(59.97), "1 min 00 s");
  EXPECT_EQ(printed(60), "1 min 00 s");
  EXPECT_EQ(printed(125), "2 min 05 s");
  EXPECT_EQ(printed(3599), "59 min 59 s");
  EXPECT_EQ(printed(3600), "1 h 00 min");
  EXPECT_EQ(printed(3629), "1 h 00 min");
  EXPECT_EQ(printed(3630), "1 h 01 min") << "rounded, not cut";
  EXPECT_EQ(printed(86399), "1 d 00 h");
  EXPECT_EQ(printed(86400), "1 d 00 h");
  EXPECT_EQ(printed(86400 + 1800), "1 d 01 h");
  EXPECT_EQ(printed(0), "0 ms");
  EXPECT_EQ(printed(-1), "0 s");
  EXPECT_EQ(printed(3720), "1 h 02 min");
  EXPECT_EQ(printed(86400 * 3 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(printed(std::numeric_limits<double>::infinity()), "very long");
  EXPECT_EQ(printed(std::numeric_limits<double>::quiet_NaN()), "0 s");
}

TEST(FormatCount, groups_digits_by_three) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1 000");
  EXPECT_EQ(format_count(12345678), "12 345 678");
}

TEST(ParseNumbers, take_the_whole_text_or_nothing) {
  EXPECT_EQ(*parse_integer("-42"), -42);
  EXPECT_EQ(*parse_integer("+7"), 7);
  EXPECT_EQ(*parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const std::string text : {"", "+", "-", "+-1", "1.0", "1 ", " 1", "1x", "9223372036854775808"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
  EXPECT_DOUBLE_EQ(*parse_real("-0.5e-3"), -0.5e-3);
  EXPECT_DOUBLE_EQ(*parse_real("+.5"), 0.5);
  for (const std::string text : {"", "nan", "inf", "-inf", "1e999", "0,5", "1.5mm", "+-1"}) {
    EXPECT_FALSE(parse_real(text)) << text;
  }
  EXPECT_EQ(*parse_key("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(*parse_key("0xFeed"), 0xfeedU);
  EXPECT_EQ(*parse_key("0XFEED"), 0xfeedU);
  for (const std::string text : {"", "-1", "0x", "18446744073709551616", "0x10000000000000000"}) {
    EXPECT_FALSE(parse_key(text)) << text;
  }
}

TEST(ParseFlag, knows_the_usual_words) {
  for (const std::string text : {"1", "yes", "TRUE", "On"}) EXPECT_TRUE(*parse_flag(text)) << text;
  for (const std::string text : {"0", "no", "False", "off"}) EXPECT_FALSE(*parse_flag(text)) << text;
  for (const std::string text : {"", "2", "y", "maybe"}) EXPECT_FALSE(parse_flag(text)) << text;
}

}  // namespace
}  // namespace cingulum
