#include "numerics/portable.hpp"

#include <gtest/gtest.h>

namespace cingulum::numerics {
namespace {

struct TwoNumbers {
  double first;
  double second;
};

// The smallest input of GCC 12.2's fault: its SLP vectoriser left both roundings out (cmake/Flags.cmake turns it off).
[[gnu::noinline]] TwoNumbers as_float32_holds(double first, double second) {
  return {static_cast<double>(static_cast<float>(first)), static_cast<double>(static_cast<float>(second))};
}

TEST(Portable, neighbouring_doubles_are_rounded_on_their_way_through_float32) {
  const volatile double tenth = 0.1;
  const volatile double third = 1.0 / 3.0;
  const TwoNumbers rounded = as_float32_holds(tenth, third);
  EXPECT_EQ(rounded.first, 0x1.99999ap-4);
  EXPECT_EQ(rounded.second, 0x1.555556p-2);
}

TEST(Portable, the_high_word_of_a_product_is_exact) {
  EXPECT_EQ(high_product(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EXPECT_EQ(high_product(0x80000000u, 2u), 1u);
  EXPECT_EQ(high_product(0x7fffffffu, 2u), 0u);
}

}  // namespace
}  // namespace cingulum::numerics
