#include "numerics/trilinear.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numerics/philox.hpp"
#include "numerics/random.hpp"

namespace cingulum::numerics {
namespace {

constexpr GridSize size{5, 4, 3};

// 2x - 3y + 5z + 7 at voxel centres: trilinear interpolation reproduces it inside.
std::vector<float> linear_volume() {
  std::vector<float> volume;
  for (std::uint32_t z = 0; z < size.z; ++z) {
    for (std::uint32_t y = 0; y < size.y; ++y) {
      for (std::uint32_t x = 0; x < size.x; ++x) {
        volume.push_back(2.0f * static_cast<float>(x) - 3.0f * static_cast<float>(y) + 5.0f * static_cast<float>(z) +
                         7.0f);
      }
    }
  }
  return volume;
}

TEST(Trilinear, positions_inside_have_the_same_cell_by_the_shorter_way) {
  for (const GridSize grid : {size, GridSize{1, 2, 1}}) {
    const auto ends = [](std::uint32_t count) {
      const float end = static_cast<float>(count) - 0.5f;
      return std::vector<float>{-0.5f, -0.25f, -0.0f, 0.0f, 0.3f, 0.5f * end, end - 0.5f, std::nextafter(end, 0.0f)};
    };
    for (const float x : ends(grid.x)) {
      for (const float y : ends(grid.y)) {
        for (const float z : ends(grid.z)) {
          const Vec3 position{x, y, z};
          ASSERT_FALSE(is_outside(position, grid)) << x << ' ' << y << ' ' << z;
          const TrilinearCell a = trilinear_cell(position, grid), b = cell_inside(position, grid);
          for (const auto axis : {&TrilinearCell::x, &TrilinearCell::y, &TrilinearCell::z}) {
            ASSERT_EQ((a.*axis).low, (b.*axis).low);
            ASSERT_EQ((a.*axis).high, (b.*axis).high);
            ASSERT_EQ(float_bits((a.*axis).low_weight), float_bits((b.*axis).low_weight));
            ASSERT_EQ(float_bits((a.*axis).high_weight), float_bits((b.*axis).high_weight));
          }
        }
      }
    }
  }
}

TEST(Trilinear, sampling_reproduces_voxel_centres_exactly) {
  const std::vector<float> volume = linear_volume();
  std::size_t voxel = 0;
  for (std::uint32_t z = 0; z < size.z; ++z) {
    for (std::uint32_t y = 0; y < size.y; ++y) {
      for (std::uint32_t x = 0; x < size.x; ++x, ++voxel) {
        const Vec3 position{static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)};
        ASSERT_EQ(sample_trilinear(volume.data(), size, position), volume[voxel]);
      }
    }
  }
}

TEST(Trilinear, sampling_reproduces_a_linear_function_and_holds_it_beyond_the_outer_centres) {
  const std::vector<float> volume = linear_volume();
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const PhiloxBlock block = philox4x32_10({{i, 0, 0, 0}}, {3, 4});
    const Vec3 p{uniform_from_word(block.word[0]) * 5 - 0.5f, uniform_from_word(block.word[1]) * 4 - 0.5f,
                 uniform_from_word(block.word[2]) * 3 - 0.5f};
    const double x = std::clamp(static_cast<double>(p.x), 0.0, 4.0);
    const double y = std::clamp(static_cast<double>(p.y), 0.0, 3.0);
    const double z = std::clamp(static_cast<double>(p.z), 0.0, 2.0);
    ASSERT_NEAR(sample_trilinear(volume.data(), size, p), 2 * x - 3 * y + 5 * z + 7, 1e-5);
  }
}

TEST(Trilinear, the_lower_face_takes_both_indices_from_voxel_zero) {
  const AxisCell cell = axis_cell(-0.25f, 5);
  EXPECT_EQ(cell.low, 0u);
  EXPECT_EQ(cell.high, 0u);
  EXPECT_EQ(cell.low_weight, 0.25f);
  EXPECT_EQ(cell.high_weight, 0.75f);
}

TEST(Trilinear, the_upper_face_takes_both_indices_from_the_last_voxel) {
  const AxisCell cell = axis_cell(4.25f, 5);
  EXPECT_EQ(cell.low, 4u);
  EXPECT_EQ(cell.high, 4u);
}

TEST(Trilinear, indices_stay_in_the_grid_for_every_float) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 65521) {
    for (const std::uint32_t n : {1u, 2u, 300u}) {
      const AxisCell cell = axis_cell(bits_float(static_cast<std::uint32_t>(bits)), n);
      ASSERT_LT(cell.low, n);
      ASSERT_LT(cell.high, n);
      ASSERT_LE(cell.low, cell.high);
    }
  }
}

TEST(Trilinear, voxels_cover_half_a_voxel_around_their_centres) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(is_outside(Vec3{-0.5f, -0.5f, -0.5f}, size));
  EXPECT_FALSE(is_outside(Vec3{4.4999995f, 3.4999998f, 2.4999998f}, size));
  EXPECT_TRUE(is_outside(Vec3{std::nextafter(-0.5f, -1.0f), 0, 0}, size));
  EXPECT_TRUE(is_outside(Vec3{4.5f, 0, 0}, size));
  EXPECT_TRUE(is_outside(Vec3{0, 3.5f, 0}, size));
  EXPECT_TRUE(is_outside(Vec3{0, 0, 2.5f}, size));
  EXPECT_TRUE(is_outside(Vec3{inf, 0, 0}, size));
  EXPECT_TRUE(is_outside(Vec3{0, std::nanf(""), 0}, size));
}

TEST(Trilinear, every_channel_has_the_bits_of_sampling_it_alone) {
  constexpr std::uint32_t channels = 7;
  std::vector<float> records(5 * 4 * 3 * channels);
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    records[i] = uniform_from_word(philox4x32_10({{i, 0, 0, 0}}, {9, 9}).word[0]) - 0.5f;
  }
  for (std::uint32_t i = 0; i < 300; ++i) {
    const PhiloxBlock block = philox4x32_10({{i, 0, 0, 0}}, {3, 4});
    const Vec3 p{uniform_from_word(block.word[0]) * 5 - 0.5f, uniform_from_word(block.word[1]) * 4 - 0.5f,
                 uniform_from_word(block.word[2]) * 3 - 0.5f};
    float sampled[channels];
    sample_trilinear_channels(records.data(), size, channels, p, sampled);
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      std::vector<float> single;
      for (std::size_t voxel = 0; voxel < 60; ++voxel) single.push_back(records[voxel * channels + channel]);
      ASSERT_EQ(float_bits(sampled[channel]), float_bits(sample_trilinear(single.data(), size, p)));
    }
  }
}

TEST(Trilinear, corners_are_added_with_x_fastest_and_products_rounded_one_by_one) {
  const Vec3 p{0.3f, 0.7f, 0.1f};
  const GridSize two{2, 2, 2};
  const float values[8] = {1e-3f, -7.0f, 0.3f, 11.0f, -2.5f, 1e4f, 0.125f, 3.0f};
  const float wx[2] = {1.0f - 0.3f, 0.3f}, wy[2] = {1.0f - 0.7f, 0.7f}, wz[2] = {1.0f - 0.1f, 0.1f};
  float sum = 0;
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 2; ++x) {
        float weight = wx[x] * wy[y];
        weight = weight * wz[z];
        const float term = weight * values[x + 2 * y + 4 * z];
        sum = x + y + z == 0 ? term : sum + term;
      }
    }
  }
  EXPECT_EQ(sample_trilinear(values, two, p), sum);
}

}  // namespace
}  // namespace cingulum::numerics
