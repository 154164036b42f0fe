#include "oct/run/reconstruction.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "oct/fits/tile_depths.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/run/tile_summary.hpp"
#include "oct/simulate/simulated_files.hpp"
#include "oct/volume/slab_volume.hpp"
#include "support/each_device.hpp"
#include "support/plain_simulation.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace run_tests {

TEST(OctTileDepths, depths_are_those_that_overlaps_show_and_a_slope_of_the_sample_stays) {
  // Four tiles in a row at steps of 10 pixels, a surface that falls by 0.3 planes a pixel, and depths.
  const std::vector<double> depths = {1.5, -0.5, 0.25, -1.25};
  std::vector<HostImage> interfaces;
  std::vector<OverlapPair> pairs;
  for (std::size_t t = 0; t < depths.size(); ++t) {
    HostImage map(8, 16);
    for (std::size_t r = 0; r < map.rows; ++r) {
      for (std::size_t c = 0; c < map.columns; ++c)
        map.at(r, c) = 20 + 0.3 * static_cast<double>(10 * t + c) + depths[t];
    }
    interfaces.push_back(map);
    if (t > 0) pairs.push_back({t - 1, t, {0, 10}});
  }
  interfaces.emplace_back();  // missing
  const std::vector<double> found = fit_tile_depths(interfaces, pairs);
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t t = 0; t < depths.size(); ++t) EXPECT_NEAR(found[t], depths[t], 0.02) << t;
  EXPECT_EQ(found[4], 0.0);
}

// What sum_layers() gives of a tile is its test's matter (oct_kernels.test.cpp).
TEST(OctTileSummary, sums_along_lines_become_means_and_logarithms) {
  constexpr std::size_t planes = 48, lines = 24;
  ASSERT_EQ(layers_of(planes), 3u);
  ASSERT_EQ(projected_planes(planes), 16u);
  std::vector<float> surface(lines), sums(5 * lines);
  for (std::size_t i = 0; i < lines; ++i) {
    surface[i] = static_cast<float>(i < 20 ? 10 + i % 6 : 40);  // the last four have 5 planes of tissue
    for (std::size_t k = 0; k < 3; ++k) sums[k * lines + i] = static_cast<float>(8 * (k + 1));
    sums[3 * lines + i] = 32;
    sums[4 * lines + i] = 5;
  }
  const TileSummary summary = summary_of_sums({surface, sums, planes, 4, 6, 3});
  ASSERT_EQ(summary.layers.size(), 3u);
  std::uint64_t above = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    EXPECT_EQ(summary.projection.values[i], i < 20 ? 2.0 : 32.0 / 5) << i;
    EXPECT_NEAR(summary.layers[1].values[i], std::log(16.0), 1e-9);
    EXPECT_EQ(summary.interface.values[i], static_cast<double>(surface[i]));
    above += static_cast<std::uint64_t>(surface[i]) - 6;
  }
  EXPECT_EQ(summary.above_sum, 5.0 * lines);
  EXPECT_EQ(summary.above_count, above);
}

// Tissue that absorbs, with agarose around a disc of it or without.
HostVolume slice_of(bool agarose, double decay) {
  HostVolume slice(60, 96, 96);
  for (std::size_t z = 0; z < slice.planes; ++z) {
    for (std::size_t r = 0; r < slice.rows; ++r) {
      for (std::size_t c = 0; c < slice.columns; ++c) {
        const double y = static_cast<double>(r) - 47.5, x = static_cast<double>(c) - 47.5;
        const bool tissue = !agarose || y * y + x * x < 40.0 * 40.0;
        const double profile = agarose ? 1 / (1 + std::pow((static_cast<double>(z) - 20) / 40, 2)) : 1;
        const double lit = tissue ? std::exp(-decay * static_cast<double>(z)) : 0.1;
        slice.at(z, r, c) = static_cast<float>(lit * profile);
      }
    }
  }
  return slice;
}

DepthCorrections corrections_of_theory() {
  DepthCorrections corrections;
  corrections.attenuation = AttenuationOptions{};
  corrections.attenuation->strength = 1;
  corrections.attenuation->block_px = 32;
  return corrections;
}

TEST(OctDepthCorrections, depth_becomes_even_with_and_without_agarose) {
  for (const bool agarose : {false, true}) {
    SCOPED_TRACE(agarose);
    HostVolume slice = slice_of(agarose, 0.02);
    SlabVolume slabs(slice);
    const auto corrected = correct_depth(slabs, 0.0, corrections_of_theory(), nullptr);
    ASSERT_TRUE(corrected) << corrected.error().message();
    EXPECT_EQ(corrected->profile.empty(), !agarose);
    EXPECT_EQ(corrected->decisions.at(0).choice, agarose ? "divided out" : "left out");
    // Blocks at the edge of the tissue hold some agarose, which does not fall.
    const double bound = agarose ? 0.05 : 0.03;
    for (std::size_t z = 5; z < 60; ++z) EXPECT_NEAR(slice.at(z, 48, 48) / slice.at(0, 48, 48), 1, bound) << z;
  }
}

TEST(OctDepthCorrections, a_constant_stays_constant_to_the_bit) {
  HostVolume slice(40, 50, 70);
  for (float& value : slice.values) value = 0.37f;
  SlabVolume slabs(slice);
  const auto corrected = correct_depth(slabs, std::nullopt, corrections_of_theory(), nullptr);
  ASSERT_TRUE(corrected);
  for (const float value : slice.values) ASSERT_EQ(value, 0.37f);
}

// What a tree of files holds, by name.
std::map<std::string, std::string> files_under(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    files[std::filesystem::relative(entry.path(), folder).native()] = text.str();
  }
  return files;
}

TEST(OctSlabVolume, a_volume_in_a_file_is_walked_over_and_changed_as_one_in_memory) {
  const TemporaryFolder folder;
  HostVolume memory(7, 37, 5);
  for (std::size_t i = 0; i < memory.values.size(); ++i) memory.values[i] = static_cast<float>(i % 101);
  const HostVolume before = memory;
  for (const std::size_t at_a_time : {1u, 3u, 7u, 50u}) {
    SCOPED_TRACE(at_a_time);
    memory = before;
    SlabVolume whole(memory);
    auto file = SlabVolume::in_file(folder / "volume", {7, 37, 5}, at_a_time);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));  // it has no name
    std::size_t slabs = 0;
    ASSERT_TRUE(file->make_slabs([&](std::size_t first, HostVolume& slab) -> Status {
      ++slabs;
      EXPECT_LE(slab.planes, at_a_time);
      std::copy_n(before.plane(first).begin(), slab.values.size(), slab.values.begin());
      return {};
    }));
    EXPECT_EQ(slabs, (7 + at_a_time - 1) / at_a_time);
    for (SlabVolume* const volume : {&whole, &*file}) {
      ASSERT_TRUE(volume->change_slabs([](std::size_t first, HostVolume& slab) -> Status {
        for (std::size_t z = 0; z < slab.planes; ++z) {
          for (float& value : slab.plane(z)) value += static_cast<float>(first + z);
        }
        return {};
      }));
      ASSERT_TRUE(volume->change_bands([](std::size_t first, HostVolume& band) -> Status {
        EXPECT_EQ(band.planes, 7u);
        for (std::size_t z = 0; z < band.planes; ++z) {
          for (std::size_t r = 0; r < band.rows; ++r) band.at(z, r, 2) *= static_cast<float>(first + r);
        }
        return {};
      }));
    }
    HostVolume again(7, 37, 5);
    ASSERT_TRUE(file->read_box({0, 7, 0, 37}, again.values));
    EXPECT_EQ(again.values, memory.values);
    EXPECT_NE(again.values, before.values);
    std::vector<float> box(2 * 20 * 5), expected(box.size());
    ASSERT_TRUE(file->read_box({3, 2, 11, 20}, box));
    ASSERT_TRUE(whole.read_box({3, 2, 11, 20}, expected));
    EXPECT_EQ(box, expected);
    EXPECT_EQ(mean_projection(*file, nullptr)->values, mean_projection(memory).values);
  }
}

std::unique_ptr<TileStage> stage_on(Device& device) {
  InterfaceOptions interface;
  interface.sub_voxel = true;
  auto stage = TileStage::create(device, interface);
  EXPECT_TRUE(stage);
  return std::move(*stage);
}

Device& cpu() {
  return **testing::registry().select_one("cpu");
}

// Two slices of 2 x 3 tiles in a folder, and what a run of them needs.
struct SmallRun {
  SmallRun() {
    // Many planes, so that it is slices that take memory, and not what is stacked at a time.
    plan = mosaic_plan(0, {2, 3}, {240, 20, 20}, 4);
    plan.slices = 2;
    plan.interval_planes = 60;
    plan.tissue_radius = 0.8;
    EXPECT_TRUE(write_simulation_by_cpu(folder / "tiles", *make_scene(plan)));
    TileSetOptions opening;
    opening.axial_step_um = 3.5;
    set = *open_tiles(folder / "tiles", opening);
    options.pool = pool.get();
    options.run.progress.style = ProgressStyle::silent;
    options.placement.max_rejected = 1;
    options.corrections.attenuation = AttenuationOptions{};
    options.stages = {stage.get()};
  }

  SimulationPlan plan;
  TemporaryFolder folder;
  std::unique_ptr<ThreadPool> pool = std::move(*ThreadPool::create(2));
  TileSet set;
  std::unique_ptr<TileStage> stage = stage_on(cpu());
  ReconstructionOptions options;
};

TEST(OctRun, slices_that_go_through_files_have_the_bytes_of_those_in_memory) {
  SmallRun run;
  // By blocks; line by line after a median; and all planes of one level.
  for (const int how : {0, 1, 2}) {
    SCOPED_TRACE(how);
    AttenuationOptions& attenuation = *run.options.corrections.attenuation;
    attenuation.block_px = how == 1 ? 0 : 16;
    attenuation.window = how == 1 ? 3 : 1;
    run.options.corrections.normalise = how == 2;
    run.options.memory_bytes.reset();
    const auto in_memory = run_needs(run.set, run.options);
    ASSERT_TRUE(in_memory);
    EXPECT_FALSE(in_memory->slices_in_files);
    const std::filesystem::path expected = run.folder / fmt::format("memory{}", how);
    ASSERT_TRUE(reconstruct(run.set, expected, run.options));
    run.options.memory_bytes = 1;
    const auto least = run_needs(run.set, run.options);
    ASSERT_TRUE(least);
    EXPECT_EQ(least->slice_planes, 1u);
    EXPECT_EQ(least->kept_bytes, 0u);
    EXPECT_LT(least->memory_bytes, in_memory->memory_bytes);
    EXPECT_GT(least->work_bytes, in_memory->work_bytes);
    for (const std::uint64_t bytes : {std::uint64_t{1}, (least->memory_bytes + in_memory->memory_bytes) / 2}) {
      SCOPED_TRACE(bytes);
      run.options.memory_bytes = bytes;
      const auto needs = run_needs(run.set, run.options);
      ASSERT_TRUE(needs);
      EXPECT_TRUE(needs->slices_in_files);
      if (bytes > 1) {
        EXPECT_GT(needs->slice_planes, 1u);
        EXPECT_LE(needs->memory_bytes, bytes);
      }
      const std::filesystem::path work = run.folder / fmt::format("files{}-{}", how, bytes);
      const auto made = reconstruct(run.set, work, run.options);
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(files_under(work), files_under(expected));
    }
  }
}

// Removes a folder when slices begin to be made, that is after all tiles were looked at.
class RemovesTiles final : public ProgressObserver {
 public:
  explicit RemovesTiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void begin(const ProgressTask& task) override {
    if (task.label == "stitching") std::filesystem::remove_all(folder_);
  }
  void step(const ProgressTask&, const ProgressStep&) override {}
  void finish(const ProgressTask&, const ProgressStep&) override {}

 private:
  std::filesystem::path folder_;
};

TEST(OctRun, tiles_that_are_kept_are_read_once) {
  SimulationPlan plan = mosaic_plan(0, {2, 2}, {16, 24, 24}, 4);
  plan.slices = 2;
  plan.interval_planes = 4;
  const auto scene = make_scene(plan);
  ASSERT_TRUE(scene);
  const auto pool = ThreadPool::create(2);
  for (const bool kept : {false, true}) {
    SCOPED_TRACE(kept);
    const TemporaryFolder folder;
    const std::filesystem::path tiles = folder / "tiles";
    ASSERT_TRUE(write_simulation_by_cpu(tiles, *scene));
    TileSetOptions opening;
    opening.axial_step_um = 3.5;
    const auto set = open_tiles(tiles, opening);
    ASSERT_TRUE(set);
    ReconstructionOptions options;
    options.pool = pool->get();
    options.run.progress.style = ProgressStyle::silent;
    options.placement.max_rejected = 1;
    options.kept_tile_bytes = kept ? std::uint64_t{1} << 30 : 0;
    RemovesTiles removing(tiles);
    options.run.progress.observer = &removing;
    const auto stage = stage_on(cpu());
    options.stages = {stage.get()};
    const auto needs = run_needs(*set, options);
    ASSERT_TRUE(needs);
    EXPECT_EQ(needs->kept_bytes, 4 * needs->tile_bytes + options.kept_tile_bytes);
    const auto made = reconstruct(*set, folder / "work", options);
    EXPECT_EQ(made.has_value(), kept) << (made ? "" : made.error().message());
    if (!made) {
      EXPECT_NE(made.error().message().find("slice 1"), std::string::npos) << made.error().message();
    }
  }
}

class OctRunDevices : public testing::EachDevice {};

// Tiles that are kept on a device, in memory, or read again; on it alone and together with the processor.
TEST_P(OctRunDevices, slices_have_the_bytes_of_the_processor) {
  SmallRun run;
  run.options.resolution_um = 5.0;
  const std::filesystem::path expected = run.folder / "cpu";
  ASSERT_TRUE(reconstruct(run.set, expected, run.options));
  const auto stage = stage_on(device());
  std::vector<std::vector<TileStage*>> lists = {{stage.get()}, {run.stage.get(), stage.get()}};
  for (std::size_t list = 0; list < lists.size(); ++list) {
    for (const int kept : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("list {}, kept {}", list, kept));
      run.options.stages = lists[list];
      run.options.kept_tile_bytes = kept == 1 ? std::uint64_t{1} << 30 : 0;
      run.options.memory_bytes.reset();
      if (kept == 2) run.options.memory_bytes = 1;  // through files, no tile is kept
      const std::filesystem::path work = run.folder / fmt::format("{}-{}", list, kept);
      const auto made = reconstruct(run.set, work, run.options);
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(files_under(work), files_under(expected));
    }
  }
}

CGL_FOR_EACH_DEVICE(OctRunDevices);

}  // namespace run_tests
}  // namespace cingulum::oct
