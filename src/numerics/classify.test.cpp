#include "numerics/classify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace cingulum::numerics::classify_tests {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST(Classify, agrees_with_fpclassify_on_a_walk_over_all_bit_patterns) {
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += 65521) {
    const float x = bits_float(static_cast<std::uint32_t>(i));
    const int kind = std::fpclassify(x);
    ASSERT_EQ(is_nan(x), kind == FP_NAN) << i;
    ASSERT_EQ(is_infinite(x), kind == FP_INFINITE) << i;
    ASSERT_EQ(is_finite(x), kind != FP_NAN && kind != FP_INFINITE) << i;
    ASSERT_EQ(is_subnormal(x), kind == FP_SUBNORMAL) << i;
  }
}

TEST(Classify, tells_the_neighbours_of_every_border_apart) {
  EXPECT_FALSE(is_subnormal(0.0f));
  EXPECT_FALSE(is_subnormal(-0.0f));
  EXPECT_TRUE(is_subnormal(bits_float(1u)));
  EXPECT_TRUE(is_subnormal(bits_float(smallest_normal_bits - 1u)));
  EXPECT_FALSE(is_subnormal(bits_float(smallest_normal_bits)));
  EXPECT_TRUE(is_finite(bits_float(largest_finite_bits)));
  EXPECT_TRUE(is_infinite(-infinity));
  EXPECT_FALSE(is_nan(infinity));
  EXPECT_TRUE(is_nan(bits_float(infinity_bits + 1u)));
  EXPECT_TRUE(is_nan(-not_a_number));
}

TEST(Classify, conversion_to_int32_truncates_and_saturates) {
  EXPECT_EQ(float_to_int32(0.0f), 0);
  EXPECT_EQ(float_to_int32(-0.99f), 0);
  EXPECT_EQ(float_to_int32(-1.5f), -1);
  EXPECT_EQ(float_to_int32(16777216.0f), 16777216);
  EXPECT_EQ(float_to_int32(2147483520.0f), 2147483520);
  EXPECT_EQ(float_to_int32(2147483648.0f), INT32_MAX);
  EXPECT_EQ(float_to_int32(-2147483520.0f), -2147483520);
  EXPECT_EQ(float_to_int32(-2147483648.0f), INT32_MIN);
  EXPECT_EQ(float_to_int32(-3e9f), INT32_MIN);
  EXPECT_EQ(float_to_int32(infinity), INT32_MAX);
  EXPECT_EQ(float_to_int32(-infinity), INT32_MIN);
  EXPECT_EQ(float_to_int32(not_a_number), 0);
  EXPECT_EQ(float_to_int32(-not_a_number), 0);
}

TEST(Classify, conversion_to_uint32_truncates_and_saturates) {
  EXPECT_EQ(float_to_uint32(0.99f), 0u);
  EXPECT_EQ(float_to_uint32(-0.0f), 0u);
  EXPECT_EQ(float_to_uint32(-5.0f), 0u);
  EXPECT_EQ(float_to_uint32(4294967040.0f), 4294967040u);
  EXPECT_EQ(float_to_uint32(4294967296.0f), UINT32_MAX);
  EXPECT_EQ(float_to_uint32(infinity), UINT32_MAX);
  EXPECT_EQ(float_to_uint32(-infinity), 0u);
  EXPECT_EQ(float_to_uint32(not_a_number), 0u);
}

TEST(Classify, values_below_two_to_minus_40_of_the_unit_become_positive_zero) {
  EXPECT_EQ(flush_tiny(0x1p-40f, 1.0f), 0x1p-40f);
  EXPECT_EQ(float_bits(flush_tiny(0x1.fffffep-41f, 1.0f)), 0u);
  EXPECT_EQ(float_bits(flush_tiny(-0x1.fffffep-41f, 1.0f)), 0u);
  EXPECT_EQ(float_bits(flush_tiny(-0.0f, 1.0f)), 0u);
  EXPECT_EQ(float_bits(flush_tiny(bits_float(1u), 1.0f)), 0u);
  EXPECT_EQ(flush_tiny(-0x1p-30f, 1024.0f), -0x1p-30f);
  EXPECT_EQ(float_bits(flush_tiny(-0x1p-31f, 1024.0f)), 0u);
  EXPECT_EQ(flush_tiny(infinity, 1.0f), infinity);
  EXPECT_TRUE(is_nan(flush_tiny(not_a_number, 1.0f)));
}

TEST(Classify, magnitudes_are_clamped_with_their_sign) {
  EXPECT_EQ(clamp_magnitude(3.0f, 2.0f), 2.0f);
  EXPECT_EQ(clamp_magnitude(-3.0f, 2.0f), -2.0f);
  EXPECT_EQ(clamp_magnitude(-1.5f, 2.0f), -1.5f);
  EXPECT_EQ(clamp_magnitude(-not_a_number, 2.0f), -2.0f);
}

}  // namespace
}  // namespace cingulum::numerics::classify_tests
