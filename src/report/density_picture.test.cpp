#include "report/density_picture.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/density_of.hpp"

namespace cingulum {
namespace {

// The letters of a picture must be true of the image whatever its axes are: a visited voxel on the right side of the
// head is on the right of the coronal and axial slices.
TEST(DensityPicture, slices_show_the_same_world_for_every_order_of_axes) {
  const std::array<std::array<double, 12>, 3> affines = {{
      {2, 0, 0, -10, 0, 2, 0, -10, 0, 0, 2, -10},  // RAS
      {-2, 0, 0, 10, 0, -2, 0, 10, 0, 0, 2, -10},  // LPS
      {0, 0, 2, -10, -2, 0, 0, 10, 0, -2, 0, 10},  // PIR
  }};
  std::vector<std::vector<std::uint8_t>> pictures;
  for (const auto& rows : affines) {
    ImageGeometry grid = grid_of(11, 11, 11);
    grid.voxel_to_world.rows = rows;
    const DensityMap map = density_of(grid, batch_of({{{8.1, 7.7, 8.3}, {7.9, 8.2, 3.7}, {-2.3, -1.6, 0.45}}}));
    const DensityScale scale = density_scale(map);
    std::vector<std::uint8_t> all;
    for (const ViewSide side : all_view_sides) {
      const Picture projection = draw_density_projection(map, scale, side, 100);
      const DensityPicture slice = draw_density_slice(map, scale, nullptr, side, 100);
      all.insert(all.end(), projection.rgb.begin(), projection.rgb.end());
      all.insert(all.end(), slice.picture.rgb.begin(), slice.picture.rgb.end());
      EXPECT_NE(projection.rgb, slice.picture.rgb) << "the streamline leaves the slice";
    }
    pictures.push_back(all);
  }
  EXPECT_EQ(pictures[0], pictures[1]);
  EXPECT_EQ(pictures[0], pictures[2]);
}

// Two voxels on either side of the middle, one of them visited by two streamlines: the slice goes through that one, and
// through the first of equals.
TEST(DensityPicture, the_slice_is_where_half_of_all_visits_are_reached) {
  const auto slice_of = [](const std::vector<std::vector<numerics::Vec3d>>& lines) {
    const DensityMap map = density_of(grid_of(9, 9, 9), batch_of(lines));
    const DensityPicture slice = draw_density_slice(map, density_scale(map), nullptr, ViewSide::axial, 64);
    EXPECT_EQ(slice.axis, 2U);
    EXPECT_EQ(slice.position_mm, static_cast<double>(slice.slice));
    return slice.slice;
  };
  EXPECT_EQ(slice_of({{{4, 4, 1}}, {{4, 4, 6}}}), 1);
  EXPECT_EQ(slice_of({{{4, 4, 1}}, {{4, 4, 6}}, {{3, 4, 6}}}), 6);
  EXPECT_EQ(slice_of({}), 4);
}

TEST(DensityPicture, the_slice_shows_the_voxels_that_lie_in_it) {
  const DensityMap map = density_of(grid_of(9, 9, 9), batch_of({{{2, 2, 1}}, {{6, 6, 7}}}));
  const Picture slice = draw_density_slice(map, density_scale(map), nullptr, ViewSide::axial, 90).picture;
  // The grid's visited part and a margin, 0 to 8, over 88 % of 90 pixels; y runs upwards.
  const auto pixel = [](double voxel) { return static_cast<int>(45 + (voxel - 4) * 79.2 / 9); };
  const auto brightness = [&](double x, double y) {
    const Colour c = slice.at(pixel(x), 89 - pixel(y));
    return c.red + c.green + c.blue;
  };
  EXPECT_GT(brightness(2, 2), 3 * brightness(6, 6)) << "the other streamline lies in another slice";
}

TEST(DensityPicture, zero_of_the_anatomy_is_black_unless_there_are_values_below_it) {
  EXPECT_EQ(make_anatomy({0, 5, 6, 7}).black, 0);
  EXPECT_EQ(make_anatomy({-3, 5, 6, 7}).black, -3);
}

TEST(DensityPicture, colours_rise_with_the_count) {
  const DensityScale scale = {100};
  EXPECT_EQ(scale.share(0), 0);
  EXPECT_EQ(scale.share(100), 1);
  EXPECT_EQ(scale.share(1e9), 1);
  EXPECT_LT(scale.share(3), scale.share(4));
  const auto brightness = [](Colour c) { return c.red + c.green + c.blue; };
  for (int i = 0; i < 10; ++i) {
    EXPECT_LT(brightness(density_colour(i / 10.0)), brightness(density_colour((i + 1) / 10.0)));
  }
}

TEST(DensityPicture, anatomy_without_contrast_or_with_nan_is_shown) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& values :
       {std::vector<float>(8, 0), std::vector<float>(8, 5), std::vector<float>(8, nan)}) {
    const Anatomy anatomy = make_anatomy(values);
    EXPECT_GT(anatomy.white, anatomy.black);
    const DensityMap map = density_of(grid_of(2, 2, 2), batch_of({{{0, 0, 0}}}));
    for (const ViewSide side : all_view_sides) {
      EXPECT_EQ(draw_density_slice(map, density_scale(map), &anatomy, side, 64).picture.width, 64);
    }
  }
}

}  // namespace
}  // namespace cingulum
