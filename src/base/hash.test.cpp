#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash_blocks.hpp"

namespace cingulum {
namespace {

// The published values of XXH3-128 with seed 0.
TEST(Hash, equals_the_published_values) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex("a"), "a96faf705af16834e6c632b61e964e1f");
}

TEST(Hash, of_parts_equals_the_hash_of_the_whole) {
  const std::string text(10000, 'x');
  Hash128 hash;
  for (std::size_t i = 0; i < text.size(); i += 77) hash.add(std::string_view(text).substr(i, 77));
  EXPECT_EQ(hash.hex(), hash_hex(text));
  hash.add(std::string_view());
  EXPECT_EQ(hash.hex(), hash_hex(text));
  hash.add("y");
  EXPECT_NE(hash.hex(), hash_hex(text));
}

// Every length around the ends of stripes and blocks is tried, and the blocks are added up in any order.
TEST(HashBlocks, strung_together_are_the_hash_of_the_whole) {
  std::vector<std::byte> bytes(6 * hash_block_bytes);
  std::uint32_t state = 7;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  for (std::size_t size = least_block_hashed_bytes; size <= bytes.size(); size += size % 64 == 1 ? 62 : 1) {
    const auto content = std::span<const std::byte>(bytes).first(size);
    const std::size_t before_last = (size - 1) / hash_block_bytes;
    std::vector<HashBlockSums> sums(before_last);
    for (std::size_t i = before_last; i-- > 0;) {
      sum_hash_blocks(content.subspan(i * hash_block_bytes, hash_block_bytes), std::span(sums).subspan(i, 1));
    }
    HashChain chain;
    chain.add(std::span<const HashBlockSums>(sums).first(1));
    chain.add(std::span<const HashBlockSums>(sums).subspan(1));
    const std::size_t end = size - before_last * hash_block_bytes + hash_stripe_bytes;
    ASSERT_EQ(chain.hex(size, content.last(end)), hash_hex(content)) << size;
    ASSERT_EQ(chain.hex(size, content), hash_hex(content)) << size;
  }
}

}  // namespace
}  // namespace cingulum
