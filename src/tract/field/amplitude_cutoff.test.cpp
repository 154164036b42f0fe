#include "tract/field/amplitude_cutoff.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cingulum {
namespace amplitude_cutoff_tests {

FieldFile file_of(FieldFileKind kind, std::int64_t voxels, std::vector<std::vector<float>> volumes,
                  Affine affine = {}) {
  FieldFile file;
  file.request.kind = kind;
  file.request.path = "field.nii";
  file.image.geometry.size = {voxels, 1, 1};
  file.image.geometry.voxel_to_world = affine;
  file.image.volumes = static_cast<std::int64_t>(volumes.size());
  for (const auto& volume : volumes) file.image.values.insert(file.image.values.end(), volume.begin(), volume.end());
  file.basis = "tournier07";
  file.frame = "image";
  return file;
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST(amplitude_cutoff, of_amplitudes_the_greatest_and_never_below_zero) {
  const auto pool = ThreadPool::create(1);
  const auto greatest = greatest_amplitudes(
      file_of(FieldFileKind::amplitudes, 4, {{1, -2, 0, not_a_number}, {3, -1, 0, 2}}), Sphere{}, **pool);
  ASSERT_TRUE(greatest);
  EXPECT_EQ(*greatest, (std::vector<float>{3, 0, 0, 2}));
}

TEST(amplitude_cutoff, of_peaks_the_length_of_the_longest) {
  const auto pool = ThreadPool::create(1);
  const auto greatest = greatest_amplitudes(
      file_of(FieldFileKind::peaks, 2, {{0.3f, 0}, {0.4f, 0}, {0, 0}, {0, 2}, {0, 3}, {-0.25f, 6}}), Sphere{}, **pool);
  ASSERT_TRUE(greatest);
  EXPECT_FLOAT_EQ((*greatest)[0], 0.5f);
  EXPECT_FLOAT_EQ((*greatest)[1], 7.0f);
}

// a Y00 + b Y20 is greatest along z of its frame, least in the plane across: Y00 = 0.2820948, Y20 = 0.6307831 and
// -0.3153916 there. The sphere has the x and y of the image, of which x is the world's z.
TEST(amplitude_cutoff, of_harmonics_the_greatest_on_the_sphere_in_the_frame_of_the_file) {
  const auto pool = ThreadPool::create(2);
  Affine turned;
  turned.rows = {0, 0, 3, 0, 0, 2, 0, 0, 2, 0, 0, 0};
  // Two voxels, the second empty; coefficients in MRtrix3's order: (2, 0) is the fourth.
  FieldFile file = file_of(FieldFileKind::harmonics, 2, {{1, 0}, {0, 0}, {0, 0}, {0.5f, 0}, {0, 0}, {0, 0}}, turned);
  file.degree = 2;
  Sphere sphere;
  sphere.directions = {{1, 0, 0}, {0, 1, 0}};
  for (const bool world : {false, true}) {
    file.frame = world ? "world" : "image";
    const auto greatest = greatest_amplitudes(file, sphere, **pool);
    ASSERT_TRUE(greatest) << greatest.error().message();
    EXPECT_NEAR(static_cast<double>((*greatest)[0]), 0.2820948 + 0.5 * (world ? 0.6307831 : -0.3153916), 1e-6) << world;
    EXPECT_EQ((*greatest)[1], 0.0f);
  }
}

TEST(amplitude_cutoff, many_voxels_are_sampled_in_pieces_and_each_has_its_own) {
  const auto pool = ThreadPool::create(2);
  std::vector<float> constant(10000);
  for (std::size_t i = 0; i < constant.size(); ++i) constant[i] = i % 3 == 0 ? 0.0f : static_cast<float>(i);
  Sphere sphere;
  sphere.directions = {{0, 0, 1}};
  const auto greatest = greatest_amplitudes(file_of(FieldFileKind::harmonics, 10000, {constant}), sphere, **pool);
  ASSERT_TRUE(greatest);
  for (std::size_t i = 0; i < constant.size(); ++i) {
    ASSERT_NEAR(static_cast<double>((*greatest)[i]), 0.28209479177 * static_cast<double>(constant[i]), 1e-3) << i;
  }
}

TEST(amplitude_cutoff, a_tenth_of_the_voxels_with_amplitudes_must_be_above_it) {
  const FieldFile file = file_of(FieldFileKind::harmonics, 30, {});
  std::vector<float> greatest(30, 0.05f);
  std::fill(greatest.begin() + 20, greatest.end(), 0.0f);  // nothing there
  greatest[0] = 0.1f;                                      // the cutoff itself is not above it
  greatest[1] = 0.3f;
  const auto one = check_cutoff(file, greatest, {}, 0.1);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().kind(), ErrorKind::not_found);
  EXPECT_NE(one.error().message().find("1 of 20"), std::string::npos) << one.error().message();
  EXPECT_NE(one.error().message().find("0.05"), std::string::npos);
  greatest[2] = 0.2f;
  const auto two = check_cutoff(file, greatest, {}, 0.1);
  ASSERT_TRUE(two) << two.error().message();
  EXPECT_EQ(two->above, 2U);
  EXPECT_EQ(two->voxels, 20U);
  std::vector<std::uint8_t> mask(30, 1);
  mask[1] = 0;
  EXPECT_FALSE(check_cutoff(file, greatest, mask, 0.1));
  EXPECT_FALSE(check_cutoff(file, std::vector<float>(30, 0.0f), {}, 0.1));
}

}  // namespace amplitude_cutoff_tests
}  // namespace cingulum
