#include "numerics/pack_elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cingulum::numerics {
namespace {

std::vector<double> arguments() {
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0.5,
                                -0.5,
                                0x1p-1022,
                                0x1p-1074,
                                -0x1p-1074,
                                709.0,
                                709.79,
                                -708.4,
                                -745.0,
                                1024.0,
                                -1024.0,
                                1e300,
                                -1e300,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN(),
                                -std::numeric_limits<double>::quiet_NaN(),
                                0x1.6a09e667f3bccp-1,
                                0x1.6a09e667f3bcdp-1};
  for (int k = -1100; k <= 1100; ++k) {
    // Where the rounding of x / ln 2 turns over.
    const double x = (k + 0.5) * 0x1.62e42fefa39efp-1;
    values.insert(values.end(), {x, std::nextafter(x, 1e9), std::nextafter(x, -1e9), double(k)});
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> ordinary(-50, 50);
  for (int i = 0; i < 20000; ++i) {
    values.push_back(bits_float(static_cast<std::uint64_t>(random())));
    values.push_back(ordinary(random));
    values.push_back(absolute(values.back()));
  }
  while (values.size() % 8 != 0) values.push_back(2.0);
  return values;
}

void expect_lanes_equal_scalars(SimdLevel level) {
  if (level > best_simd_level()) GTEST_SKIP() << "this CPU does not have the instruction set";
  const std::vector<double> x = arguments();
  std::vector<double> logs(x.size());
  std::vector<double> powers(x.size());
  with_packs<double>(
      [&]<class Number>() {
        for (std::size_t i = 0; i < x.size(); i += Number::width) {
          logarithm(Number::load(&x[i])).store(&logs[i]);
          exponential(Number::load(&x[i])).store(&powers[i]);
        }
      },
      level);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(float_bits(logs[i]), float_bits(logarithm(x[i]))) << x[i];
    ASSERT_EQ(float_bits(powers[i]), float_bits(exponential(x[i]))) << x[i];
  }
}

// A draw of all float32, and those around the places where the function turns over.
void expect_float_logarithms_equal(SimdLevel level) {
  if (level > best_simd_level()) return;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 97 * 16)
    x.push_back(bits_float(static_cast<std::uint32_t>(bits)));
  for (const std::uint32_t turn : {0u, 1u, 0x007fffffu, 0x00800000u, 0x3f3504f3u, 0x3f800000u, 0x3fb504f3u, 0x7f7fffffu,
                                   0x7f800000u, 0x7fc00000u, 0x80000000u, 0xff800000u, 0xffc00000u}) {
    for (std::uint32_t i = 0; i < 5; ++i) x.push_back(bits_float(turn + i - 2));
  }
  while (x.size() % 16 != 0) x.push_back(2.0f);
  std::vector<float> logs(x.size());
  with_packs<float>(
      [&]<class Number>() {
        for (std::size_t i = 0; i < x.size(); i += Number::width) logarithm(Number::load(&x[i])).store(&logs[i]);
      },
      level);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(float_bits(logs[i]), float_bits(logarithm(x[i]))) << x[i];
}

TEST(pack_elementary, float_logarithms_have_the_bits_of_the_scalar_in_every_instruction_set) {
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    expect_float_logarithms_equal(level);
  }
}

TEST(pack_elementary, every_lane_has_the_bits_of_the_scalar_in_baseline_code) {
  expect_lanes_equal_scalars(SimdLevel::baseline);
}
TEST(pack_elementary, every_lane_has_the_bits_of_the_scalar_in_avx2_code) {
  expect_lanes_equal_scalars(SimdLevel::avx2);
}
TEST(pack_elementary, every_lane_has_the_bits_of_the_scalar_in_avx512_code) {
  expect_lanes_equal_scalars(SimdLevel::avx512);
}

}  // namespace
}  // namespace cingulum::numerics
