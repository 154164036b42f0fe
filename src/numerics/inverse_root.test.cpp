#include "numerics/inverse_root.hpp"

#include <gtest/gtest.h>

namespace cingulum::numerics {
namespace {

TEST(InverseRoot, has_the_bits_of_a_root_and_a_division_around_one) {
  for (std::uint32_t bits = 0x3f800000u - 5000u; bits <= 0x3f800000u + 5000u; ++bits) {
    const float x = bits_float(bits);
    ASSERT_EQ(float_bits(inverse_root(x)), float_bits(1.0f / root(x))) << bits;
  }
}

TEST(InverseRoot, has_the_bits_of_a_root_and_a_division_elsewhere) {
  for (std::uint32_t i = 0; i < 100000u; ++i) {
    const float x = bits_float(0x20000000u + 9973u * i);
    ASSERT_EQ(float_bits(inverse_root(x)), float_bits(1.0f / root(x))) << x;
  }
}

}  // namespace
}  // namespace cingulum::numerics
