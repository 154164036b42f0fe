#include "formats/nifti.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

ImageGeometry some_geometry() {
  ImageGeometry geometry;
  geometry.size = {7, 5, 3};
  geometry.voxel_to_world.rows = {-2, 0, 0, 10, 0, 2.5, 0, -20, 0, 0, 3, 30};
  return geometry;
}

std::vector<float> some_values(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1000, 1000);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

TEST(Nifti, an_image_reads_as_it_was_written) {
  const TemporaryFolder folder;
  const ImageGeometry geometry = some_geometry();
  const auto values = some_values(105 * 4);
  for (const char* name : {"a.nii", "a.nii.gz"}) {
    for (const int version : {1, 2}) {
      const NiftiWriteOptions options{.file = {.force = true}, .version = version};
      ASSERT_TRUE(write_image(folder / name, geometry, 4, values, options));
      const auto image = read_image(folder / name);
      ASSERT_TRUE(image) << image.error().message();
      EXPECT_EQ(image->values, values);
      EXPECT_EQ(image->volumes, 4);
      EXPECT_EQ(image->geometry, geometry);
      const auto reader = NiftiReader::open(folder / name);
      EXPECT_EQ(reader->header().version, version);
      EXPECT_EQ(reader->header().warnings, std::vector<std::string>{});
      EXPECT_EQ(reader->header().affine_source, AffineSource::sform);
      EXPECT_EQ(reader->header().compressed, std::string_view(name) == "a.nii.gz");
    }
  }
}

}  // namespace
}  // namespace cingulum
