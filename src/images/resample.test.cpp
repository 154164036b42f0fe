#include "images/resample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace cingulum {
namespace resample_tests {

// A function that linear interpolation reproduces between centres.
double plane(numerics::Vec3d world) {
  return 3 + 0.5 * world.x - 2 * world.y + 0.25 * world.z;
}

ImageGeometry turned_grid() {
  ImageGeometry grid;
  grid.size = {9, 8, 7};
  // Turned by 30 degrees about z and mirrored along the third axis.
  const double c = std::cos(0.5235987755982988), s = std::sin(0.5235987755982988);
  grid.voxel_to_world.rows = {2 * c, -3 * s, 0, -4, 2 * s, 3 * c, 0, 5, 0, 0, -1.5, 6};
  return grid;
}

std::vector<double> planes_values(const ImageGeometry& grid) {
  std::vector<double> values;
  for (std::int64_t k = 0; k < grid.size[2]; ++k) {
    for (std::int64_t j = 0; j < grid.size[1]; ++j) {
      for (std::int64_t i = 0; i < grid.size[0]; ++i) {
        values.push_back(
            plane(grid.voxel_to_world.apply({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)})));
      }
    }
  }
  return values;
}

TEST(resample, a_plane_in_the_world_stays_that_plane_on_any_grid_within_and_is_zero_outside) {
  const ImageGeometry from = turned_grid();
  ImageGeometry to;
  to.size = {25, 30, 20};
  to.voxel_to_world.rows = {1.1, 0, 0, -12, 0, 1.2, 0, -2, 0, 0, 0.9, -8};
  const auto resampler = Resampler::create(from, to, Interpolation::linear);
  ASSERT_TRUE(resampler);
  std::vector<double> values(static_cast<std::size_t>(to.voxel_count()), -1);
  resampler->volume(planes_values(from), values);
  const Affine inverse = from.voxel_to_world.inverse().value();
  std::size_t between_centres = 0, outside = 0, at = 0;
  for (std::int64_t k = 0; k < to.size[2]; ++k) {
    for (std::int64_t j = 0; j < to.size[1]; ++j) {
      for (std::int64_t i = 0; i < to.size[0]; ++i, ++at) {
        const auto world =
            to.voxel_to_world.apply({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)});
        const auto v = inverse.apply(world);
        const double low = std::min({v.x, v.y, v.z});
        const double past = std::max({v.x - 8, v.y - 7, v.z - 6});
        if (low >= 0 && past <= 0) {
          ++between_centres;
          EXPECT_NEAR(values[at], plane(world), 1e-9);
        } else if (low < -0.5001 || past > 0.5001) {
          ++outside;
          EXPECT_EQ(values[at], 0);
        } else if (low > -0.4999 && past < 0.4999) {
          EXPECT_NE(values[at], 0);  // the outer half of a border voxel
        }
      }
    }
  }
  EXPECT_GT(between_centres, 500U);
  EXPECT_GT(outside, 500U);
}

TEST(resample, the_same_grid_gives_the_same_numbers_whatever_lies_beside_them) {
  const ImageGeometry grid = turned_grid();
  std::vector<double> values = planes_values(grid);
  values[40] = std::numeric_limits<double>::quiet_NaN();
  values[200] = std::numeric_limits<double>::infinity();
  for (const Interpolation interpolation : {Interpolation::nearest, Interpolation::linear}) {
    std::vector<double> result(values.size());
    Resampler::create(grid, grid, interpolation)->volume(values, result);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i == 40) {
        EXPECT_TRUE(std::isnan(result[i]));
      } else {
        EXPECT_EQ(result[i], values[i]) << i;
      }
    }
  }
}

// Two voxels become four: the centres lie a quarter from those of the old.
TEST(resample, nearest_takes_the_voxel_that_holds_the_point_and_a_face_belongs_to_the_next) {
  ImageGeometry from;
  from.size = {2, 1, 1};
  ImageGeometry to;
  to.size = {4, 1, 1};
  to.voxel_to_world.rows = {0.5, 0, 0, -0.25, 0, 1, 0, 0, 0, 0, 1, 0};
  const std::vector<float> values = {5, 7};
  std::vector<float> result(4);
  Resampler::create(from, to, Interpolation::nearest)->volume(values, result);
  EXPECT_EQ(result, (std::vector<float>{5, 5, 7, 7}));
  Resampler::create(from, to, Interpolation::linear)->volume(values, result);
  EXPECT_EQ(result, (std::vector<float>{5, 5.5f, 6.5f, 7}));
  // Centres at -0.5, 0.5 and 1.5: the first face is inside, the last is not.
  to.size = {3, 1, 1};
  to.voxel_to_world.rows = {1, 0, 0, -0.5, 0, 1, 0, 0, 0, 0, 1, 0};
  result.resize(3);
  Resampler::create(from, to, Interpolation::nearest)->volume(values, result);
  EXPECT_EQ(result, (std::vector<float>{5, 7, 0}));
}

TEST(resample, threads_do_not_change_a_bit) {
  const ImageGeometry from = turned_grid();
  ImageGeometry to = from;
  to.size = {40, 40, 40};
  for (int c = 0; c < 3; ++c) {
    for (int r = 0; r < 3; ++r) to.voxel_to_world.at(r, c) *= 0.21;
  }
  const auto pool = ThreadPool::create(4);
  std::vector<double> alone(64000), together(64000);
  const auto resampler = Resampler::create(from, to, Interpolation::linear);
  const auto values = planes_values(from);
  resampler->volume(values, alone);
  resampler->volume(values, together, pool->get());
  EXPECT_EQ(alone, together);
  EXPECT_GT(std::count_if(alone.begin(), alone.end(), [](double v) { return v != 0; }), 1000);
}

TEST(resample, other_voxels_keep_the_centre_and_cover_the_image) {
  const ImageGeometry grid = turned_grid();  // 9 x 8 x 7 voxels of 2 x 3 x 1.5 mm
  const auto other = with_voxel_size(grid, {1, 3, 2});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->size, (std::array<std::int64_t, 3>{18, 8, 6}));  // 10.5 mm need six voxels of 2
  const auto edges = other->voxel_mm();
  EXPECT_NEAR(edges[0], 1, 1e-12);
  EXPECT_NEAR(edges[1], 3, 1e-12);
  EXPECT_NEAR(edges[2], 2, 1e-12);
  const auto old_middle = grid.voxel_to_world.apply({4, 3.5, 3});
  const auto new_middle = other->voxel_to_world.apply({8.5, 3.5, 2.5});
  EXPECT_NEAR(length(old_middle - new_middle), 0, 1e-12);
  EXPECT_TRUE(have_same_axes(grid, *other));
  ImageGeometry mirrored = grid;
  for (int r = 0; r < 3; ++r) mirrored.voxel_to_world.at(r, 0) *= -1;
  EXPECT_FALSE(have_same_axes(grid, mirrored));
  const auto refused = with_voxel_size(grid, {1, 1e-9, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().argument(), "voxel_size");
}

TEST(resample, a_flat_affine_is_refused) {
  ImageGeometry flat = turned_grid();
  for (int r = 0; r < 3; ++r) flat.voxel_to_world.at(r, 2) = 0;
  EXPECT_FALSE(Resampler::create(flat, turned_grid(), Interpolation::linear));
}

}  // namespace resample_tests
}  // namespace cingulum
