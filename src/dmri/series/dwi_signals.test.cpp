#include "dmri/series/dwi_signals.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "formats/nifti.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

constexpr std::size_t voxel_count = 5 * 4 * 3;

float value_at(std::size_t volume, std::size_t voxel) {
  return static_cast<float>(1000 * volume + voxel);
}

std::filesystem::path write_series(const TemporaryFolder& folder, std::size_t volumes) {
  ImageGeometry geometry;
  geometry.size = {5, 4, 3};
  std::vector<float> values;
  for (std::size_t volume = 0; volume < volumes; ++volume) {
    for (std::size_t voxel = 0; voxel < voxel_count; ++voxel) values.push_back(value_at(volume, voxel));
  }
  if (volumes > 3) {
    values[3 * voxel_count + 7] = std::numeric_limits<float>::quiet_NaN();
    values[3 * voxel_count + 8] = std::numeric_limits<float>::infinity();
  }
  const std::filesystem::path path = folder / "series.nii.gz";
  EXPECT_TRUE(write_image(path, geometry, static_cast<std::int64_t>(volumes), values).has_value());
  return path;
}

std::vector<std::uint8_t> every_other_voxel() {
  std::vector<std::uint8_t> mask(voxel_count, 0);
  for (std::size_t i = 1; i < voxel_count; i += 2) mask[i] = 1;
  return mask;
}

TEST(dwi_signals, records_hold_the_volumes_of_each_voxel_of_the_mask) {
  const TemporaryFolder folder;
  for (const std::size_t volumes : {1U, 15U, 16U, 17U, 40U}) {
    std::filesystem::remove(folder / "series.nii.gz");
    const auto signals = read_dwi_signals(write_series(folder, volumes), every_other_voxel());
    ASSERT_TRUE(signals.has_value()) << signals.error().message();
    EXPECT_EQ(signals->volumes, volumes);
    ASSERT_EQ(signals->voxels.size(), voxel_count / 2);
    EXPECT_EQ(signals->replaced, volumes > 3 ? 1U : 0U);
    for (std::size_t i = 0; i < signals->voxels.size(); ++i) {
      EXPECT_EQ(signals->voxels[i], 2 * i + 1);
      for (std::size_t volume = 0; volume < volumes; ++volume) {
        const bool replaced = volume == 3 && signals->voxels[i] == 7;
        EXPECT_EQ(signals->record(i)[volume], replaced ? 0.0f : value_at(volume, signals->voxels[i]));
      }
    }
  }
}

TEST(dwi_signals, chosen_volumes_come_in_their_order) {
  const TemporaryFolder folder;
  const std::vector<std::size_t> chosen = {0, 2, 5, 6, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 39};
  const auto signals = read_dwi_signals(write_series(folder, 40), every_other_voxel(), chosen);
  ASSERT_TRUE(signals.has_value()) << signals.error().message();
  ASSERT_EQ(signals->volumes, chosen.size());
  for (std::size_t j = 0; j < chosen.size(); ++j) EXPECT_EQ(signals->record(4)[j], value_at(chosen[j], 9));
}

TEST(dwi_signals, masks_and_volumes_that_do_not_fit_are_refused) {
  const TemporaryFolder folder;
  const auto path = write_series(folder, 4);
  const auto message = [&](const std::vector<std::uint8_t>& mask, const std::vector<std::size_t>& volumes) {
    const auto signals = read_dwi_signals(path, mask, volumes);
    return signals ? std::string("accepted") : signals.error().message();
  };
  EXPECT_NE(message(std::vector<std::uint8_t>(7, 1), {}).find("the mask has 7 voxels, the series 60"),
            std::string::npos);
  EXPECT_NE(message(std::vector<std::uint8_t>(voxel_count, 0), {}).find("no voxel is in the mask"), std::string::npos);
  EXPECT_NE(message(every_other_voxel(), {4}).find("volume 4 is asked for, the series has 4"), std::string::npos);
  EXPECT_NE(message(every_other_voxel(), {2, 1}).find("1 follows 2"), std::string::npos);
}

}  // namespace
}  // namespace cingulum
