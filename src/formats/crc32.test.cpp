#include "formats/crc32.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <vector>

namespace cingulum {
namespace crc32_tests {

TEST(Crc32, checksums_of_parts_join_to_that_of_the_whole) {
  constexpr std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(100'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all = bytes;
  const std::uint32_t whole = crc32(all);
  ASSERT_EQ(whole, ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{77}, std::size_t{65536}, bytes.size()}) {
    EXPECT_EQ(crc32_joined(crc32(all.first(first)), crc32(all.subspan(first)), bytes.size() - first), whole) << first;
  }
  // Many parts, empty ones among them.
  std::uint32_t joined = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(bytes.size() - at, random() % 700);
    joined = crc32_joined(joined, crc32(all.subspan(at, size)), size);
    at += size;
  }
  EXPECT_EQ(joined, whole);
}

TEST(Crc32, joining_agrees_with_zlib_for_parts_of_any_length) {
  constexpr std::uint64_t seed = 6;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto first = static_cast<std::uint32_t>(random());
    const auto second = static_cast<std::uint32_t>(random());
    const std::uint64_t length = random() >> (1 + random() % 63);  // up to 2^63
    ASSERT_EQ(crc32_joined(first, second, length), ::crc32_combine(first, second, static_cast<z_off_t>(length)))
        << first << ' ' << second << ' ' << length;
  }
}

}  // namespace crc32_tests
}  // namespace cingulum
