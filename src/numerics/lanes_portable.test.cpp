#include "numerics/lanes_portable.hpp"

#include <gtest/gtest.h>

namespace cingulum::numerics {
namespace {

using TestedLanes = PortableLanes;

// What lanes in the role of a warp offer besides.
TEST(PortableLanes, floats_that_are_not_negative_are_ordered_as_their_bits) {
  PortableLanes::Float values;
  for (std::uint32_t l = 0; l < 32; ++l) values.lane[l] = 0.25f * static_cast<float>(l % 7) - 1.0f;
  EXPECT_EQ(bits_float(PortableLanes::greatest_integer(PortableLanes::bits_of(values))), 0.5f);
  const PortableLanes::Word zero = PortableLanes::broadcast(0u);
  const PortableLanes::Word cut = PortableLanes::greater_integer(PortableLanes::bits_of(values), zero);
  for (std::uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(bits_float(cut.lane[l]), values.lane[l] > 0 ? values.lane[l] : 0.0f) << l;
  }
  EXPECT_EQ(PortableLanes::greatest_integer(PortableLanes::broadcast(float_bits(-0.0f))), 0x80000000u);
}

TEST(PortableLanes, signs_are_collected_first_highest) {
  PortableLanes::Word bits = PortableLanes::broadcast(0u);
  for (const float value : {-1.0f, 0.0f, 2.0f, -0x1p-149f}) {
    bits = PortableLanes::append_sign(bits, PortableLanes::broadcast(value));
  }
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(bits.lane[l], 0b1001u);
}

}  // namespace
}  // namespace cingulum::numerics

#define CGL_LANES_TEST(name) TEST(PortableLanes, name)
#include "numerics/lanes_test_body.hpp"
