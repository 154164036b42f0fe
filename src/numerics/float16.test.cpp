#include "numerics/float16.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/error_in_ulp.hpp"
#include "support/long_tests.hpp"

namespace cingulum::numerics {
namespace {

// The compiler's own type is the independent truth.
__extension__ using CompilerFloat16 = _Float16;

std::uint16_t compiler_float_to_float16(float value) {
  return __builtin_bit_cast(std::uint16_t, static_cast<CompilerFloat16>(value));
}

float compiler_float16_to_float(std::uint16_t float16) {
  return static_cast<float>(__builtin_bit_cast(CompilerFloat16, float16));
}

bool float16_is_nan(std::uint16_t float16) {
  return (float16 & 0x7fffu) > 0x7c00u;
}

// 1 where the two disagree; any two NaN agree.
double disagreement(float value) {
  const std::uint16_t expected = compiler_float_to_float16(value);
  const std::uint16_t computed = float_to_float16(value);
  if (is_nan(value)) return float16_is_nan(computed) ? 0 : 1;
  return expected == computed ? 0 : 1;
}

void expect_agreement_with_stride(std::uint64_t stride) {
  const auto found = testing::largest_error(
      std::uint64_t{1} << 32, stride, [](std::uint64_t i) { return bits_float(static_cast<std::uint32_t>(i)); },
      disagreement);
  EXPECT_EQ(found.ulp, 0) << "at bits " << std::hex << float_bits(found.argument);
}

TEST(Float16, every_float16_becomes_the_float_that_the_compiler_gives) {
  for (std::uint32_t bits = 0; bits < 65536u; ++bits) {
    const auto float16 = static_cast<std::uint16_t>(bits);
    if (float16_is_nan(float16)) {
      ASSERT_TRUE(is_nan(float16_to_float(float16))) << bits;
    } else {
      ASSERT_EQ(float_bits(float16_to_float(float16)), float_bits(compiler_float16_to_float(float16))) << bits;
    }
  }
}

TEST(Float16, every_float16_survives_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 65536u; ++bits) {
    const auto float16 = static_cast<std::uint16_t>(bits);
    if (!float16_is_nan(float16)) {
      ASSERT_EQ(float_to_float16(float16_to_float(float16)), float16);
    }
  }
}

TEST(Float16, a_nan_keeps_its_sign_and_payload_and_becomes_quiet_on_the_way_back) {
  for (const std::uint32_t sign : {0u, 0x8000u}) {
    for (std::uint32_t payload = 1; payload < 0x400u; ++payload) {
      const auto float16 = static_cast<std::uint16_t>(sign | 0x7c00u | payload);
      const std::uint32_t bits = float16_to_float_bits(float16);
      ASSERT_EQ(bits, (sign << 16) | 0x7f800000u | (payload << 13));
      ASSERT_EQ(float_bits_to_float16(bits), std::uint32_t{float16} | 0x200u);
    }
  }
}

TEST(Float16, floats_become_the_float16_that_the_compiler_gives) {
  expect_agreement_with_stride(4099);
}

TEST(Float16, floats_between_two_neighbouring_float16_round_to_the_nearest_even) {
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const float low = float16_to_float(static_cast<std::uint16_t>(bits));
    // Above the largest finite float16 the rounding goes on as if 65536 were one.
    const float high = bits == 0x7bffu ? 65536.0f : float16_to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = 0.5f * (low + high);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float_to_float16(middle), even);
    ASSERT_EQ(float_to_float16(bits_float(float_bits(middle) - 1)), bits);
    ASSERT_EQ(float_to_float16(bits_float(float_bits(middle) + 1)), bits + 1);
  }
}

class Float16Exhaustive : public test::LongTest {};

TEST_F(Float16Exhaustive, all_floats_exhaustive) {
  expect_agreement_with_stride(1);
}

}  // namespace
}  // namespace cingulum::numerics
