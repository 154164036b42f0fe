#include "oct/placement/tile_placement.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "oct/placement/blend.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "support/long_tests.hpp"
#include "support/plain_simulation.hpp"

namespace cingulum::oct {
namespace placement_tests {

// The mosaic of the bounds: 4 x 5 tiles of 96 x 96, overlap 0.2, uneven light, motors off by 1.5 pixels.
SimulationPlan bound_plan(std::uint64_t seed, std::uint32_t speckle) {
  SimulationPlan plan = uneven_mosaic_plan(seed, {4, 5}, {24, 96, 96});
  plan.motor_jitter_px = 1.5;
  plan.speckle_shape = speckle;
  return plan;
}

TileGrid grid_of(const SimulatedScene& scene) {
  TileGrid grid;
  const SimulationPlan& plan = scene.plan;
  grid.tile = {plan.tile_planes, plan.tile_rows, plan.tile_columns};
  grid.rows = plan.grid_rows;
  grid.columns = plan.grid_columns;
  for (const TileTruth& tile : scene.tiles) grid.tiles.push_back({tile.stage_px, tile.missing});
  return grid;
}

struct Errors {
  double rms = 0, largest = 0;
};

// How far places lie from the truth, which is known up to a shift of the whole mosaic.
Errors errors_of(const SimulatedScene& scene, const std::vector<std::array<double, 2>>& places) {
  std::array<double, 2> shift = {0, 0};
  const double n = static_cast<double>(places.size());
  for (std::size_t t = 0; t < places.size(); ++t) {
    for (std::size_t d = 0; d < 2; ++d) shift[d] += (scene.tiles[t].place_px[d] - places[t][d]) / n;
  }
  Errors errors;
  for (std::size_t t = 0; t < places.size(); ++t) {
    const double error = std::hypot(places[t][0] + shift[0] - scene.tiles[t].place_px[0],
                                    places[t][1] + shift[1] - scene.tiles[t].place_px[1]);
    errors.rms += error * error / n;
    errors.largest = std::max(errors.largest, error);
  }
  errors.rms = std::sqrt(errors.rms);
  return errors;
}

struct Placed {
  SimulatedScene scene;
  TileGrid grid;
  Result<Placement> placement = fail(ErrorKind::invalid_state, "not placed");

  explicit Placed(const SimulationPlan& plan, const PlacementOptions& options = {}) : scene(*make_scene(plan)) {
    grid = grid_of(scene);
    const auto pool = ThreadPool::create(2);
    std::vector<HostImage> projections(grid.count());
    for (std::size_t t = 0; t < grid.count(); ++t) {
      if (!grid.tiles[t].missing) projections[t] = log_projection(simulate_tile(scene, t, pool->get()));
    }
    PlacementOptions shared = options;
    shared.pool = pool->get();
    placement = place_tiles(grid, projections, shared);
  }
};

// CINGULUM_TEST_LONG runs 20 seeds.
std::uint64_t seeds() {
  return test::may_take_long() ? 20 : 1;
}

TEST(OctPlacement, tiles_are_found_within_the_bounds) {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    const Placed placed(bound_plan(seed, 4));
    ASSERT_TRUE(placed.placement) << placed.placement.error().message();
    const Errors errors = errors_of(placed.scene, placed.placement->places_px);
    EXPECT_LT(errors.rms, 0.35);
    EXPECT_LT(errors.largest, 1.0);
  }
}

TEST(OctPlacement, tiles_with_full_speckle_are_found_within_the_bounds) {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    const Placed placed(bound_plan(seed, 1));
    ASSERT_TRUE(placed.placement) << placed.placement.error().message();
    const Errors errors = errors_of(placed.scene, placed.placement->places_px);
    EXPECT_LT(errors.rms, 0.5);
    EXPECT_LT(errors.largest, 1.2);
  }
}

// A grid of tiles whose true steps are known, with all links measured without error.
struct ExactGrid {
  TileGrid grid;
  Placement placement;
  std::vector<std::array<double, 2>> truth;

  ExactGrid(std::size_t rows, std::size_t columns) {
    grid.rows = rows;
    grid.columns = columns;
    grid.tile = {1, 100, 100};
    for (std::size_t t = 0; t < rows * columns; ++t) {
      const double r = 80 * static_cast<double>(t / columns);
      const double c = 80 * static_cast<double>(t % columns);
      grid.tiles.push_back({{r, c}, false});
      // The stage's axes are turned and stretched a little, and each tile is off by itself.
      const double own = 0.7 * std::sin(static_cast<double>(3 * t + 1));
      truth.push_back({1.01 * r - 0.02 * c + own, 0.03 * r + 0.99 * c - own});
    }
    for (std::size_t t = 0; t < grid.count(); ++t) {
      for (const std::size_t other : {t + 1, t + columns}) {
        if (other >= grid.count() || (other == t + 1 && other % columns == 0)) continue;
        TileLink link{.from = t, .to = other, .ncc = 0.8};
        for (std::size_t d = 0; d < 2; ++d) {
          link.step_px[d] = truth[other][d] - truth[t][d];
          link.motor_px[d] = grid.tiles[other].stage_px[d] - grid.tiles[t].stage_px[d];
        }
        placement.links.push_back(link);
      }
    }
  }
  // Largest distance between fitted and true places, up to a common shift of these tiles.
  [[nodiscard]] double largest_error(const std::vector<std::size_t>& tiles) const {
    std::array<double, 2> shift = {0, 0};
    for (const std::size_t t : tiles) {
      for (std::size_t d = 0; d < 2; ++d) {
        shift[d] += (truth[t][d] - placement.places_px[t][d]) / static_cast<double>(tiles.size());
      }
    }
    double largest = 0;
    for (const std::size_t t : tiles) {
      largest = std::max(largest, std::hypot(placement.places_px[t][0] + shift[0] - truth[t][0],
                                             placement.places_px[t][1] + shift[1] - truth[t][1]));
    }
    return largest;
  }
  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> tiles(grid.count());
    for (std::size_t t = 0; t < tiles.size(); ++t) tiles[t] = t;
    return tiles;
  }
};

TEST(OctPlacement, exact_links_give_exact_places_but_for_the_weak_pull) {
  ExactGrid exact(4, 5);
  ASSERT_TRUE(fit_places(exact.grid, 1e-3, 4, exact.placement));
  EXPECT_EQ(exact.placement.rejected, 0u);
  EXPECT_TRUE(exact.placement.islands.empty());
  EXPECT_LT(exact.largest_error(exact.all()), 0.01);
  EXPECT_NEAR(exact.placement.motor_matrix[0], 1.01, 0.01);
  EXPECT_NEAR(exact.placement.motor_matrix[1], -0.02, 0.01);
  EXPECT_NEAR(exact.placement.motor_matrix[2], 0.03, 0.01);
}

TEST(OctPlacement, links_that_contradict_the_others_are_dropped) {
  ExactGrid exact(5, 6);
  exact.placement.links[7].step_px[0] += 9;
  exact.placement.links[20].step_px[1] -= 6;
  ASSERT_TRUE(fit_places(exact.grid, 1e-3, 4, exact.placement));
  EXPECT_EQ(exact.placement.rejected, 2u);
  EXPECT_EQ(exact.placement.links[7].state, LinkState::contradicting);
  EXPECT_EQ(exact.placement.links[20].state, LinkState::contradicting);
  EXPECT_NEAR(exact.placement.links[7].residual_px, 9, 0.1);
  EXPECT_LT(exact.largest_error(exact.all()), 0.02);
}

TEST(OctPlacement, an_island_stands_where_the_motor_model_puts_it_and_is_named) {
  ExactGrid exact(4, 6);
  // The last two columns lose their links to the others, one tile loses all.
  for (TileLink& link : exact.placement.links) {
    const bool across = link.to == link.from + 1 && link.to % 6 == 4;
    if (across || link.from == 0 || link.to == 0) link.state = LinkState::weak;
  }
  ASSERT_TRUE(fit_places(exact.grid, 1e-3, 4, exact.placement));
  ASSERT_EQ(exact.placement.islands.size(), 2u);
  EXPECT_EQ(exact.placement.islands[0], std::vector<std::size_t>{0});
  EXPECT_EQ(exact.placement.islands[1], (std::vector<std::size_t>{4, 5, 10, 11, 16, 17, 22, 23}));
  // Inside the island the links hold; as a whole it is off by what single tiles are off the model, not by a tile.
  EXPECT_LT(exact.largest_error(exact.placement.islands[1]), 0.02);
  EXPECT_LT(exact.largest_error(exact.all()), 2.5);
}

TEST(OctPlacement, a_missing_tile_is_no_neighbour) {
  SimulationPlan plan = bound_plan(3, 4);
  plan.grid_rows = plan.grid_columns = 3;
  plan.tile_planes = 12;
  plan.missing = {{0, 1, 1}};
  const Placed placed(plan);
  ASSERT_TRUE(placed.placement) << placed.placement.error().message();
  EXPECT_EQ(placed.placement->links.size(), 8u);
  for (const TileLink& link : placed.placement->links) EXPECT_TRUE(link.from != 4 && link.to != 4);
}

TEST(OctPlacement, noise_has_no_links_and_fails_beyond_max_rejected) {
  SimulationPlan plan = bound_plan(5, 1);
  plan.grid_rows = plan.grid_columns = 3;
  plan.tile_planes = 8;
  plan.tile_rows = plan.tile_columns = 48;
  plan.texture_strength = 0;
  PlacementOptions options;
  options.max_rejected = 0.2;
  const Placed placed(plan, options);
  ASSERT_FALSE(placed.placement);
  EXPECT_NE(placed.placement.error().kind(), ErrorKind::invalid_argument);
  EXPECT_NE(placed.placement.error().message().find("of 12 links"), std::string::npos);
  EXPECT_NE(placed.placement.error().message().find("max_rejected"), std::string::npos);
  options.max_rejected = 1;
  const Placed allowed(plan, options);
  ASSERT_TRUE(allowed.placement);
  // Without links the stage's positions stand.
  EXPECT_GE(allowed.placement->rejected, 10u);
}

TEST(OctPlacement, correlation_equals_the_definition) {
  std::vector<float> a(20 * 70), b(18 * 66);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(0.37f * static_cast<float>(i % 911)) + 3;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(0.21f * static_cast<float>(i % 577)) + 3;
  const ShiftWindow window{-2, 3, 2, 1};
  const auto sums = plane_terms_on_host({a.data(), 20, 70}, {b.data(), 18, 66}, 3.0f, window);
  ASSERT_EQ(sums.size(), 15u);
  std::size_t i = 0;
  for (int dr = -4; dr <= 0; ++dr) {
    for (int dc = 2; dc <= 4; ++dc, ++i) {
      double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
      for (int r = 0; r < 18; ++r) {
        for (int c = 0; c < 66; ++c) {
          if (r + dr < 0 || r + dr >= 20 || c + dc < 0 || c + dc >= 70) continue;
          const double x = static_cast<double>(a[static_cast<std::size_t>((r + dr) * 70 + c + dc)]);
          const double y = static_cast<double>(b[static_cast<std::size_t>(r * 66 + c)]);
          n += 1, sa += x, sb += y, saa += x * x, sbb += y * y, sab += x * y;
        }
      }
      const double expected = (sab - sa * sb / n) / std::sqrt((saa - sa * sa / n) * (sbb - sb * sb / n));
      EXPECT_EQ(static_cast<double>(sums[i].pixels), n);
      EXPECT_NEAR(ncc_of({&sums[i], 1}), expected, 1e-5);
    }
  }
}

TEST(OctPlacement, a_shifted_image_is_found_between_pixels) {
  const auto wave = [](double r, double c) {
    return static_cast<float>(std::sin(0.31 * r + 0.12 * c) + std::cos(0.23 * c - 0.17 * r) + std::sin(0.41 * c));
  };
  std::vector<float> fixed, moving;
  for (int r = 0; r < 64; ++r) {
    for (int c = 0; c < 64; ++c) {
      fixed.push_back(wave(r, c));
      moving.push_back(wave(r + 3.3, c - 1.6));
    }
  }
  const ImagePair pair{{fixed.data(), 64, 64}, {moving.data(), 64, 64}};
  const NccPeak peak = find_peak({&pair, 1}, 0, {2, 0, 4, 4}, 100);
  ASSERT_TRUE(peak.found);
  EXPECT_FALSE(peak.at_border);
  EXPECT_NEAR(peak.shift[0], 3.3, 0.1);
  EXPECT_NEAR(peak.shift[1], -1.6, 0.1);
}

TEST(OctBlend, a_constant_stays_constant_to_the_bit) {
  ExactGrid exact(3, 3);
  exact.grid.tile = {2, 100, 100};
  ASSERT_TRUE(fit_places(exact.grid, 1e-3, 4, exact.placement));
  HostVolume mosaic(2, 300, 300);
  std::fill(mosaic.values.begin(), mosaic.values.end(), 0.1f);
  for (const Blending blending : {Blending::cosine, Blending::average, Blending::none}) {
    const auto slice = blend_tiles(mosaic, exact.grid, exact.placement.places_px, blending);
    ASSERT_TRUE(slice);
    EXPECT_LT(slice->uncovered_pixels, slice->volume.plane_size() / 20);
    std::uint64_t zeros = 0;
    for (const float value : slice->volume.values) {
      if (value == 0.0f) {
        ++zeros;
      } else {
        ASSERT_EQ(value, 0.1f);
      }
    }
    EXPECT_EQ(zeros, 2 * slice->uncovered_pixels);
  }
}

TEST(OctBlend, tiles_meet_as_their_weights_say) {
  // Two tiles of 1 x 10 that overlap by 4, one of 1 and one of 3.
  TileGrid grid;
  grid.rows = 1;
  grid.columns = 2;
  grid.tile = {1, 1, 10};
  grid.tiles = {{{0, 0}, false}, {{0, 6}, false}};
  HostVolume mosaic(1, 1, 20);
  for (std::size_t c = 0; c < 20; ++c) mosaic.at(0, 0, c) = c < 10 ? 1.0f : 3.0f;
  const std::vector<std::array<double, 2>> places = {{0, 0}, {0, 6}};
  const auto cosine = blend_tiles(mosaic, grid, places, Blending::cosine);
  ASSERT_TRUE(cosine);
  ASSERT_EQ(cosine->volume.columns, 16u);
  EXPECT_EQ(cosine->volume.at(0, 0, 5), 1.0f);
  EXPECT_EQ(cosine->volume.at(0, 0, 10), 3.0f);
  for (std::size_t i = 0; i < 4; ++i) {
    const double w = 0.5 * (1 - std::cos(M_PI * static_cast<double>(i + 1) / 5));
    const double v = 0.5 * (1 - std::cos(M_PI * static_cast<double>(4 - i) / 5));
    EXPECT_NEAR(static_cast<double>(cosine->volume.at(0, 0, 6 + i)), (v * 1 + w * 3) / (v + w), 1e-6);
  }
  EXPECT_EQ(blend_tiles(mosaic, grid, places, Blending::average)->volume.at(0, 0, 7), 2.0f);
  EXPECT_EQ(blend_tiles(mosaic, grid, places, Blending::none)->volume.at(0, 0, 7), 1.0f);
  EXPECT_EQ(blend_tiles(mosaic, grid, places, Blending::none)->volume.at(0, 0, 8), 3.0f);
}

TEST(OctBlend, the_order_of_tiles_and_threads_does_not_matter) {
  const Placed placed(bound_plan(2, 4));
  ASSERT_TRUE(placed.placement);
  HostVolume mosaic(24, 4 * 96, 5 * 96);
  for (std::size_t i = 0; i < mosaic.values.size(); ++i) mosaic.values[i] = static_cast<float>(i * 2654435761u % 1000);
  const auto pool = ThreadPool::create(3);
  const auto alone = blend_tiles(mosaic, placed.grid, placed.placement->places_px, Blending::cosine);
  const auto shared = blend_tiles(mosaic, placed.grid, placed.placement->places_px, Blending::cosine, pool->get());
  EXPECT_EQ(alone->volume.values, shared->volume.values);
}

TEST(OctFields, a_polynomial_is_reproduced) {
  HostImage image(9, 12);
  for (std::size_t r = 0; r < 9; ++r) {
    for (std::size_t c = 0; c < 12; ++c) {
      const double x = static_cast<double>(c), y = static_cast<double>(r);
      image.at(r, c) = 1 + 0.3 * x - 0.2 * y + 0.05 * x * x - 0.01 * x * y * y;
    }
  }
  const HostImage fitted = fit_polynomial(image, 3);
  for (std::size_t i = 0; i < image.values.size(); ++i) EXPECT_NEAR(fitted.values[i], image.values[i], 1e-7);
}

}  // namespace placement_tests
}  // namespace cingulum::oct
