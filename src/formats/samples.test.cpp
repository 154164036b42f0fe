#include "formats/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace cingulum {
namespace {

template <class Stored>
std::vector<Stored> encode(const std::vector<double>& values, double slope = 1, double intercept = 0) {
  std::vector<Stored> stored(values.size());
  encode_samples({element_type_of<Stored>(), false, slope, intercept}, std::span<const double>(values),
                 std::as_writable_bytes(std::span(stored)));
  return stored;
}

// One value at a time, by the standard library.
template <class Stored>
Stored expected_of(double value) {
  if (std::isnan(value)) return 0;
  const double whole = std::nearbyint(value);
  if (whole <= static_cast<double>(std::numeric_limits<Stored>::lowest())) return std::numeric_limits<Stored>::lowest();
  if (whole >= static_cast<double>(std::numeric_limits<Stored>::max())) return std::numeric_limits<Stored>::max();
  return static_cast<Stored>(whole);
}

template <class Stored>
class Integers : public ::testing::Test {};
using IntegerTypes = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                      std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, are_rounded_to_even_and_clamped) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr auto highest = static_cast<double>(std::numeric_limits<TypeParam>::max());
  constexpr auto lowest = static_cast<double>(std::numeric_limits<TypeParam>::lowest());
  std::vector<double> values = {0,
                                -0.0,
                                0.5,
                                1.5,
                                2.5,
                                -0.5,
                                -1.5,
                                0.49999999999999994,
                                highest,
                                highest + 0.5,
                                highest - 0.5,
                                highest + 1,
                                lowest,
                                lowest - 0.5,
                                lowest + 0.5,
                                lowest - 1,
                                1e300,
                                -1e300,
                                infinity,
                                -infinity,
                                std::numeric_limits<double>::quiet_NaN(),
                                4503599627370495.5,
                                -4503599627370495.5,
                                9007199254740993.0};
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) values.push_back(std::bit_cast<double>(random()));
  std::uniform_real_distribution<double> uniform(lowest * 0.6, highest * 0.6);
  for (int i = 0; i < 1000; ++i) values.push_back(uniform(random));
  const auto stored = encode<TypeParam>(values);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(stored[i], expected_of<TypeParam>(values[i])) << values[i];
}

TYPED_TEST(Integers, come_back_from_either_byte_order_with_slope_and_intercept) {
  std::mt19937_64 random(6);
  std::vector<TypeParam> stored(77);
  for (TypeParam& value : stored) value = static_cast<TypeParam>(random());
  std::vector<TypeParam> swapped = stored;
  for (TypeParam& value : swapped) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(TypeParam)>>(value);
    std::reverse(bytes.begin(), bytes.end());
    value = std::bit_cast<TypeParam>(bytes);
  }
  std::vector<double> wide(77), wide_swapped(77);
  std::vector<float> single(77);
  SampleFormat format{element_type_of<TypeParam>(), false, 0.3, -7};
  decode_samples(format, std::as_bytes(std::span(stored)), std::span(wide));
  decode_samples(format, std::as_bytes(std::span(stored)), std::span(single));
  format.swapped = true;
  decode_samples(format, std::as_bytes(std::span(swapped)), std::span(wide_swapped));
  for (std::size_t i = 0; i < 77; ++i) {
    const double product = static_cast<double>(stored[i]) * 0.3;
    EXPECT_EQ(wide[i], product + -7);
    EXPECT_EQ(single[i], static_cast<float>(product + -7));
  }
  EXPECT_EQ(wide, wide_swapped);
}

TEST(Samples, floating_numbers_keep_their_bits) {
  const std::vector<double> values = {0.1, -0.0, 1e300, std::numeric_limits<double>::infinity(), 5e-324};
  EXPECT_EQ(std::memcmp(encode<double>(values).data(), values.data(), values.size() * sizeof(double)), 0);
  const auto single = encode<float>(values);
  EXPECT_EQ(single[0], 0.1F);
  EXPECT_TRUE(std::signbit(single[1]));
  EXPECT_TRUE(std::isinf(single[2]));
}

}  // namespace
}  // namespace cingulum
