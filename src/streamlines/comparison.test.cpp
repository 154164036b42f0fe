#include "streamlines/comparison.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"
#include "streamlines/density_map.hpp"

namespace cingulum {
namespace {

ImageGeometry grid() {
  ImageGeometry g;
  g.size = {10, 10, 10};
  g.voxel_to_world.rows = {2, 0, 0, -9, 0, 2, 0, -9, 0, 0, 2, -9};  // world 0 is the middle
  return g;
}

class comparison : public ::testing::Test {
 protected:
  ~comparison() override {
    for (const auto& path : paths_) std::filesystem::remove(path);
  }

  std::filesystem::path write(const std::string& name, const std::vector<std::vector<float>>& streamlines,
                              std::vector<TractogramGroup> groups = {}, const std::vector<float>& weights = {}) {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / ("comparison_" + name + ".trx");
    paths_.push_back(path);
    TractogramLayout layout;
    layout.reference = grid();
    if (!weights.empty()) layout.streamline_fields.push_back({.name = "weight", .type = {}, .columns = 1});
    auto writer = TractogramWriter::create(path, layout, {.force = true}).value();
    TractogramBatch batch;
    for (const auto& points : streamlines) {
      batch.positions.insert(batch.positions.end(), points.begin(), points.end());
      batch.offsets.push_back(batch.positions.size() / 3);
    }
    if (!weights.empty()) {
      batch.streamline_data.resize(1);
      batch.streamline_data[0].resize(weights.size() * sizeof(float));
      std::memcpy(batch.streamline_data[0].data(), weights.data(), weights.size() * sizeof(float));
    }
    EXPECT_TRUE(writer->append(batch));
    for (auto& group : groups) EXPECT_TRUE(writer->add_group(std::move(group)));
    EXPECT_TRUE(writer->commit());
    return path;
  }

  std::vector<std::filesystem::path> paths_;
};

TEST_F(comparison, counts_lengths_and_crossings_of_the_midline_are_those_of_the_streamlines) {
  const auto path = write("summary", {{-5, 1, 1, 5, 1, 1}, {1, 1, 1, 1, 5, 1}, {-3, 1, 1, -3, 1, 4, -3, 5, 4}});
  EXPECT_EQ(middle_world_x(grid()), 0);
  const auto summary = summarise_tractogram(path, grid(), 0).value();
  EXPECT_EQ(summary.streamlines, 3u);
  EXPECT_EQ(summary.points, 7u);
  EXPECT_EQ(summary.commissural, 1u);
  EXPECT_NEAR(summary.mean_length_mm, (10 + 4 + 7) / 3.0, 1e-9);
  EXPECT_NEAR(summary.median_length_mm, 7, 0.06);
  EXPECT_EQ(summary.largest_length_mm, 10);
  EXPECT_EQ(summary.outside_grid, 0u);
  // World x from -5 to 5 mm: voxels 2 to 7.
  std::uint32_t in_row = 0;
  for (std::int64_t i = 2; i <= 7; ++i)
    in_row += summary.density[static_cast<std::size_t>(voxel_index(grid(), i, 5, 5))];
  EXPECT_EQ(in_row, 6u + 1u + 1u);  // and where the others begin
}

// The midline itself belongs to the side of greater x, and so does what ends on it.
TEST_F(comparison, a_streamline_that_ends_on_the_midline_has_its_end_on_the_right) {
  const auto crossings = [&](const std::string& name, const std::vector<float>& points) {
    return summarise_tractogram(write(name, {points}), grid(), 0).value().commissural;
  };
  EXPECT_EQ(crossings("to_it", {-5, 1, 1, 0, 1, 1}), 1u);
  EXPECT_EQ(crossings("from_it", {0, 1, 1, -5, 1, 1}), 1u);
  EXPECT_EQ(crossings("right_of_it", {0, 1, 1, 5, 1, 1}), 0u);
  EXPECT_EQ(crossings("and_back", {5, 1, 1, 0, 1, 1}), 0u);
  EXPECT_EQ(crossings("along_it", {0, 1, 1, 0, 5, 1}), 0u);
}

// One goes over and back, one stays, one goes over, one only touches the plane from the right, one has but a point.
TEST_F(comparison, what_crosses_the_midline_and_comes_back_is_counted_as_crossing_alone) {
  const auto path = write("back", {{-5, 1, 1, 2, 1, 1, -4, 1, 1},
                                   {-5, 1, 1, -2, 1, 1, -4, 1, 1},
                                   {5, 1, 1, -1, 1, 1},
                                   {5, 1, 1, 0, 1, 1, 4, 1, 1},
                                   {1, 1, 1}});
  const auto summary = summarise_tractogram(path, grid(), 0).value();
  EXPECT_EQ(summary.commissural, 1u);
  EXPECT_EQ(summary.crossing_midline, 2u);
  const auto shifted = summarise_tractogram(path, grid(), 0.5).value();
  EXPECT_EQ(shifted.commissural, 1u);
  EXPECT_EQ(shifted.crossing_midline, 3u);
}

TEST_F(comparison, a_streamline_counts_once_in_a_voxel_and_what_leaves_the_grid_is_said) {
  const auto path = write("once", {{0.5f, 1, 1, 0.6f, 1, 1, 0.5f, 1, 1}, {1, 1, 1, 1, 1, 50}});
  const auto summary = summarise_tractogram(path, grid(), 0).value();
  EXPECT_EQ(summary.density[static_cast<std::size_t>(voxel_index(grid(), 5, 5, 5))], 2u);
  EXPECT_EQ(summary.outside_grid, 1u);
}

// A stray point must not take the voxels away that the streamline passes on its way: the report counts them, too.
TEST_F(comparison, a_segment_to_a_far_place_counts_in_the_voxels_that_it_passes) {
  const float far = 1e8f;
  const auto path = write("far", {{-9, 1, 1, far, 1, 1}, {far, 1, 1, -9, 1, 1}, {-far, 1, 1, far, 1, 1}});
  const auto summary = summarise_tractogram(path, grid(), 0).value();
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(summary.density[static_cast<std::size_t>(voxel_index(grid(), i, 5, 5))], 3u) << i;
  }
  EXPECT_EQ(summary.outside_grid, 3u);

  const auto reader = TractogramReader::open(path).value();
  TractogramBatch batch;
  ASSERT_TRUE(reader->next(batch, default_batch_points, true).value());
  DensityMap map = DensityMap::create(grid()).value();
  map.add(batch, std::vector<std::uint8_t>(3, 0), **ThreadPool::create(1));
  EXPECT_EQ(map.counts(), summary.density);
}

TEST_F(comparison, a_point_that_is_not_finite_takes_its_two_segments_and_no_more) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int64_t> voxels;
  const Affine to_voxel = grid().voxel_to_world.inverse().value();
  const std::vector<float> points = {-9, 1, 1, -5, 1, 1, nan, 1, 1, 5, 1, 1, 9, 1, 1};
  EXPECT_FALSE(collect_passed_voxels(grid(), to_voxel, points, voxels));
  EXPECT_EQ(voxels, (std::vector<std::int64_t>{550, 551, 552, 557, 558, 559}));
}

TEST_F(comparison, overlap_is_dice_and_its_weighted_form) {
  const VoxelOverlap overlap = voxel_overlap({3, 1, 0, 0}, {2, 0, 2, 0});
  EXPECT_EQ(overlap.shared, 1u);
  EXPECT_DOUBLE_EQ(overlap.dice, 0.5);
  EXPECT_DOUBLE_EQ(overlap.weighted_dice, (0.75 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(voxel_overlap({0}, {0}).dice, 1);
  EXPECT_DOUBLE_EQ(voxel_overlap({1}, {0}).dice, 0);
  EXPECT_DOUBLE_EQ(voxel_overlap({1}, {0}).weighted_dice, 0);
}

TEST_F(comparison, groups_have_their_own_maps) {
  const auto path = write("groups", {{1, 1, 1, 1, 5, 1}, {-3, 1, 1, -3, 1, 4}},
                          {{.name = "left", .streamlines = {1}, .fields = {}, .data = {}},
                           {.name = "both", .streamlines = {0, 1}, .fields = {}, .data = {}}});
  const auto summary = summarise_tractogram(path, grid(), 0).value();
  ASSERT_EQ(summary.group_density.size(), 2u);
  EXPECT_EQ(summary.group_density.at("both"), summary.density);
  EXPECT_EQ(voxel_overlap(summary.group_density.at("left"), summary.density).shared,
            3u);  // z from 1 to 4 mm: voxels 5, 6, 7
}

TEST_F(comparison, equal_files_have_no_difference_and_the_first_one_is_named) {
  const std::vector<std::vector<float>> lines = {{0, 0, 0, 1, 1, 1}, {2, 2, 2, 3, 3, 3, 4, 4, 4}};
  const auto a = write("a", lines);
  EXPECT_EQ(first_difference(a, write("same", lines)).value(), std::nullopt);
  auto moved = lines;
  moved[1][4] = 3.5f;
  const auto difference = first_difference(a, write("moved", moved)).value();
  ASSERT_TRUE(difference);
  EXPECT_EQ(*difference, "streamline 1, point 1 of 3: (3 3 3) against (3 3.5 3), 0.5 mm apart");
  auto shorter = lines;
  shorter.pop_back();
  EXPECT_NE(first_difference(a, write("shorter", shorter)).value()->find("second file ends after 1"),
            std::string::npos);
  auto cut = lines;
  cut[0].resize(3);
  EXPECT_NE(first_difference(a, write("cut", cut)).value()->find("streamline 0 has 2 points"), std::string::npos);
  const auto weighted = write("weighted", lines, {}, {1, 2});
  EXPECT_NE(first_difference(a, weighted).value()->find("second file only"), std::string::npos);
  EXPECT_EQ(first_difference(weighted, write("weighted_too", lines, {}, {1, 2})).value(), std::nullopt);
  EXPECT_NE(first_difference(weighted, write("other_weight", lines, {}, {1, 3})).value()->find("'weight'"),
            std::string::npos);
  const auto grouped = write("grouped", lines, {{.name = "g", .streamlines = {1}, .fields = {}, .data = {}}});
  EXPECT_NE(first_difference(a, grouped).value()->find("group 'g'"), std::string::npos);
}

}  // namespace
}  // namespace cingulum
