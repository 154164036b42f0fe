#include "numerics/elementary64.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "numerics/error_in_ulp.hpp"
#include "support/long_tests.hpp"

// long double is the truth here: it must be wider than double, as it is on x86-64.
static_assert(std::numeric_limits<long double>::digits >= 64);

namespace cingulum::numerics::elementary64_tests {
namespace {

using testing::error_in_ulp;
using testing::largest_error;
using testing::LargestError;

constexpr std::uint64_t quick_count = 1u << 20;
constexpr std::uint64_t long_count = 1u << 29;

// Weyl's sequence of the golden ratio: fills [0, 1) evenly and hits no lattice of the doubles.
double evenly_spread(std::uint64_t i) {
  return static_cast<double>((i * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}

// Even i: spread over [-largest, largest]. Odd i: over the exponents, from `largest` downwards.
struct Spread {
  double largest;
  double operator()(std::uint64_t i) const {
    const double u = 2 * evenly_spread(i) - 1;
    return i % 2 == 0 ? u * largest : std::ldexp(u * largest, -static_cast<int>(i / 2 % 60));
  }
};

LargestError<double> sine_error(std::uint64_t count) {
  return largest_error(count, 1, Spread{256.0},
                       [](double x) { return error_in_ulp(sine(x), std::sin(static_cast<long double>(x))); });
}

LargestError<double> cosine_error(std::uint64_t count) {
  return largest_error(count, 1, Spread{256.0},
                       [](double x) { return error_in_ulp(cosine(x), std::cos(static_cast<long double>(x))); });
}

LargestError<double> arc_cosine_error(std::uint64_t count) {
  // Every third argument lies close to 1 or -1, where the result is small or nearly pi.
  const auto argument = [](std::uint64_t i) {
    const double x = Spread{1.0}(i);
    return i % 3 == 0 ? (x < 0 ? -1.0 - x * 0x1p-10 : 1.0 - x * 0x1p-10) : x;
  };
  return largest_error(count, 1, argument,
                       [](double x) { return error_in_ulp(arc_cosine(x), std::acos(static_cast<long double>(x))); });
}

LargestError<double> logarithm_error(std::uint64_t count) {
  // Even i: all exponents. Odd i: close to 1, where the result is small.
  const auto argument = [](std::uint64_t i) {
    const double u = evenly_spread(i);
    return i % 2 == 0 ? std::ldexp(1.0 + u, static_cast<int>(i / 2 % 2046) - 1022) : 0.5 + u;
  };
  return largest_error(count, 1, argument,
                       [](double x) { return error_in_ulp(logarithm(x), std::log(static_cast<long double>(x))); });
}

LargestError<double> exponential_error(std::uint64_t count) {
  return largest_error(count, 1, Spread{708.0},
                       [](double x) { return error_in_ulp(exponential(x), std::exp(static_cast<long double>(x))); });
}

void expect_below(LargestError<double> found, double bound) {
  std::printf("largest error %.4f ulp at %a\n", found.ulp, found.argument);
  EXPECT_LT(found.ulp, bound) << "at " << found.argument;
}

constexpr double bound = 1.0;

TEST(Elementary64, sine_stays_within_its_bound) {
  expect_below(sine_error(quick_count), bound);
}
TEST(Elementary64, cosine_stays_within_its_bound) {
  expect_below(cosine_error(quick_count), bound);
}
TEST(Elementary64, arc_cosine_stays_within_its_bound) {
  expect_below(arc_cosine_error(quick_count), bound);
}
TEST(Elementary64, logarithm_stays_within_its_bound) {
  expect_below(logarithm_error(quick_count), bound);
}
TEST(Elementary64, exponential_stays_within_its_bound) {
  expect_below(exponential_error(quick_count), bound);
}

// 2^64 arguments cannot be tried; these are 2^29 spread ones.
class Elementary64Exhaustive : public test::LongTest {};

TEST_F(Elementary64Exhaustive, sine_exhaustive) {
  expect_below(sine_error(long_count), bound);
}
TEST_F(Elementary64Exhaustive, cosine_exhaustive) {
  expect_below(cosine_error(long_count), bound);
}
TEST_F(Elementary64Exhaustive, arc_cosine_exhaustive) {
  expect_below(arc_cosine_error(long_count), bound);
}
TEST_F(Elementary64Exhaustive, logarithm_exhaustive) {
  expect_below(logarithm_error(long_count), bound);
}
TEST_F(Elementary64Exhaustive, exponential_exhaustive) {
  expect_below(exponential_error(long_count), bound);
}

TEST(Elementary64, special_arguments_give_what_the_float32_functions_give) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  constexpr double largest = std::numeric_limits<double>::max();
  constexpr double smallest = std::numeric_limits<double>::min();
  for (const double x : {257.0, 1e300, infinity, not_a_number}) {
    EXPECT_EQ(sine(-x), sine(-256.0));
    EXPECT_EQ(cosine(x), cosine(256.0));
    EXPECT_EQ(arc_cosine(x), 0.0);
    EXPECT_EQ(arc_cosine(-x), 3.14159265358979323846);
  }
  for (const double x : {0.0, -0.0, 1e-310, -1.0, -infinity, -not_a_number}) {
    EXPECT_EQ(logarithm(x), logarithm(smallest));
  }
  for (const double x : {infinity, not_a_number}) EXPECT_EQ(logarithm(x), logarithm(largest));
  for (const double x : {709.8, infinity, not_a_number}) {
    EXPECT_EQ(exponential(x), largest);
    EXPECT_EQ(float_bits(exponential(-x)), 0u);
  }
  EXPECT_EQ(float_bits(sine(-0.0)), sign_bit64);
  EXPECT_EQ(float_bits(logarithm(1.0)), 0u);
}

}  // namespace
}  // namespace cingulum::numerics::elementary64_tests
