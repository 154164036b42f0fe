#include "numerics/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "numerics/error_in_ulp.hpp"
#include "support/long_tests.hpp"

namespace cingulum::numerics::elementary_tests {
namespace {

using testing::error_in_ulp;
using testing::largest_error;
using testing::LargestError;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// An odd prime: successive arguments share no low bits.
constexpr std::uint64_t quick_stride = 1009;

// Magnitudes of both signs: even i positive, odd i negative, from zero up to `largest` inclusive.
struct SignedUpTo {
  float largest;
  std::uint64_t end() const { return 2 * (std::uint64_t{float_bits(largest)} + 1); }
  float operator()(std::uint64_t i) const {
    return bits_float(static_cast<std::uint32_t>(i >> 1) | (static_cast<std::uint32_t>(i & 1) << 31));
  }
};

struct PositiveNormals {
  std::uint64_t end() const { return infinity_bits - smallest_normal_bits; }
  float operator()(std::uint64_t i) const { return bits_float(smallest_normal_bits + static_cast<std::uint32_t>(i)); }
};

LargestError<float> sine_error(std::uint64_t stride) {
  const SignedUpTo domain{largest_angle};
  return largest_error(domain.end(), stride, domain,
                       [](float x) { return error_in_ulp(sine(x), std::sin(static_cast<double>(x))); });
}

LargestError<float> cosine_error(std::uint64_t stride) {
  const SignedUpTo domain{largest_angle};
  return largest_error(domain.end(), stride, domain,
                       [](float x) { return error_in_ulp(cosine(x), std::cos(static_cast<double>(x))); });
}

LargestError<float> arc_cosine_error(std::uint64_t stride) {
  const SignedUpTo domain{1.0f};
  return largest_error(domain.end(), stride, domain, [](float x) {
    const double truth = std::acos(static_cast<double>(x));
    return truth == 0 ? std::abs(static_cast<double>(arc_cosine(x))) : error_in_ulp(arc_cosine(x), truth);
  });
}

LargestError<float> logarithm_error(std::uint64_t stride) {
  const PositiveNormals domain;
  return largest_error(domain.end(), stride, domain, [](float x) {
    const double truth = std::log(static_cast<double>(x));
    return truth == 0 ? std::abs(static_cast<double>(logarithm(x))) : error_in_ulp(logarithm(x), truth);
  });
}

// Where the true value is a normal number.
LargestError<float> exponential_error(std::uint64_t stride) {
  const SignedUpTo domain{89.0f};
  return largest_error(domain.end(), stride, domain, [](float x) {
    const double truth = std::exp(static_cast<double>(x));
    const bool normal = truth >= 0x1p-126 && truth <= 0x1.fffffep127;
    return normal ? error_in_ulp(exponential(x), truth) : 0.0;
  });
}

void expect_below(LargestError<float> found, double bound) {
  std::printf("largest error %.4f ulp at %a\n", found.ulp, static_cast<double>(found.argument));
  EXPECT_LT(found.ulp, bound) << "at " << found.argument;
}

constexpr double sine_bound = 1.0;
constexpr double cosine_bound = 1.0;
constexpr double arc_cosine_bound = 1.0;
constexpr double logarithm_bound = 1.0;
constexpr double exponential_bound = 1.0;

TEST(Elementary, sine_stays_within_its_bound) {
  expect_below(sine_error(quick_stride), sine_bound);
}
TEST(Elementary, cosine_stays_within_its_bound) {
  expect_below(cosine_error(quick_stride), cosine_bound);
}
TEST(Elementary, arc_cosine_stays_within_its_bound) {
  expect_below(arc_cosine_error(quick_stride), arc_cosine_bound);
}
TEST(Elementary, logarithm_stays_within_its_bound) {
  expect_below(logarithm_error(quick_stride), logarithm_bound);
}
TEST(Elementary, exponential_stays_within_its_bound) {
  expect_below(exponential_error(quick_stride), exponential_bound);
}

class ElementaryExhaustive : public test::LongTest {};

TEST_F(ElementaryExhaustive, sine_exhaustive) {
  expect_below(sine_error(1), sine_bound);
}
TEST_F(ElementaryExhaustive, cosine_exhaustive) {
  expect_below(cosine_error(1), cosine_bound);
}
TEST_F(ElementaryExhaustive, arc_cosine_exhaustive) {
  expect_below(arc_cosine_error(1), arc_cosine_bound);
}
TEST_F(ElementaryExhaustive, logarithm_exhaustive) {
  expect_below(logarithm_error(1), logarithm_bound);
}
TEST_F(ElementaryExhaustive, exponential_exhaustive) {
  expect_below(exponential_error(1), exponential_bound);
}

TEST(Elementary, sine_and_cosine_together_have_the_bits_of_each_alone) {
  const SignedUpTo domain{300.0f};
  for (std::uint64_t i = 0; i < domain.end(); i += 10007) {
    const float x = domain(i);
    const SineCosine<float> both = sine_cosine(x);
    ASSERT_EQ(float_bits(both.sine), float_bits(sine(x))) << x;
    ASSERT_EQ(float_bits(both.cosine), float_bits(cosine(x))) << x;
  }
}

TEST(Elementary, sine_keeps_the_sign_of_zero) {
  EXPECT_EQ(float_bits(sine(0.0f)), float_bits(0.0f));
  EXPECT_EQ(float_bits(sine(-0.0f)), float_bits(-0.0f));
}

TEST(Elementary, angles_outside_of_the_domain_count_as_its_end) {
  for (const float x : {257.0f, 1e30f, infinity, not_a_number}) {
    EXPECT_EQ(sine(x), sine(256.0f));
    EXPECT_EQ(sine(-x), sine(-256.0f));
    EXPECT_EQ(cosine(x), cosine(256.0f));
  }
}

TEST(Elementary, arc_cosine_is_exact_at_the_ends_and_clamps_beyond) {
  constexpr float pi = 3.14159265358979f;
  EXPECT_EQ(float_bits(arc_cosine(1.0f)), 0u);
  EXPECT_EQ(arc_cosine(-1.0f), pi);
  EXPECT_EQ(arc_cosine(0.0f), 1.57079632679490f);
  for (const float x : {1.0000001f, 3.0f, infinity, not_a_number}) {
    EXPECT_EQ(arc_cosine(x), 0.0f);
    EXPECT_EQ(arc_cosine(-x), pi);
  }
}

TEST(Elementary, logarithm_clamps_to_normal_numbers) {
  const float lowest = logarithm(std::numeric_limits<float>::min());
  const float highest = logarithm(std::numeric_limits<float>::max());
  EXPECT_EQ(float_bits(logarithm(1.0f)), 0u);
  for (const float x : {0.0f, -0.0f, 1e-40f, -1e-40f, -1.0f, -infinity, -not_a_number}) EXPECT_EQ(logarithm(x), lowest);
  for (const float x : {infinity, not_a_number}) EXPECT_EQ(logarithm(x), highest);
}

TEST(Elementary, exponential_saturates_at_finite_numbers) {
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(exponential(-0.0f), 1.0f);
  for (const float x : {88.8f, 1e30f, infinity, not_a_number}) {
    EXPECT_EQ(exponential(x), std::numeric_limits<float>::max());
    EXPECT_EQ(float_bits(exponential(-x)), 0u);
  }
}

TEST(Elementary, exponential_never_returns_a_subnormal_number) {
  for (float x = -89.0f; x < -87.0f; x = std::nextafter(x, 0.0f)) {
    const float y = exponential(x);
    ASSERT_FALSE(is_subnormal(y)) << x;
    // A result that rounds up to the smallest normal number may be either.
    if (std::exp(static_cast<double>(x)) >= 0x1.000002p-126) {
      ASSERT_GT(y, 0.0f) << x;
    }
  }
}

}  // namespace
}  // namespace cingulum::numerics::elementary_tests
