#include "runs/background_hash.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.hpp"

namespace cingulum {
namespace {

TEST(background_hash, a_hash_is_that_of_the_numbers_or_the_one_that_is_known) {
  const std::vector<double> numbers = {1, 2, 3, 4, 5, 6};
  const std::vector<float> rounded(numbers.begin(), numbers.end());
  const BackgroundHash made(VolumeArray(numbers.data(), element_type_of<double>(), {3, 1, 1, 2}, {1, 3, 3, 3}));
  EXPECT_EQ(made.hex().value(), hash_hex(std::as_bytes(std::span(rounded))));
  EXPECT_EQ(made.hex().value(), made.hex().value()) << "asked twice";
  EXPECT_EQ(BackgroundHash("0a1b").hex().value(), "0a1b");
}

// A terabyte, of one number that all places share: hashing it takes minutes.
TEST(background_hash, one_that_is_not_wanted_any_more_does_not_keep_its_owner_waiting) {
  const double number = 1;
  const VolumeArray numbers(&number, element_type_of<double>(), {1 << 12, 1 << 12, 1 << 12, 4}, {0, 0, 0, 0});
  const BackgroundHash hash(numbers);
  CancelSource source;
  source.cancel();
  const auto hex = hash.hex(source.token());
  ASSERT_FALSE(hex);
  EXPECT_EQ(hex.error().kind(), ErrorKind::interrupted);
}

}  // namespace
}  // namespace cingulum
