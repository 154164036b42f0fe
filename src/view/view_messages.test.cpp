#include "view/view_messages.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace cingulum::view::view_messages_tests {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

TEST(view_messages, a_request_is_read_as_it_was_written) {
  const auto bytes = make_message(MessageKind::track, 0x01020304, "{}");
  const std::string expected("CGV1\x01\x00\x00\x00\x04\x03\x02\x01{}", 14);
  EXPECT_EQ(bytes, bytes_of(expected));
  const auto read = parse_client_message(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, MessageKind::track);
  EXPECT_EQ(read->request, 0x01020304u);
  EXPECT_EQ(read->body, "{}");
  EXPECT_EQ(parse_client_message(make_message(MessageKind::cancel, 7, ""))->kind, MessageKind::cancel);
}

TEST(view_messages, what_is_no_request_is_refused) {
  const std::string good("CGV1\x01\x00\x00\x00\x01\x00\x00\x00{}", 14);
  for (std::size_t size = 0; size < 12; ++size) EXPECT_FALSE(parse_client_message(bytes_of(good.substr(0, size))));
  for (const std::size_t changed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    std::string bad = good;
    bad[changed] = static_cast<char>(bad[changed] ^ 0x40);
    EXPECT_FALSE(parse_client_message(bytes_of(bad))) << changed;
  }
  for (const MessageKind kind : {MessageKind::batch, MessageKind::end, MessageKind::error, MessageKind{0}}) {
    EXPECT_FALSE(parse_client_message(make_message(kind, 1, "")));
  }
  EXPECT_FALSE(parse_client_message(make_message(MessageKind::cancel, 1, "x")));
  EXPECT_FALSE(parse_client_message(make_message(MessageKind::track, 1, std::string(most_request_bytes + 1, ' '))));
}

TEST(view_messages, members_become_the_texts_of_a_command) {
  const auto asked = parse_track_request(
      R"({"dg":"prob","sphere":[1,-2.5,3e1,4],"nseeds":200,"max-angle":30.1,"one-sided":true,"rk4":false,)"
      R"("seed":18446744073709551615,"include":[[0,0,0,5],[1,2,3,4]],"exclude":[]})");
  ASSERT_TRUE(asked) << asked.error().message();
  const std::vector<ArgumentText> expected = {{"dg", {"prob"}, false},
                                              {"sphere", {"1,-2.5,30,4"}, false},
                                              {"nseeds", {"200"}, false},
                                              {"max-angle", {"30.1"}, false},
                                              {"one-sided", {}, true},
                                              {"seed", {"18446744073709551615"}, false},
                                              {"include", {"0,0,0,5", "1,2,3,4"}, false}};
  EXPECT_EQ(*asked, expected);
  EXPECT_EQ(parse_track_request(track_request_json(*asked)).value(), expected);
}

TEST(view_messages, requests_that_no_command_could_have_are_refused) {
  for (const char* const text : {"",
                                 "1",
                                 "[]",
                                 "null",
                                 "{",
                                 "{\"a\":null}",
                                 "{\"a\":{}}",
                                 "{\"\":1}",
                                 "{\"-a\":1}",
                                 "{\"a b\":1}",
                                 "{\"A\":1}",
                                 "{\"a\":\"\"}",
                                 "{\"a\":\"\\u0000\"}",
                                 "{\"a\":\"x\\ny\"}",
                                 "{\"a\":\"\\u00e9\"}",
                                 "{\"a\":[1,2,3]}",
                                 "{\"a\":[1,2,3,4,5]}",
                                 "{\"a\":[1,2,3,\"4\"]}",
                                 "{\"a\":[[1,2,3,4],5]}",
                                 "{\"a\":[[[1,2,3,4]]]}",
                                 "{\"a\":1e999}",
                                 "{\"a\":NaN}",
                                 "{\"a\":1}x",
                                 "\xff"}) {
    EXPECT_FALSE(parse_track_request(text)) << text;
  }
  EXPECT_FALSE(parse_track_request("{\"a\":\"" + std::string(257, 'x') + "\"}"));
  EXPECT_TRUE(parse_track_request("{\"a\":\"" + std::string(256, 'x') + "\"}"));
  EXPECT_FALSE(parse_track_request(std::string(30000, '[')));
  std::string many = "{";
  for (int i = 0; i < 65; ++i) many += (i > 0 ? ",\"a" : "\"a") + std::to_string(i) + "\":1";
  EXPECT_FALSE(parse_track_request(many + "}"));
}

TEST(view_messages, a_batch_has_the_layout_of_the_page) {
  const std::vector<std::uint64_t> offsets = {0, 2, 3};
  const std::vector<float> positions = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<std::uint32_t> seeds = {5, 9};
  const std::vector<std::uint8_t> reasons = {1, 2, 3, 4};
  const auto message = make_batch_message(77, {.offsets = offsets,
                                               .positions = positions,
                                               .seed_index = std::as_bytes(std::span(seeds)),
                                               .end_reasons = std::as_bytes(std::span(reasons))});
  ASSERT_TRUE(message);
  ASSERT_EQ(message->size(), 12u + 8 + 12 + 36 + 8 + 4);
  std::vector<std::uint32_t> words(message->size() / 4);
  std::memcpy(words.data(), message->data(), message->size());
  EXPECT_EQ(words[1], 16u);
  EXPECT_EQ(words[2], 77u);
  EXPECT_EQ(words[3], 2u);
  EXPECT_EQ(words[4], 3u);
  EXPECT_EQ(words[5], 0u);
  EXPECT_EQ(words[7], 3u);
  EXPECT_EQ(std::memcmp(&words[8], positions.data(), 36), 0);
  EXPECT_EQ(words[17], 5u);
  EXPECT_EQ(words[18], 9u);
  EXPECT_EQ(words[19], 0x04030201u);
  // One streamline: two bytes of reasons, padded.
  const auto one = make_batch_message(1, {.offsets = std::span(offsets).first(2),
                                          .positions = std::span(positions).first(6),
                                          .seed_index = std::as_bytes(std::span(seeds)).first(4),
                                          .end_reasons = std::as_bytes(std::span(reasons)).first(2)});
  EXPECT_EQ(one->size(), 12u + 8 + 8 + 24 + 4 + 4);
  EXPECT_EQ(one->back(), std::byte{0});
}

}  // namespace
}  // namespace cingulum::view::view_messages_tests
