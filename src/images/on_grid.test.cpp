#include "images/on_grid.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/read_file.hpp"
#include "formats/nifti.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace on_grid_tests {

ImageGeometry cubes(std::int64_t size, double edge, double first) {
  ImageGeometry grid;
  grid.size = {size, size, size};
  grid.voxel_to_world.rows = {edge, 0, 0, first, 0, edge, 0, first, 0, 0, edge, first};
  return grid;
}

// 1 where `inside` says so of the voxel's index along x.
template <class Inside>
std::vector<float> slab(const ImageGeometry& grid, Inside&& inside) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < grid.voxel_count(); ++i) values.push_back(inside(i % grid.size[0]) ? 1.0f : 0.0f);
  return values;
}

// Clears both codes of a NIfTI-1 header, so that it says nothing of where the image lies.
void forget_orientation(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(252);
  file.write("\0\0\0\0", 4);
  ASSERT_TRUE(file.good());
}

TEST(on_grid, a_mask_of_finer_voxels_covers_the_same_part_of_the_world) {
  const TemporaryFolder folder;
  const ImageGeometry fine = cubes(20, 1, 0.5), coarse = cubes(10, 2, 1);
  ASSERT_TRUE(write_image(folder / "m.nii", fine, 1, slab(fine, [](auto i) { return i >= 6 && i < 14; })));
  const auto mask = read_mask_on(folder / "m.nii", "the mask", {coarse, "the series"});
  ASSERT_TRUE(mask) << mask.error().message();
  const auto expected = slab(coarse, [](auto i) { return i >= 3 && i < 7; });
  EXPECT_TRUE(std::equal(mask->begin(), mask->end(), expected.begin(), expected.end()));
}

TEST(on_grid, a_map_is_interpolated_and_one_of_two_values_is_not) {
  const TemporaryFolder folder;
  const ImageGeometry coarse = cubes(6, 2, 0), fine = cubes(11, 1, 0);
  std::vector<float> ramp = slab(coarse, [](auto) { return true; });
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 6);
  ramp[0] = std::numeric_limits<float>::quiet_NaN();  // counts as 0, and x = 0 is 0 there
  ASSERT_TRUE(write_image(folder / "ramp.nii", coarse, 1, ramp));
  const auto map = read_map_on(folder / "ramp.nii", "the stopping map", {fine, "the series"});
  ASSERT_TRUE(map) << map.error().message();
  for (std::size_t i = 0; i < map->size(); ++i) EXPECT_EQ((*map)[i], static_cast<float>(i % 11) / 2) << i;
  // Two values: at 3 and 7 mm, halfway between 1 and 0, linear interpolation would leave 0.5.
  ASSERT_TRUE(write_image(folder / "two.nii", coarse, 1, slab(coarse, [](auto i) { return i == 2 || i == 3; })));
  const auto two = read_map_on(folder / "two.nii", "the stopping map", {fine, "the series"});
  ASSERT_TRUE(two);
  EXPECT_EQ(std::count(two->begin(), two->end(), 0.5f), 0);
  EXPECT_EQ((*two)[4], 1);
  EXPECT_EQ((*two)[1], 0);
}

TEST(on_grid, the_same_grid_gives_the_file_as_it_is) {
  const TemporaryFolder folder;
  const ImageGeometry grid = cubes(4, 2, 0);
  std::vector<float> values(64, 0.25f);
  values[5] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(write_image(folder / "map.nii", grid, 1, values));
  const auto map = read_map_on(folder / "map.nii", "the stopping map", {grid, "the series"});
  ASSERT_TRUE(map);
  EXPECT_EQ(*map, values);
}

TEST(on_grid, what_lies_elsewhere_by_more_than_half_is_refused_with_the_share) {
  const TemporaryFolder folder;
  const ImageGeometry series = cubes(10, 2, 1);
  const std::vector<float> all(1000, 1.0f);
  // Moved along x by 4, 5 and 6 of ten voxels (and a bit, so that it is another grid).
  for (const int voxels : {4, 5, 6}) {
    ImageGeometry moved = series;
    moved.voxel_to_world.at(0, 3) += 2.0 * voxels + 0.1;
    ASSERT_TRUE(write_image(folder / "m.nii", moved, 1, all, {.file = {.force = true}}));
    const auto mask = read_mask_on(folder / "m.nii", "the mask", {series, "the series dwi.nii"});
    EXPECT_EQ(mask.has_value(), voxels <= 5) << voxels;
    if (mask) continue;
    EXPECT_NE(mask.error().message().find("40 %"), std::string::npos) << mask.error().message();
    EXPECT_NE(mask.error().message().find("the series dwi.nii"), std::string::npos);
    EXPECT_EQ(mask.error().file(), (folder / "m.nii").string());
  }
}

TEST(on_grid, a_header_without_orientation_is_refused_on_another_grid_alone) {
  const TemporaryFolder folder;
  ImageGeometry own = cubes(10, 2, 0);  // what pixdim alone says
  const std::vector<float> all(1000, 1.0f);
  ASSERT_TRUE(write_image(folder / "m.nii", own, 1, all));
  forget_orientation(folder / "m.nii");
  const auto reader = NiftiReader::open(folder / "m.nii");
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->header().affine_source, AffineSource::pixdim);
  own = reader->header().geometry;
  EXPECT_TRUE(read_mask_on(folder / "m.nii", "the mask", {own, "the series"}));
  ImageGeometry other = own;
  other.voxel_to_world.at(0, 3) += 1;
  const auto refused = read_mask_on(folder / "m.nii", "the mask", {other, "the series"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("neither sform nor qform"), std::string::npos);
  // And where the series is the one that does not say.
  ASSERT_TRUE(write_image(folder / "said.nii", own, 1, all));
  EXPECT_TRUE(read_map_on(folder / "said.nii", "the stopping map", {other, "the series", true}));
  EXPECT_FALSE(read_map_on(folder / "said.nii", "the stopping map", {other, "the series", false}));
}

TEST(on_grid, several_volumes_are_no_mask_and_no_map) {
  const TemporaryFolder folder;
  const ImageGeometry grid = cubes(3, 1, 0);
  ASSERT_TRUE(write_image(folder / "two.nii", grid, 2, std::vector<float>(54, 1.0f)));
  for (const bool mask : {true, false}) {
    const std::string message =
        mask ? read_mask_on(folder / "two.nii", "the mask", {grid, "the series"}).error().message()
             : read_map_on(folder / "two.nii", "the stopping map", {grid, "the series"}).error().message();
    EXPECT_NE(message.find("2 volumes"), std::string::npos) << message;
  }
}

}  // namespace on_grid_tests
}  // namespace cingulum
