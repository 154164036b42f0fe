#include "base/hash.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cingulum
