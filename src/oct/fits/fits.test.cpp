#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "oct/fits/axial_corrections.hpp"
#include "oct/fits/basic_fit.hpp"
#include "oct/fits/flat_field.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/kernel/attenuation_line.hpp"
#include "oct/placement/image_filters.hpp"
#include "support/long_tests.hpp"
#include "support/plain_simulation.hpp"

namespace cingulum::oct {
namespace fit_tests {

double relative_rms(const HostImage& found, const HostImage& truth) {
  double sum = 0;
  for (std::size_t i = 0; i < truth.values.size(); ++i) sum += std::pow(found.values[i] / truth.values[i] - 1, 2);
  return std::sqrt(sum / static_cast<double>(truth.values.size()));
}

SimulationPlan light_plan(std::uint64_t seed, std::size_t rows, std::size_t columns) {
  return uneven_mosaic_plan(seed, {rows, columns}, {24, 64, 64});
}

std::vector<HostImage> projections_of(const SimulatedScene& scene) {
  std::vector<HostImage> projections;
  const auto pool = ThreadPool::create(2);
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) {
    projections.push_back(mean_projection(simulate_tile(scene, t, pool->get())));
  }
  return projections;
}

std::vector<OverlapPair> pairs_of(const SimulatedScene& scene) {
  std::vector<OverlapPair> pairs;
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) {
    for (const std::size_t other : {t + 1, t + scene.plan.grid_columns}) {
      if (other >= scene.tiles.size() || (other == t + 1 && other % scene.plan.grid_columns == 0)) continue;
      pairs.push_back({t,
                       other,
                       {scene.tiles[other].place_px[0] - scene.tiles[t].place_px[0],
                        scene.tiles[other].place_px[1] - scene.tiles[t].place_px[1]}});
    }
  }
  return pairs;
}

std::uint64_t fit_seeds() {
  return test::may_take_long() ? 20 : 2;
}

TEST(OctFlatField, twelve_tiles_give_the_light_within_the_bound) {
  for (std::uint64_t seed = 1; seed <= fit_seeds(); ++seed) {
    SCOPED_TRACE(seed);
    const SimulatedScene scene = *make_scene(light_plan(seed, 3, 4));
    const auto fit = fit_flat_field(projections_of(scene), pairs_of(scene));
    ASSERT_TRUE(fit);
    EXPECT_EQ(fit->tiles, 12u);
    EXPECT_LT(relative_rms(fit->field, true_flat_field(scene.plan)), 0.05);
    EXPECT_NEAR(std::accumulate(fit->field.values.begin(), fit->field.values.end(), 0.0), 64.0 * 64.0, 1e-6);
  }
}

TEST(OctFlatField, a_hundred_tiles_give_the_light_within_the_bound) {
  const SimulatedScene scene = *make_scene(light_plan(7, 10, 10));
  const auto fit = fit_flat_field(projections_of(scene), pairs_of(scene));
  ASSERT_TRUE(fit);
  EXPECT_LT(relative_rms(fit->field, true_flat_field(scene.plan)), 0.02);
}

TEST(OctFlatField, dark_tiles_take_no_part_and_none_is_an_error) {
  HostImage lit(8, 8, 1.0), dark(8, 8, 0.0);
  const auto fit = fit_flat_field({lit, dark, lit});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->tiles, 2u);
  for (const double value : fit->field.values) EXPECT_NEAR(value, 1.0, 1e-12);
  EXPECT_FALSE(fit_flat_field({dark}));
  EXPECT_FALSE(fit_flat_field({lit, HostImage(8, 9, 1.0)}));
}

TEST(OctFlatField, dividing_undoes_the_light) {
  TileGrid grid;
  grid.rows = 1;
  grid.columns = 2;
  grid.tile = {2, 3, 4};
  HostImage field(3, 4);
  for (std::size_t i = 0; i < 12; ++i) field.values[i] = 1 + 0.1 * static_cast<double>(i);
  HostVolume mosaic(2, 3, 8);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 8; ++c) mosaic.at(z, r, c) = static_cast<float>(5 * field.at(r, c % 4));
    }
  }
  divide_by_field(mosaic, grid, field);
  for (const float value : mosaic.values) EXPECT_NEAR(value, 5.0f, 1e-5f);
}

TEST(OctBasic, a_field_is_found_and_a_constant_is_one) {
  std::vector<HostImage> tiles;
  for (int t = 0; t < 8; ++t) {
    HostImage tile(40, 50);
    for (std::size_t r = 0; r < 40; ++r) {
      for (std::size_t c = 0; c < 50; ++c) {
        const double v = (static_cast<double>(r) - 19.5) / 20, u = (static_cast<double>(c) - 24.5) / 25;
        tile.at(r, c) = (10 + t) * (1 - 0.2 * (u * u + v * v));
      }
    }
    tiles.push_back(tile);
  }
  const auto field = fit_basic(tiles);
  ASSERT_TRUE(field) << field.error().message();
  double mean = 0;
  for (const double value : tiles[0].values) mean += value / 2000;
  HostImage truth = tiles[0];
  for (double& value : truth.values) value /= mean;
  EXPECT_LT(relative_rms(*field, truth), 0.02);
  const auto constant = fit_basic({HostImage(16, 16, 3.0), HostImage(16, 16, 5.0)});
  ASSERT_TRUE(constant);
  for (const double value : constant->values) EXPECT_NEAR(value, 1.0, 1e-6);
  EXPECT_FALSE(fit_basic({HostImage(4, 4, 0.0)}));
}

TEST(OctCurvature, maps_of_tiles_at_different_depths_give_the_curvature) {
  SimulationPlan plan = light_plan(4, 3, 4);
  plan.curvature_planes = 6;
  plan.depth_jitter_planes = 8;
  const SimulatedScene scene = *make_scene(plan);
  std::vector<HostImage> maps;
  std::uint32_t word = 1;
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) {
    HostImage map = true_interface(scene, t);
    // Whole planes with an error of up to one, and some lines far off.
    for (double& value : map.values) {
      word = word * 1664525u + 1013904223u;
      value = std::round(value + static_cast<double>(word >> 8) / (1 << 24) * 2 - 1);
      if (word % 50 == 0) value += 40;
    }
    maps.push_back(map);
  }
  const auto found = fit_curvature(maps);
  ASSERT_TRUE(found);
  const HostImage truth = true_curvature(plan);
  double squares = 0, sum = 0;
  for (std::size_t i = 0; i < truth.values.size(); ++i) {
    squares += std::pow(found->values[i] - truth.values[i], 2);
    sum += found->values[i];
  }
  EXPECT_LT(std::sqrt(squares / static_cast<double>(truth.values.size())), 0.35);
  EXPECT_NEAR(sum, 0.0, 1e-6);
  EXPECT_FALSE(fit_curvature({}));
}

TEST(OctCurvature, the_multiplicative_form_agrees_where_all_tiles_share_a_depth) {
  SimulationPlan plan = light_plan(4, 3, 4);
  plan.curvature_planes = 6;
  plan.surface_plane = 30;
  plan.tile_planes = 96;
  plan.depth_jitter_planes = 0;
  plan.tilt_row_planes = plan.tilt_column_planes = 0;
  const SimulatedScene scene = *make_scene(plan);
  std::vector<HostImage> maps;
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) maps.push_back(true_interface(scene, t));
  const auto found = fit_curvature_basic(maps, plan.tile_planes);
  ASSERT_TRUE(found) << found.error().message();
  const HostImage truth = true_curvature(plan);
  double squares = 0;
  for (std::size_t i = 0; i < truth.values.size(); ++i) squares += std::pow(found->values[i] - truth.values[i], 2);
  EXPECT_LT(std::sqrt(squares / static_cast<double>(truth.values.size())), 0.35);
}

TEST(OctAttenuation, the_logarithm_of_one_plus_keeps_small_numbers) {
  for (const double x : {0.0, 1e-30, 1e-7, 1e-3, 0.1, 0.2499, 0.2501, 1.0, 100.0}) {
    EXPECT_NEAR(static_cast<double>(log_one_plus(static_cast<float>(x))),
                std::log1p(static_cast<double>(static_cast<float>(x))), 3e-7 * std::log1p(x));
  }
}

TEST(OctAttenuation, an_exponential_line_gives_its_attenuation) {
  constexpr double mu = 0.015;
  const auto at = [](std::uint32_t z) { return static_cast<float>(std::exp(-2 * mu * z)); };
  constexpr std::uint32_t planes = 60;
  for (const auto how : {AttenuationEnd::smith, AttenuationEnd::liu}) {
    const float below = light_below(at, planes, 20, how);
    std::vector<float> found(planes);
    attenuation_along(at, planes, below, [&](std::uint32_t z, float value) { found[z] = value; });
    // liu's sum over planes is exact; smith's integral is off by half a plane's decay.
    for (const float value : found) {
      EXPECT_NEAR(static_cast<double>(value), mu, how == AttenuationEnd::liu ? 2e-5 : 4e-4);
    }
  }
  // Without light below, the last planes seem to absorb everything.
  std::vector<float> found(planes);
  attenuation_along(at, planes, 0, [&](std::uint32_t z, float value) { found[z] = value; });
  EXPECT_GT(found[planes - 2], 0.3f);
  EXPECT_EQ(found[planes - 1], 0.0f);
}

TEST(OctAttenuation, a_simulated_slice_is_even_over_depth_after_compensation) {
  SimulationPlan plan = level_tile_plan(12, {110, 48, 48});
  plan.texture_strength = 0;  // the texture's own mean per plane would count as a drop
  const SimulatedScene scene = *make_scene(plan);
  HostVolume volume = simulate_tile(scene, 0);
  const auto drop = [&](const HostVolume& of) {
    const auto level = [&](std::size_t first) {
      double sum = 0;
      for (std::size_t z = first; z < first + 8; ++z) {
        for (const float value : of.plane(z)) sum += static_cast<double>(value);
      }
      return sum;
    };
    return 1 - level(102) / level(34);
  };
  EXPECT_NEAR(drop(volume), 0.74, 0.04);
  AttenuationOptions options;
  options.strength = 1;
  options.window = 10;
  SlabVolume slabs(volume);
  const auto report = compensate_attenuation(slabs, options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_NEAR(report->noise_floor, 0.02, 0.004);
  EXPECT_NEAR(drop(volume), 0.0, 0.03);
}

TEST(OctAttenuation, a_dark_voxel_of_tissue_is_not_nothing_and_background_is) {
  // The left half is tissue, the right one background below the noise floor.
  HostVolume volume(30, 32, 64);
  for (std::size_t i = 0; i < volume.values.size(); ++i) volume.values[i] = i % 64 < 32 ? 1.0f : 0.01f;
  volume.at(20, 10, 10) = 0.02f;
  volume.at(21, 10, 10) = 0.0f;
  AttenuationOptions options;
  options.noise_floor = 0.02;
  options.block_px = 16;
  SlabVolume slabs(volume);
  ASSERT_TRUE(compensate_attenuation(slabs, options));
  EXPECT_GT(volume.at(20, 10, 10), 0.0f);
  EXPECT_LT(volume.at(20, 10, 10), 1e-3f);
  EXPECT_EQ(volume.at(21, 10, 10), 0.0f);
  for (std::size_t z = 0; z < 30; ++z) ASSERT_EQ(volume.at(z, 10, 50), 0.0f);
}

TEST(OctAttenuation, names_are_read) {
  EXPECT_EQ(*parse_attenuation_method("liu"), AttenuationMethod::liu);
  EXPECT_EQ(parse_attenuation_method("ohm").error().argument(), "method");
}

TEST(OctProfile, agarose_shows_the_beam_and_dividing_makes_it_even) {
  SimulationPlan plan = mosaic_plan(2, {1, 1}, {60, 64, 64}, -20);  // the water above is cut away
  plan.attenuation = 0.001;
  plan.tissue_radius = 0.7;
  plan.agarose = 0.2;
  plan.focus_plane = 25;
  plan.rayleigh_planes = 30;
  const SimulatedScene scene = *make_scene(plan);
  HostVolume volume = simulate_tile(scene, 0);
  SlabVolume slabs(volume);
  const std::vector<bool> agarose = agarose_lines(mean_projection(volume));
  const auto profile = axial_profile(slabs, agarose);
  ASSERT_TRUE(profile) << profile.error().message();
  double scale = 0;
  for (std::size_t z = 0; z < 60; ++z) scale = std::max(scale, profile->at(z));
  for (std::size_t z = 0; z < 60; ++z) {
    const double d = (static_cast<double>(z) - 25) / 30;
    EXPECT_NEAR(profile->at(z) / scale, 1 / (1 + d * d), 0.05);
  }
  ASSERT_TRUE(divide_by_profile(slabs, *profile));
  const auto flat = axial_profile(slabs, agarose);
  ASSERT_TRUE(flat);
  for (const double value : *flat) EXPECT_NEAR(value / flat->front(), 1.0, 1e-4);
  EXPECT_FALSE(axial_profile(slabs, std::vector<bool>(64 * 64, false)));
}

TEST(OctNormalise, planes_lose_their_background_and_share_one_span) {
  HostVolume volume(3, 20, 20);
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t i = 0; i < 400; ++i) {
      const bool tissue = i % 20 >= 10;
      volume.plane(z)[i] =
          static_cast<float>(1.0 + static_cast<double>(z) + (tissue ? 4.0 * (1 + static_cast<double>(z)) : 0.0));
    }
  }
  SlabVolume slabs(volume);
  const auto report = normalise_planes(slabs, {.smoothing_px = 0});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->backgrounds, (std::vector<double>{1, 2, 3}));
  // Spans are 4, 8, 12: nine tenths of the way through them.
  EXPECT_NEAR(report->span, 8 + 0.8 * 4, 1e-9);
  EXPECT_EQ(volume.at(2, 3, 2), 0.0f);
  EXPECT_NEAR(volume.at(1, 3, 15), 8 / 11.2, 1e-6);
  HostVolume dark(2, 4, 4);
  SlabVolume dark_slabs(dark);
  EXPECT_FALSE(normalise_planes(dark_slabs, {}));
}

}  // namespace fit_tests
}  // namespace cingulum::oct
