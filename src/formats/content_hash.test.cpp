#include "formats/content_hash.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/hash.hpp"
#include "formats/sidecar.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace content_hash_tests {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

TEST(ContentHash, the_blocks_of_a_large_file_are_hashed_in_order) {
  const TemporaryFolder folder;
  std::mt19937_64 random(11);
  std::string text(40 * mebibyte + 7, '\0');
  for (std::size_t i = 0; i + 8 <= text.size(); i += 8) {
    const std::uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, text.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // Around the ends of stripes, blocks and pieces.
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, mebibyte, 16 * mebibyte - 1, 16 * mebibyte, 16 * mebibyte + 1,
        16 * mebibyte + 63, 16 * mebibyte + 64, 16 * mebibyte + 65, 16 * mebibyte + 1023, 16 * mebibyte + 1024,
        16 * mebibyte + 1025, 16 * mebibyte + 1088, 16 * mebibyte + 1089, 23 * mebibyte, text.size()}) {
    folder.put("a", std::string_view(text).substr(0, size));
    ASSERT_OK_AND_ASSIGN(const ContentHash hash, hash_content(folder / "a", {}));
    EXPECT_EQ(hash.bytes, size);
    EXPECT_EQ(hash.hex, hash_hex(std::string_view(text).substr(0, size))) << size;
  }
}

TEST(ContentHash, cancelling_ends_it_and_no_thread_is_left) {
  const TemporaryFolder folder;
  folder.put("a", std::string(20 * mebibyte, 'x'));
  CancelSource source;
  source.cancel();
  const auto digest = digest_of_file(folder / "a", source.token());
  ASSERT_FALSE(digest);
  EXPECT_EQ(digest.error().kind(), ErrorKind::interrupted);
}

}  // namespace content_hash_tests
}  // namespace cingulum
