#include "oct/simulate/simulation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/independent_philox.hpp"
#include "support/plain_simulation.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace simulation_tests {

SimulationPlan small_plan() {
  return mosaic_plan(11, {2, 2}, {40, 24, 32}, 12);
}

SimulatedScene scene_of(const SimulationPlan& plan) {
  auto scene = make_scene(plan);
  EXPECT_TRUE(scene) << scene.error().message();
  return std::move(*scene);
}

TEST(OctSimulation, boxes_of_texture_agree_where_they_overlap) {
  const HostVolume whole = simulate_texture(5, 0.35, {-3, -2, -4, 8, 9, 10});
  const HostVolume part = simulate_texture(5, 0.35, {0, 3, 1, 4, 4, 5});
  for (std::size_t z = 0; z < part.planes; ++z) {
    for (std::size_t r = 0; r < part.rows; ++r) {
      for (std::size_t c = 0; c < part.columns; ++c) {
        ASSERT_EQ(part.at(z, r, c), whole.at(z + 3, r + 5, c + 5));
      }
    }
  }
}

TEST(OctSimulation, texture_has_variance_one_and_the_correlation_of_its_window) {
  // Many boxes far apart: the texture is smooth, a single box would say little.
  double sum = 0, squares = 0, neighbours = 0;
  std::size_t count = 0;
  for (int box = 0; box < 400; ++box) {
    const HostVolume texture = simulate_texture(77, 1.0, {200 * box, 0, 0, 1, 1, 5});
    for (std::size_t c = 0; c < 5; ++c) sum += std::log(static_cast<double>(texture.at(0, 0, c)));
    const double first = std::log(static_cast<double>(texture.at(0, 0, 0)));
    squares += first * first;
    neighbours += first * std::log(static_cast<double>(texture.at(0, 0, 4)));
    ++count;
  }
  const double n = static_cast<double>(count);
  EXPECT_NEAR(sum / (5 * n), 0.0, 0.15);
  EXPECT_NEAR(squares / n, 1.0, 0.2);
  // A Gaussian window of sigma 4 leaves exp(-d^2 / (4 sigma^2)) at distance d.
  EXPECT_NEAR(neighbours / n, std::exp(-16.0 / 64.0), 0.2);
}

TEST(OctSimulation, speckle_is_gamma_of_its_shape) {
  const numerics::PhiloxKey key = numerics::philox_key(9);
  for (const std::uint32_t shape : {1u, 4u, 6u}) {
    double sum = 0, squares = 0, cubes = 0;
    constexpr std::uint32_t count = 40000;
    for (std::uint32_t voxel = 0; voxel < count; ++voxel) {
      const double value = static_cast<double>(gamma_speckle(key, voxel, 3, shape));
      ASSERT_GE(value, 0.0);
      sum += value;
      squares += value * value;
      cubes += value * value * value;
    }
    const double k = shape;
    EXPECT_NEAR(sum / count, 1.0, 0.02);
    EXPECT_NEAR(squares / count, (k + 1) / k, 0.05);
    EXPECT_NEAR(cubes / count, (k + 1) * (k + 2) / (k * k), 0.4);
  }
}

TEST(OctSimulation, draws_have_the_counters_of_the_contract) {
  // The first words of Philox by an independent implementation: purposes 6 and 7, word 0 voxel, word 2 plane or tile.
  const std::uint64_t seed = 0x123456789abcdef0u;
  const auto texture = test::independent_philox({(3u << 16) | 5u, 6u << 24, 2u, 0u}, seed);
  const double u = static_cast<double>(texture[0] >> 8) * 0x1p-24;
  EXPECT_NEAR(static_cast<double>(texture_noise(numerics::philox_key(seed), 2, 3, 5)), (u - 0.5) * std::sqrt(12.0),
              1e-6);
  const auto speckle = test::independent_philox({17u, 7u << 24, 4u, 0u}, seed);
  double sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += std::log((static_cast<double>(speckle[static_cast<std::size_t>(i)] >> 8) + 1) * 0x1p-24);
  EXPECT_NEAR(static_cast<double>(gamma_speckle(numerics::philox_key(seed), 17, 4, 4)), -sum / 4, 1e-5);
}

TEST(OctSimulation, a_voxel_without_speckle_and_texture_follows_the_formula) {
  SimulationPlan plan = small_plan();
  plan.speckle_shape = 0;
  plan.texture_strength = 0;
  plan.flat_field = 0.2;
  plan.focus_plane = 10;
  plan.rayleigh_planes = 25;
  plan.noise_floor = 0.01;
  plan.slice_gain_low = plan.slice_gain_high = 1.25;
  const SimulatedScene scene = scene_of(plan);
  const std::size_t tile = 2;
  const HostVolume voxels = simulate_tile(scene, tile);
  const HostImage curvature = true_curvature(plan);
  for (std::size_t z = 0; z < plan.tile_planes; z += 3) {
    for (std::size_t r = 0; r < plan.tile_rows; r += 5) {
      for (std::size_t c = 0; c < plan.tile_columns; c += 7) {
        const double v = (2 * static_cast<double>(r) + 1) / static_cast<double>(plan.tile_rows) - 1;
        const double u = (2 * static_cast<double>(c) + 1) / static_cast<double>(plan.tile_columns) - 1;
        const double row = scene.tiles[tile].place_px[0] + static_cast<double>(r) - scene.extent_px[0] / 2;
        const double column = scene.tiles[tile].place_px[1] + static_cast<double>(c) - scene.extent_px[1] / 2;
        const double d = plan.surface_plane + plan.tilt_row_planes * row / scene.extent_px[0] +
                         plan.tilt_column_planes * column / scene.extent_px[1] + curvature.at(r, c) +
                         scene.tiles[tile].depth_offset_planes;
        const double depth = static_cast<double>(z) - d;
        double expected = 0.02 + std::exp(-2 * plan.attenuation * std::max(0.0, depth)) / (1 + std::exp(-depth / 0.7));
        expected *= 1 - plan.flat_field * (u * u + v * v);
        const double focus = (static_cast<double>(z) - plan.focus_plane) / plan.rayleigh_planes;
        expected = (expected / (1 + focus * focus) + plan.noise_floor) * 1.25;
        ASSERT_NEAR(static_cast<double>(voxels.at(z, r, c)), expected, 2e-5 * (1 + expected));
      }
    }
  }
}

TEST(OctSimulation, neighbours_show_the_same_sample_at_their_true_places) {
  SimulationPlan plan = small_plan();
  plan.speckle_shape = 0;
  plan.attenuation = 0;
  plan.curvature_planes = 0;
  plan.depth_jitter_planes = 0;
  plan.tilt_row_planes = plan.tilt_column_planes = 0;
  plan.overlap = 0.5;
  const SimulatedScene scene = scene_of(plan);
  const HostVolume left = simulate_tile(scene, 0);
  const HostVolume right = simulate_tile(scene, 1);
  const std::size_t step = plan.step_columns();
  for (std::size_t c = 0; c + step < plan.tile_columns; ++c) {
    ASSERT_NEAR(left.at(30, 7, c + step), right.at(30, 7, c), 1e-5f);
  }
}

TEST(OctSimulation, true_places_scatter_as_asked_and_the_stage_does_not_know) {
  SimulationPlan plan = small_plan();
  plan.grid_rows = 10;
  plan.grid_columns = 20;
  plan.motor_jitter_px = 1.5;
  const SimulatedScene scene = scene_of(plan);
  double squares = 0;
  for (const TileTruth& tile : scene.tiles) {
    EXPECT_EQ(tile.stage_px[0], static_cast<double>(tile.row * plan.step_rows()));
    for (std::size_t d = 0; d < 2; ++d) squares += std::pow(tile.place_px[d] - tile.stage_px[d], 2);
  }
  EXPECT_NEAR(std::sqrt(squares / 400.0), 1.5, 0.2);
}

TEST(OctSimulation, what_cannot_be_simulated_is_refused_by_name) {
  SimulationPlan plan = small_plan();
  plan.flat_field = 0.6;
  EXPECT_EQ(make_scene(plan).error().argument(), "flat_field");
  plan = small_plan();
  plan.missing = {{0, 5, 0}};
  EXPECT_EQ(make_scene(plan).error().argument(), "missing");
  plan = small_plan();
  plan.overlap = 1;
  EXPECT_EQ(make_scene(plan).error().argument(), "overlap");
  plan = small_plan();
  plan.grid_columns = 2000;
  EXPECT_EQ(make_scene(plan).error().argument(), "grid");
}

TEST(OctSimulation, a_failed_folder_leaves_nothing_and_an_old_one_is_kept_without_force) {
  const TemporaryFolder folder;
  SimulationPlan plan = small_plan();
  plan.tile_planes = 4;
  plan.missing = {{0, 1, 0}};
  const SimulatedScene scene = scene_of(plan);
  const auto written = write_simulation_by_cpu(folder / "a", scene);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->tiles, 3u);
  EXPECT_TRUE(std::filesystem::exists(folder / "a/tile_x01_y00_z00/info.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a/tile_x00_y01_z00"));
  EXPECT_EQ(std::filesystem::file_size(folder / "a/tile_x01_y00_z00/image_00000.bin"), 4u * 4 * 24 * 32);
  EXPECT_FALSE(write_simulation_by_cpu(folder / "a", scene));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

}  // namespace simulation_tests
}  // namespace cingulum::oct
