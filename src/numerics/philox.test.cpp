#include "numerics/philox.hpp"

#include <gtest/gtest.h>

namespace cingulum::numerics {
namespace {

void expect_block(PhiloxBlock counter, PhiloxKey key, PhiloxBlock expected) {
  const PhiloxBlock block = philox4x32_10(counter, key);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], expected.word[i]) << "word " << i;
}

// The file kat_vectors of the Random123 distribution, lines "philox4x32 10".
TEST(Philox, reproduces_the_published_known_answers) {
  expect_block({{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect_block({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, {0xffffffff, 0xffffffff},
               {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {0xa4093822, 0x299f31d0},
               {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, the_key_holds_the_low_word_of_the_seed_first) {
  const PhiloxKey key = philox_key(0x0123456789abcdefu);
  EXPECT_EQ(key.low, 0x89abcdefu);
  EXPECT_EQ(key.high, 0x01234567u);
}

TEST(Philox, high_product_is_the_upper_word) {
  EXPECT_EQ(high_product(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EXPECT_EQ(high_product(0x80000000u, 2u), 1u);
  EXPECT_EQ(high_product(0xffffu, 0x10001u), 0u);
  EXPECT_EQ(high_product(0x10000u, 0x10000u), 1u);
}

}  // namespace
}  // namespace cingulum::numerics
