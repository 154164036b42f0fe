#include "dmri/phantom/phantom_files.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/read_file.hpp"
#include "dmri/phantom/phantom_description.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/tractogram.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

PhantomRequest small(const char* preset) {
  PhantomRequest request;
  request.model = *phantom_preset(preset, {});
  request.scheme = *shell_scheme(6, {1000}, 1);
  request.subsamples = 2;
  return request;
}

Result<PhantomSummary> write(const PhantomRequest& request, const std::filesystem::path& folder, int threads = 2,
                             bool force = false) {
  const auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool);
  return write_phantom(request, folder, {.force = force, .sync = false}, **pool,
                       ProgressOptions{.style = ProgressStyle::silent});
}

TEST(PhantomFiles, the_description_gives_the_bundles_back_to_the_bit) {
  TemporaryFolder folder;
  for (const char* preset : {"commissural", "helix", "fanning"}) {
    const PhantomRequest request = small(preset);
    ASSERT_OK(write(request, folder / preset));
    ASSERT_OK_AND_ASSIGN(const PhantomTruth truth, read_phantom(folder / preset));
    ASSERT_EQ(truth.bundles.size(), request.model.bundles.size());
    for (std::size_t b = 0; b < truth.bundles.size(); ++b)
      EXPECT_EQ(truth.bundles[b].shape(), request.model.bundles[b]);
    ASSERT_OK_AND_ASSIGN(const PhantomGrid grid, phantom_grid(request.model.extent_mm, request.grid));
    EXPECT_EQ(truth.geometry, grid.stored);
  }
}

TEST(PhantomFiles, every_file_is_the_same_for_any_number_of_threads) {
  TemporaryFolder folder;
  PhantomRequest request = small("crossing60");
  request.seed = 0x123456789abcdefULL;
  ASSERT_OK(write(request, folder / "one", 1));
  ASSERT_OK(write(request, folder / "two", 2));
  ASSERT_OK(write(request, folder / "eight", 8));
  ASSERT_OK(write(request, folder / "eight", 3, true));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "one")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const auto name = std::filesystem::relative(entry.path(), folder / "one").string();
    EXPECT_EQ(folder.content("one/" + name), folder.content("two/" + name)) << name;
    EXPECT_EQ(folder.content("one/" + name), folder.content("eight/" + name)) << name;
  }
  EXPECT_EQ(files, 9u + 2 * 3);
}

TEST(PhantomFiles, an_existing_phantom_is_replaced_only_when_asked_and_then_wholly) {
  TemporaryFolder folder;
  ASSERT_OK(write(small("kissing"), folder / "p"));
  EXPECT_TRUE(testing::fails_with(write(small("straight"), folder / "p"), ErrorKind::already_exists, "not empty"));
  ASSERT_OK(write(small("straight"), folder / "p", 2, true));
  EXPECT_FALSE(std::filesystem::exists(folder / "p/bundles/upper.nii.gz"));
  EXPECT_FALSE(std::filesystem::exists(folder / "p/ends/lower_b.nii.gz"));
  EXPECT_TRUE(std::filesystem::exists(folder / "p/bundles/straight.nii.gz"));
  EXPECT_TRUE(testing::fails_with(write(small("straight"), folder / "no/such"), ErrorKind::io, "no/such"));
}

TEST(PhantomFiles, gradients_read_by_the_default_rule_are_the_world_directions) {
  TemporaryFolder folder;
  for (const char* orientation : {"RAS", "LAS", "SPR", "PIL"}) {
    PhantomRequest request = small("straight");
    request.grid.orientation = orientation;
    request.grid.rotate_deg = {5, -12, 40};
    request.grid.voxel_mm = {2, 2.5, 3};
    ASSERT_OK(write(request, folder / orientation));
    const auto path = folder / orientation;
    ASSERT_OK_AND_ASSIGN(const GradientTable table, read_fsl_gradients(path / "dwi.bval", path / "dwi.bvec"));
    ASSERT_OK_AND_ASSIGN(const PhantomTruth truth, read_phantom(path));
    const auto edges = truth.geometry.voxel_mm();
    const auto image = directions_in_image_axes(table, GradientFrame::fsl, truth.geometry.voxel_to_world);
    ASSERT_EQ(image.size(), request.scheme.volumes());
    for (std::size_t i = 0; i < image.size(); ++i) {
      const Vec3d world =
          truth.geometry.voxel_to_world.rotate({image[i].x / edges[0], image[i].y / edges[1], image[i].z / edges[2]});
      EXPECT_NEAR(length(world - request.scheme.directions[i]), 0, 1e-12) << orientation;
    }
  }
}

TEST(PhantomFiles, true_fibres_come_in_groups_that_start_with_the_centre_line) {
  TemporaryFolder folder;
  ASSERT_OK(write(small("commissural"), folder / "p"));
  ASSERT_OK_AND_ASSIGN(const PhantomTruth truth, read_phantom(folder / "p"));
  ASSERT_OK_AND_ASSIGN(const Tractogram tractogram, read_tractogram(folder / "p/truth.trx"));
  ASSERT_EQ(tractogram.groups.size(), truth.bundles.size());
  for (const Bundle& bundle : truth.bundles) {
    const auto group = std::find_if(tractogram.groups.begin(), tractogram.groups.end(),
                                    [&](const TractogramGroup& g) { return g.name == bundle.name(); });
    ASSERT_NE(group, tractogram.groups.end());
    ASSERT_EQ(group->streamlines.size(), 19u);
    const auto centre = tractogram.streamlines.streamline(group->streamlines[0]);
    for (std::size_t i = 0; i < centre.size(); i += 3) {
      EXPECT_LT(bundle.position({centre[i], centre[i + 1], centre[i + 2]}).distance, 1e-5);
    }
  }
}

TEST(PhantomFiles, damaged_descriptions_are_refused_with_the_place) {
  TemporaryFolder folder;
  ASSERT_OK(write(small("helix"), folder / "p"));
  const std::string text = folder.content("p/phantom.json");
  ASSERT_OK(parse_phantom(text));
  using Json = nlohmann::ordered_json;
  const auto refused = [&](const char* pointer, const Json& value, const char* message) {
    Json json = Json::parse(text);
    json[Json::json_pointer(pointer)] = value;
    return testing::fails_with(parse_phantom(json.dump()), parse_phantom(json.dump()).error().kind(), message);
  };
  EXPECT_TRUE(refused("/format", "other", "format 'other'"));
  EXPECT_TRUE(refused("/version", 2, "version 2"));
  EXPECT_TRUE(refused("/geometry/size/0", -4, "voxels"));
  EXPECT_TRUE(refused("/geometry/size", Json::array({30000, 30000, 30000}), "voxels"));
  EXPECT_TRUE(refused("/geometry/voxel_to_world/0", Json::array({0, 0, 0, 0}), "inverted"));
  EXPECT_TRUE(refused("/bundles", Json::array(), "phantom.bundles is not a list"));
  EXPECT_TRUE(refused("/bundles/0/name", "../../x", "name"));
  EXPECT_TRUE(refused("/bundles/0/name", 7, "phantom.bundles[0].name is not a text"));
  EXPECT_TRUE(refused("/bundles/0/end_mm", -1, "end regions"));
  EXPECT_TRUE(refused("/bundles/0/radius_mm/0/1", 1e9, "a radius"));
  EXPECT_TRUE(refused("/bundles/0/radius_mm/0/1", nullptr, "is not a number"));
  EXPECT_TRUE(refused("/bundles/0/centre_line/0/helix/sweep", 1e300, "too large"));
  EXPECT_TRUE(refused("/bundles/0/centre_line/0", Json::object(), "has no member 'helix'"));
  // Cut anywhere it fails, and never otherwise.
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 97) EXPECT_FALSE(parse_phantom(text.substr(0, cut))) << cut;
}

TEST(PhantomFiles, a_write_that_fails_leaves_no_description) {
  TemporaryFolder folder;
  PhantomRequest request = small("straight");
  std::filesystem::create_directories(folder / "p/fod.nii.gz");  // a folder where a file must go
  EXPECT_FALSE(write(request, folder / "p", 2, true));
  EXPECT_FALSE(std::filesystem::exists(folder / "p/phantom.json"));
}

// Steps are powers of two from 1/64 on; the brightest tissue is the largest number of 16 bits that they may give.
TEST(PhantomFiles, steps_of_the_series_are_as_fine_as_the_brightest_tissue_allows) {
  TemporaryFolder folder;
  PhantomRequest request = small("straight");
  request.snr = 0;
  request.type = SeriesType::int16;
  const auto slope = [&](double brightest, const char* name) {
    request.signals.fluid_s0 = brightest;
    EXPECT_TRUE(write(request, folder / name));
    return NiftiReader::open(folder / name / "dwi.nii.gz").value().header().slope;
  };
  EXPECT_EQ(slope(32767 / 64.0, "fits"), 1.0 / 64);
  EXPECT_EQ(slope(32768 / 64.0, "does_not"), 1.0 / 32);
}

TEST(PhantomFiles, the_series_is_exact_without_noise_and_fine_enough_with_it) {
  TemporaryFolder folder;
  PhantomRequest request = small("straight");
  request.snr = 0;
  ASSERT_OK(write(request, folder / "exact"));
  request.snr = 30;
  ASSERT_OK(write(request, folder / "int16"));
  request.type = SeriesType::float32;
  ASSERT_OK(write(request, folder / "float32"));
  ASSERT_OK_AND_ASSIGN(NiftiReader reader, NiftiReader::open(folder / "exact/dwi.nii.gz"));
  EXPECT_EQ(reader.header().type.name(), "float32");
  ASSERT_OK_AND_ASSIGN(const Image coarse, read_image(folder / "int16/dwi.nii.gz"));
  ASSERT_OK_AND_ASSIGN(const Image fine, read_image(folder / "float32/dwi.nii.gz"));
  ASSERT_EQ(coarse.values.size(), fine.values.size());
  for (std::size_t i = 0; i < fine.values.size(); ++i) ASSERT_NEAR(coarse.values[i], fine.values[i], 100.0 / 30 / 64);
}

}  // namespace
}  // namespace cingulum
