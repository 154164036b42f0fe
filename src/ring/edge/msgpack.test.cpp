#include "ring/edge/msgpack.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace cingulum::ring {
namespace {

std::vector<std::byte> written(const std::function<void(MsgpackWriter&)>& write) {
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  write(writer);
  return bytes;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// Expected bytes are those of Python's msgpack.packb.
TEST(msgpack, integers_take_the_shortest_form) {
  const std::vector<std::pair<std::int64_t, std::string>> cases = {
      {0, "00"},
      {127, "7f"},
      {128, "cc80"},
      {255, "ccff"},
      {256, "cd0100"},
      {65535, "cdffff"},
      {65536, "ce00010000"},
      {4294967295, "ceffffffff"},
      {4294967296, "cf0000000100000000"},
      {-1, "ff"},
      {-32, "e0"},
      {-33, "d0df"},
      {-128, "d080"},
      {-129, "d1ff7f"},
      {-32768, "d18000"},
      {-32769, "d2ffff7fff"},
      {-2147483648LL, "d280000000"},
      {-2147483649LL, "d3ffffffff7fffffff"},
      {std::numeric_limits<std::int64_t>::min(), "d38000000000000000"}};
  for (const auto& [value, expected] : cases) {
    const std::int64_t number = value;
    const auto bytes = written([&](MsgpackWriter& writer) { writer.integer(number); });
    EXPECT_EQ(hex(bytes), expected) << value;
    MsgpackReader reader(bytes);
    const auto read = reader.integer();
    ASSERT_TRUE(read.has_value()) << value;
    EXPECT_EQ(static_cast<std::int64_t>(read->bits), value);
    EXPECT_EQ(read->negative, value < 0);
    EXPECT_EQ(reader.remaining(), 0U);
  }
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.unsigned_integer(~std::uint64_t{0}); })),
            "cfffffffffffffffff");
}

TEST(msgpack, other_values_are_the_bytes_of_python) {
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.nil(); })), "c0");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.boolean(true); })), "c3");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.real(1.5); })), "cb3ff8000000000000");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.text("ab"); })), "a26162");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.array_header(3); })), "93");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.array_header(16); })), "dc0010");
  EXPECT_EQ(hex(written([](MsgpackWriter& writer) { writer.map_header(65536); })), "df00010000");
}

TEST(msgpack, lengths_at_the_ends_of_their_forms_read_back) {
  for (const std::size_t size : {0U, 1U, 31U, 32U, 255U, 256U, 65535U, 65536U}) {
    const std::string text(size, 'x');
    const auto bytes = written([&](MsgpackWriter& writer) {
      writer.text(text);
      writer.binary(std::as_bytes(std::span(text)));
    });
    MsgpackReader reader(bytes);
    const auto first = reader.text();
    ASSERT_TRUE(first.has_value()) << size;
    EXPECT_EQ(*first, text);
    const auto second = reader.binary();
    ASSERT_TRUE(second.has_value()) << size;
    EXPECT_EQ(second->size(), size);
    MsgpackReader stepper(bytes);
    EXPECT_TRUE(stepper.skip().has_value());
    EXPECT_TRUE(stepper.skip().has_value());
    EXPECT_EQ(stepper.remaining(), 0U);
  }
}

TEST(msgpack, every_cut_of_a_message_is_an_error_that_names_a_byte) {
  const auto bytes = written([](MsgpackWriter& writer) {
    writer.map_header(3);
    writer.text("number");
    writer.integer(-70000);
    writer.text("list");
    writer.array_header(2);
    writer.real(0.25);
    writer.boolean(false);
    writer.text("bytes");
    writer.binary(std::as_bytes(std::span("abcdefgh")));
  });
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    MsgpackReader reader{std::span(bytes).first(size)};
    const Status status = reader.skip();
    ASSERT_FALSE(status.has_value()) << size;
    EXPECT_EQ(status.error().kind(), ErrorKind::corrupt);
    EXPECT_EQ(status.error().message().substr(0, 5), "byte ") << status.error().message();
  }
}

TEST(msgpack, counts_beyond_the_bytes_that_are_left_are_refused_at_once) {
  const std::vector<std::vector<unsigned char>> damaged = {
      {0xdd, 0xff, 0xff, 0xff, 0xff}, {0xdf, 0xff, 0xff, 0xff, 0xff}, {0xc6, 0xff, 0xff, 0xff, 0xff},
      {0xdb, 0x7f, 0xff, 0xff, 0xff}, {0xc9, 0xff, 0xff, 0xff, 0xff}, {0xc1}};
  for (const auto& bytes : damaged) {
    MsgpackReader reader{std::as_bytes(std::span(bytes))};
    EXPECT_FALSE(reader.skip().has_value()) << static_cast<unsigned>(bytes[0]);
  }
}

TEST(msgpack, deep_nesting_is_stepped_over_without_recursion) {
  std::vector<std::byte> bytes(2000000, std::byte{0x91});
  bytes.back() = std::byte{0xc0};
  MsgpackReader reader(bytes);
  EXPECT_TRUE(reader.skip().has_value());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(msgpack, a_text_must_be_utf8) {
  const std::vector<std::pair<std::string, bool>> cases = {
      {"gr\xc3\xbc\xc3\x9f", true}, {"\xe2\x82\xac", true},  {"\xf0\x9f\xa7\xa0", true},  {"\xc3", false},
      {"\xc0\xaf", false},          {"\xed\xa0\x80", false}, {"\xf4\x90\x80\x80", false}, {"\xff", false},
      {"\xe0\x80\xaf", false},      {"a\x80", false}};
  for (const auto& [text, valid] : cases) {
    const std::string& content = text;
    const auto bytes = written([&](MsgpackWriter& writer) { writer.text(content); });
    MsgpackReader reader(bytes);
    EXPECT_EQ(reader.text().has_value(), valid) << hex(bytes);
  }
}

TEST(msgpack, reals_are_read_from_every_number) {
  const auto real_of = [](std::vector<unsigned char> bytes) {
    MsgpackReader reader{std::as_bytes(std::span(bytes))};
    return reader.real().value();
  };
  EXPECT_EQ(real_of({0x05}), 5.0);
  EXPECT_EQ(real_of({0xd0, 0x80}), -128.0);
  EXPECT_EQ(real_of({0xca, 0x3f, 0xc0, 0x00, 0x00}), 1.5);
  EXPECT_EQ(real_of({0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), 18446744073709551616.0);
}

}  // namespace
}  // namespace cingulum::ring
