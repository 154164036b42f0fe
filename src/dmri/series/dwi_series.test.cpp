#include "dmri/series/dwi_series.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/nifti.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

// A bright ball of crossing tensors in a dark image, with noise: enough for a mask and a tensor.
struct Arrays {
  SeriesHead head;
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
};

Arrays make_arrays() {
  Arrays arrays;
  ImageGeometry& geometry = arrays.head.geometry;
  geometry.size = {16, 15, 14};
  geometry.voxel_to_world.rows = {2, 0, 0, -15, 0, 2, 0, -14, 0, 0, 2.5, -16};
  const auto sphere = named_sphere("small");
  arrays.head.table.b_values = {0, 5};
  arrays.head.table.vectors = {{0, 0, 0}, {0, 0, 0}};
  for (std::size_t i = 0; i < sphere->size(); i += 11) {
    arrays.head.table.b_values.push_back(i % 2 == 0 ? 1000 : 2000);
    arrays.head.table.vectors.push_back(sphere->directions[i]);
  }
  std::mt19937 random(4);
  std::normal_distribution<double> noise(0, 3);
  for (std::size_t volume = 0; volume < arrays.head.table.size(); ++volume) {
    for (std::int64_t k = 0; k < 14; ++k) {
      for (std::int64_t j = 0; j < 15; ++j) {
        for (std::int64_t i = 0; i < 16; ++i) {
          const double x = static_cast<double>(i) - 7.5, y = static_cast<double>(j) - 7, z = static_cast<double>(k) - 7;
          const bool inside = x * x + y * y + z * z < 30;
          const double along = arrays.head.table.vectors[volume].x;
          const double signal =
              (inside ? 800 : 10) * std::exp(-arrays.head.table.b_values[volume] * (0.3e-3 + 1e-3 * along * along));
          arrays.values.push_back(static_cast<float>(std::abs(signal + noise(random))));
          if (volume == 0) arrays.mask.push_back(inside ? 1 : 0);
        }
      }
    }
  }
  return arrays;
}

SeriesFiles write_files(const Arrays& arrays, const TemporaryFolder& folder) {
  SeriesFiles files = {.dwi = folder / "dwi.nii.gz",
                       .bvals = folder / "dwi.bval",
                       .bvecs = folder / "dwi.bvec",
                       .grad = {},
                       .mask = folder / "mask.nii.gz"};
  const auto& geometry = arrays.head.geometry;
  EXPECT_TRUE(write_image(files.dwi, geometry, static_cast<std::int64_t>(arrays.head.table.size()), arrays.values));
  const std::vector<float> mask(arrays.mask.begin(), arrays.mask.end());
  EXPECT_TRUE(write_image(files.mask, geometry, 1, mask));
  EXPECT_TRUE(write_file_atomically(files.bvals, format_bvals(arrays.head.table), {}));
  EXPECT_TRUE(write_file_atomically(files.bvecs, format_bvecs(arrays.head.table), {}));
  return files;
}

TEST(dwi_series, arrays_and_files_give_the_same_series_with_a_mask_and_without) {
  const TemporaryFolder folder;
  const Arrays arrays = make_arrays();
  SeriesFiles files = write_files(arrays, folder);
  const auto pool = ThreadPool::create(2);
  for (const bool masked : {true, false}) {
    if (!masked) files.mask.clear();
    const auto head = read_series_head(files);
    ASSERT_TRUE(head) << head.error().message();
    const auto read = read_series(files, *head, {.frame = WantedFrame::voxel}, **pool);
    ASSERT_TRUE(read) << read.error().message();
    // The head that was read: text rounds vectors.
    const auto taken =
        series_of_arrays(*head, arrays.values, masked ? std::span(arrays.mask) : std::span<const std::uint8_t>(),
                         {.frame = WantedFrame::voxel}, **pool);
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(read->mask_made, !masked);
    EXPECT_EQ(taken->mask_made, !masked);
    EXPECT_EQ(read->mask.mask, taken->mask.mask);
    EXPECT_GT(read->mask.voxels, 100U);
    EXPECT_EQ(read->mask.voxels, taken->mask.voxels);
    EXPECT_EQ(read->dwi.signals.voxels, taken->dwi.signals.voxels);
    ASSERT_EQ(read->dwi.signals.values.size(), taken->dwi.signals.values.size());
    EXPECT_TRUE(std::equal(read->dwi.signals.values.begin(), read->dwi.signals.values.end(),
                           taken->dwi.signals.values.begin()));
    ASSERT_TRUE(read->frame.check && taken->frame.check);
    EXPECT_EQ(read->frame.check->message, taken->frame.check->message);
    ASSERT_EQ(read->dwi.directions.size(), taken->dwi.directions.size());
    for (std::size_t i = 0; i < read->dwi.directions.size(); ++i) {
      EXPECT_EQ(read->dwi.directions[i].x, taken->dwi.directions[i].x);
    }
  }
}

TEST(dwi_series, a_run_that_is_cancelled_reads_no_series_and_leaves_other_runs_alone) {
  const TemporaryFolder folder;
  const Arrays arrays = make_arrays();
  SeriesFiles files = write_files(arrays, folder);
  const auto pool = ThreadPool::create(1);
  CancelSource stopped;
  stopped.cancel();
  const FitMachine machine(**pool, nullptr, stopped.token());
  const SeriesRequest request = {.check_frame = false};
  for (const bool masked : {true, false}) {
    if (!masked) files.mask.clear();
    const auto head = read_series_head(files);
    ASSERT_TRUE(head);
    const auto read = read_series(files, *head, request, machine);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind(), ErrorKind::interrupted);
    const auto taken = series_of_arrays(
        *head, arrays.values, masked ? std::span(arrays.mask) : std::span<const std::uint8_t>(), request, machine);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().kind(), ErrorKind::interrupted);
    EXPECT_TRUE(read_series(files, *head, request, **pool));
  }
}

TEST(dwi_series, a_frame_that_is_known_is_not_checked) {
  const Arrays arrays = make_arrays();
  const auto pool = ThreadPool::create(1);
  const auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, {.check_frame = false}, **pool);
  ASSERT_TRUE(series);
  EXPECT_FALSE(series->frame.check);
  EXPECT_EQ(series->frame.frame, arrays.head.table.frame);
}

TEST(dwi_series, a_table_of_another_length_is_refused_with_both_counts) {
  const TemporaryFolder folder;
  Arrays arrays = make_arrays();
  arrays.head.table.b_values.pop_back();
  arrays.head.table.vectors.pop_back();
  const std::size_t volumes = arrays.head.table.size();
  const auto pool = ThreadPool::create(1);
  const auto series = series_of_arrays(arrays.head, arrays.values, arrays.mask, {}, **pool);
  ASSERT_FALSE(series);
  EXPECT_NE(series.error().message().find(fmt::format("{} volumes", volumes + 1)), std::string::npos);
  EXPECT_NE(series.error().message().find(fmt::format("{} b-values", volumes)), std::string::npos);
  arrays.values.pop_back();
  EXPECT_FALSE(series_of_arrays(arrays.head, arrays.values, arrays.mask, {}, **pool));
}

TEST(dwi_series, restricted_signals_keep_volumes_voxels_and_their_counts_of_replaced_values) {
  ImageGeometry geometry;
  geometry.size = {2, 2, 1};
  std::vector<float> values(4 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  values[4 + 1] = std::numeric_limits<float>::quiet_NaN();
  values[2 * 4 + 3] = std::numeric_limits<float>::infinity();
  const std::vector<std::uint8_t> mask = {0, 1, 1, 1};
  auto signals = take_dwi_signals(geometry, VolumeArray(values, 4), mask);
  ASSERT_TRUE(signals);
  EXPECT_EQ(signals->replaced, 2U);
  const std::vector<std::size_t> volumes = {0, 2, 4};
  const std::vector<std::uint8_t> voxels = {1, 1, 0, 1};
  restrict_signals(*signals, volumes, voxels);
  EXPECT_EQ(signals->voxels, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(signals->volumes, 3U);
  const std::vector<float> expected = {1, 9, 17, 3, 0, 19};
  EXPECT_TRUE(std::equal(signals->values.begin(), signals->values.end(), expected.begin(), expected.end()));
  EXPECT_EQ(signals->replaced, 1U);
}

}  // namespace
}  // namespace cingulum
