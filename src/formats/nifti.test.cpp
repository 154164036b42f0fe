#include "formats/nifti.hpp"

#include <gtest/gtest.h>

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

TEST(Nifti, volumes_come_one_after_the_other_as_float_or_double) {
  const TemporaryFolder folder;
  const ImageGeometry geometry = some_geometry();
  const auto values = some_values(105 * 6);
  auto writer = NiftiWriter::create(folder / "a.nii.gz", geometry, {2, 3}, {});
  ASSERT_TRUE(writer) << writer.error().message();
  for (std::size_t i = 0; i < values.size(); i += 70) {
    ASSERT_TRUE(writer->append(std::span<const float>(values).subspan(i, 70)));
  }
  ASSERT_TRUE(writer->commit());
  auto reader = NiftiReader::open(folder / "a.nii.gz");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->header().shape, (std::vector<std::int64_t>{7, 5, 3, 2, 3}));
  EXPECT_EQ(reader->header().volume_count(), 6);
  std::vector<float> single(105);
  std::vector<double> wide(105);
  for (std::size_t volume = 0; volume < 6; ++volume) {
    const std::vector<float> expected(values.begin() + static_cast<std::ptrdiff_t>(volume * 105),
                                      values.begin() + static_cast<std::ptrdiff_t>((volume + 1) * 105));
    if (volume % 2 == 0) {
      ASSERT_TRUE(reader->next_volume(std::span(single)));
      EXPECT_EQ(single, expected);
    } else {
      ASSERT_TRUE(reader->next_volume(std::span(wide)));
      EXPECT_EQ(wide, std::vector<double>(expected.begin(), expected.end()));
    }
    EXPECT_EQ(reader->volumes_read(), static_cast<std::int64_t>(volume) + 1);
  }
  const Status beyond = reader->next_volume(std::span(single));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().kind(), ErrorKind::invalid_state);
}

TEST(Nifti, wrong_amounts_of_values_are_refused) {
  const TemporaryFolder folder;
  const auto values = some_values(106);
  EXPECT_FALSE(write_image(folder / "a.nii", some_geometry(), 1, values));
  EXPECT_FALSE(write_image(folder / "a.nii.gz", some_geometry(), 1, std::span(values).first(104)));
  EXPECT_TRUE(folder.names().empty());
  ASSERT_TRUE(write_image(folder / "a.nii", some_geometry(), 1, std::span(values).first(105)));
  auto reader = NiftiReader::open(folder / "a.nii");
  std::vector<float> room(104);
  EXPECT_FALSE(reader->next_volume(std::span(room)));
}

TEST(Nifti, what_cannot_be_written_is_refused_before_a_file_is_made) {
  const TemporaryFolder folder;
  const auto values = some_values(105);
  const auto message = [&](const ImageGeometry& geometry, const NiftiWriteOptions& options) {
    const Status status = write_image(folder / "a.nii", geometry, 1, values, options);
    return status ? std::string("written") : status.error().message();
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(message(some_geometry(), {.type = {ElementType::Code::floating, 16}}), "type float16"));
  EXPECT_TRUE(has(message(some_geometry(), {.slope = 0}), "slope 0"));
  EXPECT_TRUE(has(message(some_geometry(), {.slope = 1e-60}), "slope 0"));
  EXPECT_TRUE(has(message(some_geometry(), {.description = std::string(80, 'x')}), "80 bytes: 79 at most"));
  EXPECT_TRUE(has(message(some_geometry(), {.intent_name = std::string(16, 'x')}), "16 bytes: 15 at most"));
  EXPECT_TRUE(has(message(some_geometry(), {.version = 3}), "version 3"));
  ImageGeometry flat = some_geometry();
  flat.voxel_to_world.at(2, 2) = 0;
  EXPECT_TRUE(has(message(flat, {}), "cannot be inverted"));
  ImageGeometry none = some_geometry();
  none.size[1] = 0;
  EXPECT_TRUE(has(message(none, {}), "axis of length 0"));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Nifti, a_mask_is_one_volume_and_true_above_zero) {
  const TemporaryFolder folder;
  std::vector<float> values(105 * 2, 0);
  values[3] = 1;
  values[4] = -1;
  values[5] = 0.001F;
  ASSERT_TRUE(write_image(folder / "mask.nii.gz", some_geometry(), 1, std::span(values).first(105)));
  ImageGeometry geometry;
  const auto mask = read_mask(folder / "mask.nii.gz", geometry);
  ASSERT_TRUE(mask) << mask.error().message();
  EXPECT_EQ(geometry, some_geometry());
  EXPECT_EQ((std::vector<std::uint8_t>{mask->begin() + 3, mask->begin() + 6}), (std::vector<std::uint8_t>{1, 0, 1}));
  ASSERT_TRUE(write_image(folder / "two.nii.gz", some_geometry(), 2, values));
  const auto two = read_mask(folder / "two.nii.gz", geometry);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().message(),
            "reading " + (folder / "two.nii.gz").native() + ": a mask has one volume, this image has 2");
}

TEST(Nifti, bytes_behind_the_voxels_give_a_warning) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder / "a.nii", some_geometry(), 1, some_values(105)));
  folder.put("a.nii", folder.content("a.nii") + "more");
  auto reader = NiftiReader::open(folder / "a.nii");
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->verify());
  EXPECT_EQ(reader->header().warnings, std::vector<std::string>{"4 bytes follow the voxels: ignored"});
}

TEST(Nifti, folders_and_absent_files_are_told) {
  const TemporaryFolder folder;
  EXPECT_EQ(NiftiReader::open(folder / "absent.nii").error().kind(), ErrorKind::not_found);
  EXPECT_EQ(NiftiReader::open(folder.path()).error().message(),
            "reading " + folder.path().native() + ": it is a folder");
}

}  // namespace
}  // namespace cingulum
