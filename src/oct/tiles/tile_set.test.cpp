#include "oct/tiles/tile_set.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "oct/simulate/simulated_files.hpp"
#include "oct/tiles/galvo_band.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "support/plain_simulation.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace tile_set_tests {

namespace fs = std::filesystem;

SimulationPlan tiny_plan() {
  SimulationPlan plan = mosaic_plan(3, {2, 3}, {12, 10, 16}, 4);
  plan.slices = 2;
  plan.interval_planes = 4;
  return plan;
}

struct Simulated {
  TemporaryFolder folder;
  SimulatedScene scene;
  fs::path path;

  explicit Simulated(const SimulationPlan& plan, SimulatedFilesOptions options = {}) {
    auto made = make_scene(plan);
    EXPECT_TRUE(made);
    scene = std::move(*made);
    path = folder / "tiles";
    const auto written = write_simulation_by_cpu(path, scene, options);
    EXPECT_TRUE(written) << written.error().message();
  }
};

TileSetOptions with_step() {
  TileSetOptions options;
  options.axial_step_um = 3.5;
  return options;
}

std::string refusal(const fs::path& path, const TileSetOptions& options = with_step()) {
  const auto set = open_tiles(path, options);
  return set ? std::string("accepted") : set.error().message();
}

void expect_has(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(OctTiles, raw_tiles_come_back_as_they_were_simulated) {
  SimulationPlan plan = tiny_plan();
  plan.galvo_lines = 4;
  SimulatedFilesOptions options;
  options.files_per_tile = 3;
  const Simulated simulated(plan, options);
  const auto set = open_tiles(simulated.path, with_step());
  ASSERT_TRUE(set) << set.error().message();
  EXPECT_EQ(set->tiles.size(), 12u);
  EXPECT_EQ(set->shape, (std::array<std::size_t, 3>{12, 10, 16}));
  EXPECT_EQ(set->extra_lines, 4u);
  EXPECT_EQ(set->slices(), (std::vector<std::size_t>{0, 1}));
  EXPECT_NEAR(set->voxel_um[2], 10.0, 1e-12);
  EXPECT_NEAR(set->voxel_um[0], 3.5, 1e-12);
  const TileRecord& tile = set->tiles[7];  // slice 1, row 0, column 1
  EXPECT_EQ(tile.slice, 1u);
  EXPECT_EQ(tile.column, 1u);
  EXPECT_EQ(tile.images.size(), 3u);
  EXPECT_NEAR(tile.stage_mm[2], 0.13, 1e-12);  // a step of 13 pixels of 10 um
  std::uint64_t replaced = 0;
  const auto raw = read_tile(*set, tile, replaced);
  ASSERT_TRUE(raw);
  const HostVolume truth = simulate_tile(simulated.scene, 7);
  EXPECT_EQ(without_band(*raw, 4, simulated.scene.galvo_last_line).values, truth.values);
  EXPECT_EQ(replaced, 0u);
}

TEST(OctTiles, a_table_of_tiles_gives_the_same_voxels) {
  SimulatedFilesOptions options;
  options.layout = SimulatedLayout::table;
  const Simulated simulated(tiny_plan(), options);
  const auto set = open_tiles(simulated.path / "tiles.csv");
  ASSERT_TRUE(set) << set.error().message();
  EXPECT_NEAR(set->voxel_um[0], 3.5, 1e-9);
  std::uint64_t replaced = 0;
  const auto voxels = read_tile(*set, set->tiles[4], replaced);
  ASSERT_TRUE(voxels) << voxels.error().message();
  EXPECT_EQ(voxels->values, simulate_tile(simulated.scene, 4).values);
}

TEST(OctTiles, sizes_that_do_not_fit_name_both_numbers) {
  const Simulated simulated(tiny_plan());
  const fs::path image = simulated.path / "tile_x01_y01_z00/image_00000.bin";
  fs::resize_file(image, 12 * 16 * 4 * 9);
  expect_has(refusal(simulated.path), {"tile_x01_y01_z00", "6912 bytes", "7680", "info.txt"});
  fs::resize_file(image, 12 * 16 * 4 * 9 + 4);
  expect_has(refusal(simulated.path), {"image_00000.bin", "6916 bytes", "768"});
}

TEST(OctTiles, a_missing_tile_or_slice_is_named_and_allowed_on_request) {
  const Simulated simulated(tiny_plan());
  fs::remove_all(simulated.path / "tile_x01_y00_z01");
  expect_has(refusal(simulated.path), {"tile x01 y00 z01 is missing", "allow_missing"});
  TileSetOptions options = with_step();
  options.allow_missing = true;
  const auto set = open_tiles(simulated.path, options);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->missing, std::vector<std::string>{"tile x01 y00 z01"});
  const auto grid = grid_of_slice(*set, 1);
  ASSERT_TRUE(grid);
  EXPECT_TRUE(grid->tiles[1].missing);
  EXPECT_NEAR(grid->tiles[1].stage_px[1], 13.0, 1e-9);  // a place, but nothing else is invented
  EXPECT_NEAR(grid->tiles[1].stage_px[0], 0.0, 1e-9);
  for (const auto& entry : fs::directory_iterator(simulated.path)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("tile_") || !name.ends_with("_z01")) continue;
    fs::rename(entry.path(), simulated.path / (name.substr(0, name.size() - 2) + "03"));
  }
  expect_has(refusal(simulated.path), {"slice z01 is missing", "more"});
}

TEST(OctTiles, doubled_ids_are_refused_by_name) {
  const Simulated simulated(tiny_plan());
  fs::copy(simulated.path / "tile_x01_y01_z01", simulated.path / "tile_x1_y01_z01");
  expect_has(refusal(simulated.path), {"tile x01 y01 z01 is there twice", "tile_x1_y01_z01"});
}

TEST(OctTiles, raw_tiles_need_the_axial_step) {
  const Simulated simulated(tiny_plan());
  const auto set = open_tiles(simulated.path, {});
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().kind(), ErrorKind::invalid_argument);
  expect_has(set.error().message(), {"axial_step"});
}

TEST(OctTiles, tiles_of_another_size_are_refused_by_name) {
  const Simulated simulated(tiny_plan());
  const fs::path info = simulated.path / "tile_x02_y01_z01/info.txt";
  std::ifstream in(info);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.replace(text.find("ny: 10"), 6, "ny: 11");
  std::ofstream(info) << text;
  expect_has(refusal(simulated.path), {"tile_x02_y01_z01", "ny is 11", "is 10"});
}

TEST(OctTiles, info_text_is_read_strictly) {
  const std::string good =
      "nx: 4\nny: 5\nn_extra: 1\nwidth: 40\nheight: 50\ntop_z: 10\nbottom_z: 29\nfocus_z: 15\n"
      "stage_x_pos_mm: 1\nstage_y_pos_mm: 2\nstage_z_pos_mm: 3\nother: words\n";
  const auto info = parse_tile_info(good);
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->nz, 20u);
  EXPECT_EQ(info->repeats, 1u);
  EXPECT_EQ(info->focus, 5.0);
  EXPECT_EQ(info->stage_mm, (std::array<double, 3>{3, 2, 1}));
  expect_has(parse_tile_info("nx: 4\n").error().message(), {"'ny' is missing"});
  expect_has(parse_tile_info(good + "nx: 4\n").error().message(), {"'nx' is there twice"});
  expect_has(parse_tile_info("nx: 4.5\n").error().message(), {"nx", "4.5"});
  expect_has(parse_tile_info("nx: many\n").error().message(), {"nx", "'many' is no number"});
}

TEST(OctTiles, repeats_are_refused_by_name_or_averaged) {
  const TemporaryFolder folder;
  const fs::path tile = folder / "tile_x00_y00_z00";
  fs::create_directory(tile);
  std::ofstream(tile / "info.txt") << "nx: 2\nny: 2\nn_repeat: 2\nwidth: 2\nheight: 2\ntop_z: 0\nbottom_z: 0\n"
                                      "stage_x_pos_mm: 0\nstage_y_pos_mm: 0\nstage_z_pos_mm: 0\n";
  const std::array<float, 8> values = {1, 2, 3, 6, 10, 20, 30, 60};  // two scans of the first row, two of the second
  std::ofstream(tile / "image_0.bin", std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 32);
  expect_has(refusal(folder.path()), {"n_repeat is 2", "average_repeats"});
  TileSetOptions options = with_step();
  options.average_repeats = true;
  const auto set = open_tiles(folder.path(), options);
  ASSERT_TRUE(set) << set.error().message();
  std::uint64_t replaced = 0;
  EXPECT_EQ(read_tile(*set, set->tiles[0], replaced)->values, (BulkVector<float>{2, 4, 20, 40}));
}

TEST(OctTiles, what_is_not_finite_becomes_zero_and_is_counted) {
  const Simulated simulated(tiny_plan());
  const fs::path image = simulated.path / "tile_x00_y00_z00/image_00000.bin";
  std::fstream file(image, std::ios::in | std::ios::out | std::ios::binary);
  const std::array<float, 2> bad = {std::nanf(""), INFINITY};
  file.write(reinterpret_cast<const char*>(bad.data()), 8);
  file.close();
  const auto set = open_tiles(simulated.path, with_step());
  ASSERT_TRUE(set);
  std::uint64_t replaced = 0;
  const auto voxels = read_tile(*set, set->tiles[0], replaced);
  ASSERT_TRUE(voxels);
  EXPECT_EQ(replaced, 2u);
  EXPECT_EQ(voxels->at(0, 0, 0), 0.0f);
  EXPECT_EQ(voxels->at(1, 0, 0), 0.0f);
}

TEST(OctTiles, tables_are_refused_with_the_line) {
  SimulatedFilesOptions options;
  options.layout = SimulatedLayout::table;
  const Simulated simulated(tiny_plan(), options);
  const fs::path table = simulated.path / "bad.csv";
  std::ofstream(table) << "file,slice,ix,iy,x_mm,y_mm\n";
  expect_has(refusal(table), {"no column 'z_mm'"});
  std::ofstream(table) << "file,slice,ix,iy,x_mm,y_mm,z_mm\ntiles/tile_x00_y00_z00.ome.zarr,0,zero,0,0,0,0\n";
  expect_has(refusal(table), {"line 2", "ix", "'zero'"});
  std::ofstream(table) << "file,slice,ix,iy,x_mm,y_mm,z_mm\nabsent.ome.zarr,0,0,0,0,0,0\n";
  expect_has(refusal(table), {"line 2", "absent.ome.zarr"});
}

TEST(OctTiles, the_band_is_found_by_votes_and_cut) {
  SimulationPlan plan = tiny_plan();
  plan.tile_planes = 30;
  plan.tile_rows = 24;
  plan.tile_columns = 64;
  plan.galvo_lines = 12;
  plan.surface_plane = 8;
  auto scene = make_scene(plan);
  ASSERT_TRUE(scene);
  std::vector<GalvoVote> votes;
  for (std::size_t t = 0; t < scene->tiles.size(); ++t) {
    votes.push_back(vote_for_band(with_galvo_band(*scene, simulate_tile(*scene, t)), plan.galvo_lines));
  }
  const GalvoBand band = count_votes(votes);
  EXPECT_EQ(band.last_line, scene->galvo_last_line);
  EXPECT_GE(band.confidence, galvo_confidence_needed);
  // Without a band the tiles do not agree.
  votes.clear();
  for (std::size_t t = 0; t < scene->tiles.size(); ++t) {
    votes.push_back(vote_for_band(simulate_tile(*scene, t), plan.galvo_lines));
  }
  EXPECT_LT(count_votes(votes).confidence, galvo_confidence_needed);
}

TEST(OctTiles, a_mosaic_grid_holds_the_tiles_and_says_where_they_were) {
  const Simulated simulated(tiny_plan());
  const auto set = open_tiles(simulated.path, with_step());
  ASSERT_TRUE(set);
  const auto grid = grid_of_slice(*set, 1);
  ASSERT_TRUE(grid);
  const fs::path path = simulated.folder / "mosaic.ome.zarr";
  MosaicOptions options;
  options.run.progress.style = ProgressStyle::silent;
  const auto report = write_mosaic(path, *set, *grid, {}, options);
  ASSERT_TRUE(report) << report.error().message();
  const auto file = read_volume(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->volume.rows, 20u);
  EXPECT_EQ(file->volume.columns, 48u);
  EXPECT_NEAR(file->voxel_um[0], 3.5, 1e-9);
  const auto back = tile_grid_of(file->attributes, {12, 20, 48});
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->rows, 2u);
  EXPECT_NEAR(back->tiles[5].stage_px[0], 8.0, 1e-9);
  EXPECT_NEAR(back->tiles[5].stage_px[1], 26.0, 1e-9);
  EXPECT_NEAR(back->stage_z_mm, 0.014, 1e-12);
  EXPECT_EQ(cut_tile(file->volume, *back, 5).values, simulate_tile(simulated.scene, 11).values);
  EXPECT_FALSE(tile_grid_of(file->attributes, {12, 20, 49}));
}

TEST(OctMotor, spikes_that_the_stage_takes_back_are_replaced) {
  std::vector<SliceShift> shifts(7);
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    shifts[i] = {.fixed = i, .moving = i + 1, .shift_mm = {0.01 * static_cast<double>(i), 0.02}};
  }
  shifts[3].shift_mm[1] = 2.0;
  shifts[4].shift_mm[1] = -1.9;
  shifts[6].shift_mm[0] = 0.9;  // large, but nobody takes it back
  EXPECT_EQ(replace_spikes(shifts), 2u);
  EXPECT_DOUBLE_EQ(shifts[3].shift_mm[1], 0.02);
  EXPECT_DOUBLE_EQ(shifts[4].shift_mm[1], 0.02);
  EXPECT_DOUBLE_EQ(shifts[6].shift_mm[0], 0.9);
  EXPECT_TRUE(shifts[3].spike);
  EXPECT_FALSE(shifts[6].spike);
}

TEST(OctMotor, shifts_follow_the_edges_and_come_back_from_the_csv) {
  SimulationPlan plan = tiny_plan();
  plan.motor_shift_px = 8;
  const Simulated simulated(plan);
  const auto set = open_tiles(simulated.path, with_step());
  ASSERT_TRUE(set);
  const std::vector<SliceShift> shifts = motor_shifts(*set);
  ASSERT_EQ(shifts.size(), 1u);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_NEAR(shifts[0].shift_mm[d], -simulated.scene.slices[1].motor_shift_px[d] * 0.01, 1e-9);
  }
  const auto back = parse_shifts(shifts_csv(shifts, set->voxel_um));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->at(0).shift_mm, shifts[0].shift_mm);
  expect_has(parse_shifts("fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,0,0\n2,3,0,0\n").error().message(),
             {"line 3", "do not pair"});
}

}  // namespace tile_set_tests
}  // namespace cingulum::oct
