#include "numerics/pack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "numerics/philox.hpp"

namespace cingulum::numerics {
namespace {

// a b + c, a root, a division and a choice: contracted or reordered it would differ in many of the arguments.
template <class Number>
CGL_INLINE Number kernel(Number a, Number b, Number c) {
  const Number sum = a * b + c;
  return select(sum > Number(0), root(sum) / (b - c), -sum * a);
}

template <class Real>
std::vector<Real> random_numbers(std::size_t count, std::uint32_t stream) {
  std::vector<Real> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxBlock block = philox4x32_10({{static_cast<std::uint32_t>(i), stream, 0, 0}}, {});
    numbers[i] = static_cast<Real>(static_cast<std::int32_t>(block.word[0])) * static_cast<Real>(0x1p-29);
  }
  return numbers;
}

template <class Real>
void expect_lanes_equal_scalars(SimdLevel level) {
  if (level > best_simd_level()) GTEST_SKIP() << "this CPU does not have the instruction set";
  constexpr std::size_t count = 1 << 14;
  const auto a = random_numbers<Real>(count, 1);
  const auto b = random_numbers<Real>(count, 2);
  const auto c = random_numbers<Real>(count, 3);
  std::vector<Real> packed(count);
  with_packs<Real>(
      [&]<class Number>() {
        for (std::size_t i = 0; i < count; i += Number::width) {
          kernel(Number::load(&a[i]), Number::load(&b[i]), Number::load(&c[i])).store(&packed[i]);
        }
      },
      level);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(float_bits(packed[i]), float_bits(kernel(a[i], b[i], c[i]))) << "lane " << i;
  }
}

TEST(Pack, every_lane_does_what_the_scalar_does_in_baseline_code) {
  expect_lanes_equal_scalars<double>(SimdLevel::baseline);
  expect_lanes_equal_scalars<float>(SimdLevel::baseline);
}
TEST(Pack, every_lane_does_what_the_scalar_does_in_avx2_code) {
  expect_lanes_equal_scalars<double>(SimdLevel::avx2);
  expect_lanes_equal_scalars<float>(SimdLevel::avx2);
}
TEST(Pack, every_lane_does_what_the_scalar_does_in_avx512_code) {
  expect_lanes_equal_scalars<double>(SimdLevel::avx512);
  expect_lanes_equal_scalars<float>(SimdLevel::avx512);
}

TEST(Pack, a_mask_chooses_lane_by_lane) {
  using Number = Pack<double, 4>;
  const double values[4] = {-1, 2, -3, 4};
  double out[4];
  const Number x = Number::load(values);
  select((x > Number(0)) | (x < Number(-2)), Number(1), Number(0)).store(out);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 1);
  EXPECT_EQ(out[3], 1);
  EXPECT_TRUE(any_lane(x > Number(3)));
  EXPECT_FALSE(any_lane((x > Number(3)) & (x < Number(0))));
}

TEST(Pack, a_number_is_in_every_lane_with_its_sign) {
  const Pack<float, 8> zero(-0.0f);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(float_bits(zero.lanes[i]), 0x80000000u);
}

}  // namespace
}  // namespace cingulum::numerics
