#include "dmri/phantom/phantom_signal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "dmri/phantom/phantom_scheme.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "support/each_device.hpp"
#include "support/independent_philox.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;
using std::numbers::pi;

std::unique_ptr<ThreadPool> pool_of(int threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool) << testing::message_of(pool);
  return std::move(*pool);
}

PhantomField field_of(std::string_view preset, const GridOptions& options = {}, int subsamples = 5, int threads = 2) {
  const auto model = phantom_preset(preset, {});
  EXPECT_TRUE(model) << testing::message_of(model);
  auto grid = phantom_grid(model->extent_mm, options);
  EXPECT_TRUE(grid) << testing::message_of(grid);
  auto field = PhantomField::create(*model, *grid, subsamples, *pool_of(threads));
  EXPECT_TRUE(field) << testing::message_of(field);
  return std::move(*field);
}

std::vector<float> measured(const PhantomField& field, double b, Vec3d g, const PhantomNoise& noise,
                            std::uint32_t volume = 0, int threads = 2) {
  std::vector<float> values(static_cast<std::size_t>(field.grid.stored.voxel_count()));
  synthesise(field, {}, b, g, noise, volume, values, *pool_of(threads));
  return values;
}

TEST(PhantomSignal, merged_directions_measure_as_all_of_them_do) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  double worst = 0;
  for (const double bend_mm : {8.0, 15.0, 30.0}) {
    for (int trial = 0; trial < 20; ++trial) {
      // The sub-samples of a 2 mm voxel on an arc, cut by a plane as at the edge of a tube.
      std::vector<WeightedDirection> all;
      const double cut = uniform(random) * 2 - 0.5;
      const double turn = uniform(random) * pi;
      for (int i = 0; i < 125; ++i) {
        const double along = (i % 5 - 2) * 0.4, aside = (i / 5 % 5 - 2) * 0.4, up = (i / 25 - 2) * 0.4;
        if (aside * std::cos(turn) + along * std::sin(turn) > cut) continue;
        const double angle = std::atan2(along, bend_mm + aside);
        all.push_back({numerics::normalise(Vec3d{std::cos(angle), std::sin(angle), 0.03 * up}), 1.0 / 125});
      }
      if (all.empty()) continue;
      const auto few = merge_directions(all);
      EXPECT_LE(few.size(), 9u);
      const auto signal = [&](std::span<const WeightedDirection> directions, Vec3d g) {
        double sum = 0;
        for (const auto& d : directions) {
          const double c = dot(d.direction, g);
          sum += d.weight * std::exp(-3000 * (0.3e-3 + 1.4e-3 * c * c));
        }
        return sum;
      };
      for (const Vec3d& g : spread_directions(30)) worst = std::max(worst, std::abs(signal(all, g) - signal(few, g)));
      double weight = 0;
      for (const auto& d : few) {
        EXPECT_GT(d.weight, 0);
        weight += d.weight;
      }
      EXPECT_NEAR(weight, static_cast<double>(all.size()) / 125, 1e-12);
    }
  }
  EXPECT_LT(worst, 2e-6);  // of S0; the voxel's mean direction alone is wrong by 1e-2
}

TEST(PhantomSignal, equal_directions_merge_into_one) {
  const std::vector<WeightedDirection> same(10, {{0, 0.6, 0.8}, 0.1});
  const auto merged = merge_directions(same);
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_NEAR(merged[0].direction.y, 0.6, 1e-15);
  EXPECT_NEAR(merged[0].weight, 1, 1e-15);
}

TEST(PhantomSignal, fractions_add_up_to_the_volumes_of_the_tubes) {
  for (const char* preset : {"straight", "arcs", "helix", "fanning", "kissing"}) {
    for (const GridOptions& options :
         {GridOptions{}, GridOptions{.voxel_mm = {1.5, 1.5, 3}, .rotate_deg = {10, 20, 30}}}) {
      const PhantomField field = field_of(preset, options);
      const auto edges = field.grid.canonical.voxel_mm();
      std::vector<double> volumes(field.bundles.size(), 0);
      for (const VoxelBundle& content : field.contents)
        volumes[content.bundle] += content.fraction * edges[0] * edges[1] * edges[2];
      for (std::size_t b = 0; b < volumes.size(); ++b) {
        EXPECT_NEAR(volumes[b] / field.bundles[b].volume_mm3(), 1, 0.02) << preset << " " << field.bundles[b].name();
      }
    }
  }
}

TEST(PhantomSignal, pure_voxels_measure_as_the_formulas_say) {
  const PhantomField field = field_of("straight");
  const double b = 1000;
  for (const Vec3d& g : {Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, Vec3d{0.6, 0, 0.8}}) {
    const auto values = measured(field, b, g, {});
    std::size_t fibre = 0, grey = 0, air = 0;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (field.white[v] == 1.0f) {
        ++fibre;
        EXPECT_NEAR(values[v], 100 * std::exp(-b * (0.3e-3 + 1.4e-3 * g.x * g.x)), 1e-4);
      } else if (field.grey[v] == 1.0f) {
        ++grey;
        EXPECT_NEAR(values[v], 110 * std::exp(-b * 0.8e-3), 1e-4);
      } else if (field.white[v] + field.grey[v] + field.fluid[v] == 0.0f) {
        ++air;
        EXPECT_EQ(values[v], 0.0f);
      }
    }
    EXPECT_GT(fibre, 100u);
    EXPECT_GT(grey, 10000u);
    EXPECT_GT(air, 1000u);
  }
}

TEST(PhantomSignal, crossing_bundles_share_the_place) {
  const PhantomField field = field_of("crossing90");
  const auto& size = field.grid.canonical.size;
  const auto v = static_cast<std::size_t>(voxel_index(field.grid.canonical, size[0] / 2, size[1] / 2, size[2] / 2));
  ASSERT_EQ(field.first[v + 1] - field.first[v], 2u);
  EXPECT_EQ(field.contents[field.first[v]].fraction, 1.0f);
  EXPECT_EQ(field.contents[field.first[v] + 1].fraction, 1.0f);
  EXPECT_EQ(field.white[v], 1.0f);
  const double b = 2000;
  const auto values = measured(field, b, {std::sqrt(0.5), std::sqrt(0.5), 0}, {});
  const double along = std::exp(-b * 1.7e-3), across = std::exp(-b * 0.3e-3);
  EXPECT_NEAR(values[v], 50 * (along + across), 1e-3);
}

TEST(PhantomSignal, noise_is_rician_with_the_given_spread) {
  const PhantomField field = field_of("straight");
  const double sigma = 10;
  std::vector<double> air, grey;
  for (std::uint32_t volume = 0; volume < 4; ++volume) {
    const auto values = measured(field, 0, {0, 0, 0}, {sigma, 42}, volume);
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (field.white[v] + field.grey[v] == 0.0f) air.push_back(values[v]);
      if (field.grey[v] == 1.0f) grey.push_back(values[v]);
    }
  }
  const auto mean = [](const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  const auto square = [](const std::vector<double>& x) {
    return std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size());
  };
  // Rayleigh: mean sigma sqrt(pi/2), second moment 2 sigma^2. Rice: second moment A^2 + 2 sigma^2. Four standard
  // errors.
  const auto n = static_cast<double>(air.size());
  EXPECT_NEAR(mean(air), sigma * std::sqrt(pi / 2), 4 * sigma * std::sqrt((2 - pi / 2) / n));
  EXPECT_NEAR(square(air), 2 * sigma * sigma, 4 * 2 * sigma * sigma / std::sqrt(n));
  EXPECT_NEAR(square(grey), 110 * 110 + 2 * sigma * sigma,
              4 * 2 * 110 * sigma / std::sqrt(static_cast<double>(grey.size())));
}

TEST(PhantomSignal, noise_depends_on_seed_voxel_and_volume_only) {
  const PhantomField one = field_of("arcs", {}, 3, 1);
  const PhantomField eight = field_of("arcs", {}, 3, 8);
  const Vec3d g{0, 0.6, 0.8};
  const auto values = measured(one, 1000, g, {3, 7}, 5, 1);
  EXPECT_EQ(values, measured(eight, 1000, g, {3, 7}, 5, 8));
  EXPECT_EQ(values, measured(eight, 1000, g, {3, 7}, 5, 2));
  EXPECT_NE(values, measured(one, 1000, g, {3, 8}, 5, 1));
  EXPECT_NE(values, measured(one, 1000, g, {3, 7}, 6, 1));
}

// The words are drawn a second time here, by the contract's section 4: purpose 3, word 0 the voxel, word 2 the volume.
TEST(PhantomSignal, noise_is_drawn_by_the_counters_of_the_contract) {
  const PhantomField field = field_of("straight", {}, 2);
  constexpr std::uint64_t seed = 0x123456789abcdef0u;
  constexpr double sigma = 10;
  for (const std::uint32_t volume : {0u, 5u}) {
    const auto values = measured(field, 0, {0, 0, 0}, {sigma, seed}, volume);
    const auto plain = measured(field, 0, {0, 0, 0}, {}, volume);
    std::size_t checked = 0;
    for (std::uint32_t v = 0; v < values.size(); v += 101) {
      const auto word =
          test::contract_block(seed, {.index = v, .purpose = test::contract_phantom_noise, .step = volume});
      const double radius = std::sqrt(-2 * std::log(((word[0] >> 8) + 1.0) / 16777216.0));
      const double angle = 2 * pi * test::contract_uniform(word[1]);
      const double expected = std::hypot(plain[v] + sigma * radius * std::cos(angle), sigma * radius * std::sin(angle));
      ASSERT_NEAR(values[v], expected, 1e-4) << "voxel " << v;
      ++checked;
    }
    EXPECT_GT(checked, 100u);
  }
}

TEST(PhantomSignal, every_orientation_stores_the_same_numbers) {
  const GridOptions plain{.voxel_mm = {2, 2.5, 3}};
  const PhantomField reference = field_of("kissing", plain, 2);
  const auto expected = measured(reference, 1000, {0.6, 0, 0.8}, {3, 1});
  const auto& size = reference.grid.canonical.size;
  int orientations = 0;
  std::string axes = "012";
  do {
    for (int flips = 0; flips < 8; ++flips) {
      std::string code;
      for (std::size_t a = 0; a < 3; ++a) {
        const auto axis = static_cast<std::size_t>(axes[a] - '0');
        code += ((flips >> a) & 1) != 0 ? "LPI"[axis] : "RAS"[axis];
      }
      GridOptions options = plain;
      options.orientation = code;
      const PhantomField field = field_of("kissing", options, 2);
      EXPECT_EQ(field.grid.stored.axis_codes(), code);
      const auto values = measured(field, 1000, {0.6, 0, 0.8}, {3, 1});
      const auto inverse = field.grid.stored.voxel_to_world.inverse();
      ASSERT_OK(inverse);
      for (std::int64_t z = 0; z < size[2]; z += 3) {
        for (std::int64_t y = 0; y < size[1]; y += 2) {
          for (std::int64_t x = 0; x < size[0]; x += 5) {
            const Vec3d world = reference.grid.stored.voxel_to_world.apply({double(x), double(y), double(z)});
            const Vec3d at = inverse->apply(world);
            const auto round = [](double value) { return static_cast<std::int64_t>(std::lround(value)); };
            const auto index = voxel_index(field.grid.stored, round(at.x), round(at.y), round(at.z));
            ASSERT_EQ(values[static_cast<std::size_t>(index)],
                      expected[static_cast<std::size_t>(voxel_index(reference.grid.stored, x, y, z))])
                << code;
          }
        }
      }
      ++orientations;
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  EXPECT_EQ(orientations, 48);
}

TEST(PhantomSignal, the_true_fod_points_along_the_fibres_and_has_no_negative_lobes) {
  const PhantomField field = field_of("straight");
  const TrueFod fod = true_fod(field, *pool_of(2));
  constexpr numerics::HarmonicBasis basis{numerics::HarmonicConvention::tournier07, true_fod_degree, false};
  std::size_t checked = 0;
  for (std::size_t i = 0; i < fod.voxels.size(); i += 37) {
    const float white = field.white[fod.voxels[i]];
    const float* const c = fod.coefficients.data() + i * 45;
    EXPECT_NEAR(c[0] * std::sqrt(4 * pi), white, 1e-5);
    const auto amplitude = [&](Vec3d d) {
      double values[45];
      numerics::evaluate_harmonics(basis, d, values);
      double sum = 0;
      for (int k = 0; k < 45; ++k) sum += values[k] * double(c[k]);
      return sum;
    };
    const double peak = amplitude({1, 0, 0});
    for (const Vec3d& d : spread_directions(200)) {
      EXPECT_LT(amplitude(d), peak);
      EXPECT_GT(amplitude(d), -0.02 * peak);
    }
    ++checked;
  }
  EXPECT_GT(checked, 10u);
}

TEST(PhantomScheme, directions_keep_their_distance) {
  for (const int count : {6, 30, 64, 150}) {
    const auto directions = spread_directions(count);
    double nearest = 1;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      EXPECT_NEAR(length(directions[i]), 1, 1e-15);
      for (std::size_t j = 0; j < i; ++j) nearest = std::min(nearest, 1 - std::abs(dot(directions[i], directions[j])));
    }
    // Caps of half the distance around 2 n points cannot fill more of the sphere than hexagons do (0.9069).
    const double angle = std::acos(1 - nearest);
    const double filled = count * (1 - std::cos(angle / 2));
    EXPECT_GT(filled, 0.68) << count;
    EXPECT_LT(filled, 0.92) << count;
  }
}

// Twelve charges repel each other into the corners of an icosahedron, whose axes meet at 63.4 degrees.
TEST(PhantomScheme, six_directions_are_the_axes_of_an_icosahedron) {
  const auto directions = spread_directions(6);
  for (std::size_t i = 0; i < directions.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NEAR(std::abs(dot(directions[i], directions[j])), 1 / std::sqrt(5.0), 1e-3);
  }
}

// Series of today are compared with those of yesterday: numbers as they are.
TEST(PhantomScheme, directions_stay_the_same) {
  const auto directions = spread_directions(64);
  const std::pair<std::size_t, Vec3d> known[] = {{0, {0.165915474, -0.015938185, 0.986011171}},
                                                 {32, {0.039478396, 0.896678804, 0.440917882}},
                                                 {63, {0.951589093, 0.307300852, 0.006662248}}};
  for (const auto& [i, direction] : known) EXPECT_LT(length(directions[i] - direction), 2e-9) << i;
}

TEST(PhantomScheme, schemes_have_the_volumes_that_they_promise) {
  // How many volumes each b-value has.
  const auto shape = [](std::string_view name) {
    const auto scheme = named_scheme(name);
    EXPECT_TRUE(scheme);
    std::map<double, int> volumes;
    for (const double b : scheme->b_values) ++volumes[b];
    return volumes;
  };
  using Volumes = std::map<double, int>;
  EXPECT_EQ(shape("dirs64-b1000"), (Volumes{{0, 7}, {1000, 64}}));
  EXPECT_EQ(shape("dirs60-b2000"), (Volumes{{0, 6}, {2000, 60}}));
  EXPECT_EQ(shape("shells3-64"), (Volumes{{0, 20}, {1000, 64}, {2000, 64}, {3000, 64}}));
  EXPECT_EQ(shape("dirs150-b2000"), (Volumes{{0, 10}, {2000, 150}}));
  EXPECT_TRUE(testing::fails_with(named_scheme("x"), ErrorKind::invalid_argument, "no scheme 'x'"));
  EXPECT_TRUE(testing::fails_with(shell_scheme(5, {1000}), ErrorKind::invalid_argument, "5 directions"));
}

TEST(PhantomScheme, directions_shells_and_b0_volumes_are_accepted_up_to_their_limits) {
  EXPECT_TRUE(shell_scheme(6, {1000}));
  EXPECT_FALSE(shell_scheme(most_directions + 1, {1000}));
  EXPECT_FALSE(shell_scheme(6, {}));
  EXPECT_TRUE(shell_scheme(6, std::vector<double>(16, 1000)));
  EXPECT_FALSE(shell_scheme(6, std::vector<double>(17, 1000)));
  EXPECT_FALSE(shell_scheme(6, {50}));
  EXPECT_TRUE(shell_scheme(6, {50.001, 50000}));
  EXPECT_FALSE(shell_scheme(6, {1000, 50001}));
  EXPECT_FALSE(shell_scheme(6, {std::nan("")}));
  EXPECT_EQ(shell_scheme(6, {1000}, 1000).value().volumes(), 1006U);
  EXPECT_FALSE(shell_scheme(6, {1000}, 1001));
  EXPECT_EQ(shell_scheme(6, {1000}, 0).value().volumes(), 6U);
  EXPECT_EQ(shell_scheme(12, {1000, 2500}).value().name, "dirs12-b1000-2500");
}

TEST(PhantomScheme, b0_volumes_come_first_or_before_every_tenth_and_shells_are_turned_about_the_diagonal) {
  ASSERT_OK_AND_ASSIGN(const PhantomScheme first, shell_scheme(12, {1000, 2000, 3000}, 3));
  ASSERT_OK_AND_ASSIGN(const PhantomScheme spread, shell_scheme(12, {1000, 2000, 3000}));
  ASSERT_EQ(first.volumes(), 39U);
  ASSERT_EQ(spread.volumes(), 40U);
  const auto directions = spread_directions(12);
  const Vec3d diagonal = numerics::normalise(Vec3d{1, 1, 1});
  std::size_t weighted = 0;
  for (std::size_t i = 0; i < first.volumes(); ++i) EXPECT_EQ(first.b_values[i] == 0, i < 3) << i;
  for (std::size_t i = 0; i < spread.volumes(); ++i) {
    EXPECT_EQ(spread.b_values[i] == 0, i % 11 == 0) << i;
    if (spread.b_values[i] == 0) {
      EXPECT_EQ(length(spread.directions[i]), 0) << i;
      continue;
    }
    const double shell = std::floor(static_cast<double>(weighted) / 12);
    EXPECT_EQ(spread.b_values[i], 1000 * (shell + 1)) << i;
    EXPECT_EQ(first.b_values[3 + weighted], spread.b_values[i]) << i;
    const Vec3d direction = spread.directions[i], before = directions[weighted % 12];
    EXPECT_EQ(length(first.directions[3 + weighted] - direction), 0) << i;
    if (weighted < 12) {
      EXPECT_EQ(length(direction - before), 0) << i;
    } else {
      // The same height over the plane, and an angle of 0.7 within it, for every shell more.
      EXPECT_NEAR(dot(direction, diagonal), dot(before, diagonal), 1e-14);
      const Vec3d a = before - diagonal * dot(before, diagonal), b = direction - diagonal * dot(before, diagonal);
      EXPECT_NEAR(dot(a, b), dot(a, a) * std::cos(0.7 * shell), 1e-14);
      EXPECT_NEAR(dot(cross(a, b), diagonal), dot(a, a) * std::sin(0.7 * shell), 1e-14);
    }
    ++weighted;
  }
}

TEST(PhantomGrid, sizes_and_orientations_are_checked) {
  const auto brain = phantom_grid({162, 212, 152}, {});
  ASSERT_OK(brain);
  EXPECT_EQ(brain->stored.size, (std::array<std::int64_t, 3>{81, 106, 76}));
  EXPECT_TRUE(
      testing::fails_with(phantom_grid({80, 80, 60}, {.orientation = "RAL"}), ErrorKind::invalid_argument, "RAL"));
  EXPECT_TRUE(
      testing::fails_with(phantom_grid({80, 80, 60}, {.orientation = "RA"}), ErrorKind::invalid_argument, "RA"));
  EXPECT_TRUE(testing::fails_with(phantom_grid({80, 80, 60}, {.voxel_mm = {0, 1, 1}}), ErrorKind::invalid_argument,
                                  "voxel edge"));
  EXPECT_TRUE(testing::fails_with(phantom_grid({800, 800, 600}, {.voxel_mm = {0.1, 0.1, 0.1}}),
                                  ErrorKind::invalid_argument, "too large"));
  for (const char* const orientation : {"RASX", "", "RRS", "RLS", "ras", "XAS", "RAI", "LPI", "SAR"}) {
    const bool sound = std::set<std::string>{"RAI", "LPI", "SAR"}.contains(orientation);
    EXPECT_EQ(phantom_grid({80, 80, 60}, {.orientation = orientation}).has_value(), sound) << orientation;
  }
}

TEST(PhantomGrid, voxels_rotations_and_sizes_are_accepted_up_to_their_limits) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto with_edge = [&](double edge) {
      GridOptions options{.voxel_mm = {20, 20, 20}};
      options.voxel_mm[axis] = edge;
      return phantom_grid({80, 80, 60}, options).has_value();
    };
    EXPECT_TRUE(with_edge(0.1));
    EXPECT_FALSE(with_edge(0.0999));
    EXPECT_TRUE(with_edge(20));
    EXPECT_FALSE(with_edge(20.001));
    EXPECT_FALSE(with_edge(std::nan("")));
    const auto turned_by = [&](double angle) {
      GridOptions options;
      options.rotate_deg[axis] = angle;
      return phantom_grid({80, 80, 60}, options).has_value();
    };
    EXPECT_TRUE(turned_by(-360));
    EXPECT_TRUE(turned_by(360));
    EXPECT_FALSE(turned_by(-360.001));
    EXPECT_FALSE(turned_by(360.001));
    EXPECT_FALSE(turned_by(std::nan("")));
    const auto with_voxels = [&](double voxels) {
      double extent[3] = {1, 1, 1};
      extent[axis] = voxels;
      return phantom_grid({extent[0], extent[1], extent[2]}, {.voxel_mm = {1, 1, 1}}).has_value();
    };
    EXPECT_TRUE(with_voxels(32767));
    EXPECT_FALSE(with_voxels(32768));
  }
  EXPECT_TRUE(phantom_grid({1024, 1024, 1024}, {.voxel_mm = {1, 1, 1}}));
  EXPECT_FALSE(phantom_grid({1024, 1024, 1025}, {.voxel_mm = {1, 1, 1}}));
  EXPECT_FALSE(phantom_grid({1024, 1025, 1024}, {.voxel_mm = {1, 1, 1}}));
  EXPECT_FALSE(phantom_grid({1025, 1024, 1024}, {.voxel_mm = {1, 1, 1}}));
}

TEST(PhantomGrid, covers_the_box_with_whole_voxels_and_a_thousandth_of_slack) {
  const auto size_of = [](double extent, double voxel) {
    return phantom_grid({extent, 10, 10}, {.voxel_mm = {voxel, 10, 10}}).value().canonical.size[0];
  };
  EXPECT_EQ(size_of(80, 2), 40);
  EXPECT_EQ(size_of(80.001, 2), 40);
  EXPECT_EQ(size_of(80.003, 2), 41);
  EXPECT_EQ(size_of(81.9, 2), 41);
  EXPECT_EQ(size_of(82, 2), 41);
}

// Quarters of a turn are exact: 10 x 20 x 30 voxels about one axis.
TEST(PhantomGrid, turned_by_quarters_has_its_edges_exchanged_and_its_centre_at_the_origin) {
  const GridOptions plain{.voxel_mm = {1, 1, 1}};
  struct Case {
    std::array<double, 3> degrees;
    std::array<std::int64_t, 3> size;
    std::array<double, 9> turned;  // row by row
  };
  const Case cases[] = {{{0, 0, 0}, {10, 20, 30}, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
                        {{90, 0, 0}, {10, 30, 20}, {1, 0, 0, 0, 0, -1, 0, 1, 0}},
                        {{0, 90, 0}, {30, 20, 10}, {0, 0, 1, 0, 1, 0, -1, 0, 0}},
                        {{0, 0, 90}, {20, 10, 30}, {0, -1, 0, 1, 0, 0, 0, 0, 1}},
                        {{0, 0, -90}, {20, 10, 30}, {0, 1, 0, -1, 0, 0, 0, 0, 1}},
                        {{0, 0, 180}, {10, 20, 30}, {-1, 0, 0, 0, -1, 0, 0, 0, 1}},
                        {{0, 0, 270}, {20, 10, 30}, {0, 1, 0, -1, 0, 0, 0, 0, 1}},
                        // About x first, then about z.
                        {{90, 0, 90}, {20, 30, 10}, {0, 0, 1, 1, 0, 0, 0, 1, 0}}};
  for (const Case& expected : cases) {
    GridOptions options = plain;
    options.rotate_deg = expected.degrees;
    ASSERT_OK_AND_ASSIGN(const PhantomGrid grid, phantom_grid({10, 20, 30}, options));
    EXPECT_EQ(grid.canonical.size, expected.size);
    const Affine& affine = grid.canonical.voxel_to_world;
    for (int row = 0; row < 3; ++row) {
      for (int axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(affine.at(row, axis), expected.turned[static_cast<std::size_t>(3 * row + axis)]) << row << axis;
      }
    }
    const numerics::Vec3d centre =
        affine.apply({0.5 * static_cast<double>(expected.size[0] - 1), 0.5 * static_cast<double>(expected.size[1] - 1),
                      0.5 * static_cast<double>(expected.size[2] - 1)});
    EXPECT_NEAR(length(centre), 0, 1e-12);
  }
  // 30 degrees about z: a box of 10 x 20 lies in one of 10 c + 20 s by 10 s + 20 c.
  GridOptions tilted = plain;
  tilted.rotate_deg = {0, 0, 30};
  ASSERT_OK_AND_ASSIGN(const PhantomGrid grid, phantom_grid({10, 20, 30}, tilted));
  EXPECT_EQ(grid.canonical.size, (std::array<std::int64_t, 3>{19, 23, 30}));
  EXPECT_NEAR(grid.canonical.voxel_to_world.at(1, 0), 0.5, 1e-15);
}

}  // namespace
}  // namespace cingulum
