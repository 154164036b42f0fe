#include "dmri/score/score.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <set>

#include "dmri/phantom/phantom_files.hpp"
#include "dmri/score/score_bootstrap.hpp"
#include "dmri/score/score_streamline.hpp"
#include "streamlines/interior_traversal.hpp"
#include "support/each_device.hpp"
#include "support/independent_philox.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;
using std::numbers::pi;

ThreadPool& pool() {
  static const auto pool = ThreadPool::create(2);
  return **pool;
}

// Phantoms with few volumes, made once for all tests.
const std::filesystem::path& phantom_folder(const std::string& preset) {
  static TemporaryFolder folder;
  static std::map<std::string, std::filesystem::path> made;
  if (const auto found = made.find(preset); found != made.end()) return found->second;
  PhantomRequest request;
  auto model = phantom_preset(preset, {});
  EXPECT_TRUE(model) << testing::message_of(model);
  request.model = std::move(*model);
  request.scheme = *shell_scheme(6, {1000}, 1);
  request.snr = 0;
  const std::filesystem::path path = folder.path() / preset;
  const auto summary =
      write_phantom(request, path, {.sync = false}, pool(), ProgressOptions{.style = ProgressStyle::silent});
  EXPECT_TRUE(summary) << testing::message_of(summary);
  return made.emplace(preset, path).first->second;
}

class Lines {
 public:
  void add(const std::vector<Vec3d>& points) {
    for (const Vec3d& p : points) {
      batch_.positions.push_back(static_cast<float>(p.x));
      batch_.positions.push_back(static_cast<float>(p.y));
      batch_.positions.push_back(static_cast<float>(p.z));
    }
    batch_.offsets.push_back(batch_.positions.size() / 3);
  }
  [[nodiscard]] const TractogramBatch& batch() const { return batch_; }

 private:
  TractogramBatch batch_;
};

std::vector<Vec3d> line(Vec3d from, Vec3d to, int steps = 120) {
  std::vector<Vec3d> points;
  for (int i = 0; i <= steps; ++i) points.push_back(from + (to - from) * (double(i) / steps));
  return points;
}

std::vector<Vec3d> fibre(const Bundle& bundle, Bundle::Section section, double from = 0, double to = 1) {
  std::vector<Vec3d> points;
  constexpr int steps = 150;
  for (int i = 0; i <= steps; ++i) {
    points.push_back(bundle.fibre_point(bundle.length() * (from + (to - from) * i / steps), section));
  }
  return points;
}

Score score_of(const std::string& preset, const TractogramBatch& batch, ScoreOptions options = {.bootstrap = 64}) {
  auto scorer = Scorer::create(phantom_folder(preset), options);
  EXPECT_TRUE(scorer) << testing::message_of(scorer);
  scorer->add(batch, pool());
  return scorer->finish(pool());
}

TEST(ScoreTraversal, it_names_the_voxels_that_dense_points_meet) {
  InteriorTraversal traversal({9, 7, 8});
  std::mt19937 random(17);
  std::uniform_real_distribution<double> place(-3, 11);
  for (int trial = 0; trial < 500; ++trial) {
    const Vec3d a{place(random), place(random), place(random)}, b{place(random), place(random), place(random)};
    std::vector<std::uint32_t> voxels;
    traversal.append(a, b, voxels);
    std::set<std::uint32_t> exact(voxels.begin(), voxels.end());
    EXPECT_EQ(exact.size(), voxels.size()) << "a straight segment enters a voxel once";
    std::set<std::uint32_t> dense;
    constexpr int count = 20000;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t voxel = traversal.voxel_at(a + (b - a) * ((i + 0.5) / count));
      if (voxel != InteriorTraversal::no_voxel) dense.insert(voxel);
    }
    for (const std::uint32_t voxel : dense) EXPECT_TRUE(exact.count(voxel)) << "trial " << trial;
    // What dense points miss is passed through for less than their spacing.
    EXPECT_LE(exact.size(), dense.size() + 1) << "trial " << trial;
  }
}

TEST(ScoreTraversal, corners_edges_and_far_ends) {
  InteriorTraversal traversal({4, 4, 4});
  std::vector<std::uint32_t> voxels;
  traversal.append({0, 0, 0}, {3, 3, 3}, voxels);  // exactly through corners
  EXPECT_EQ(voxels, (std::vector<std::uint32_t>{0, 21, 42, 63}));
  voxels.clear();
  traversal.append({1, 2, 3}, {1, 2, 3}, voxels);  // no length
  EXPECT_EQ(voxels, (std::vector<std::uint32_t>{1 + 4 * 2 + 16 * 3}));
  voxels.clear();
  traversal.append({-1e6, 0, 0}, {1e6, 0, 0}, voxels);
  EXPECT_EQ(voxels.size(), 4u);
  voxels.clear();
  traversal.append({10, 10, 10}, {1e9, 10, 10}, voxels);
  EXPECT_TRUE(voxels.empty());
}

TEST(Bootstrap, weights_are_poisson_and_belong_to_streamline_and_replicate) {
  std::vector<std::uint8_t> weights(10000), shorter(37), other(10000);
  draw_weights(5, 3, weights);
  draw_weights(5, 3, shorter);
  draw_weights(5, 4, other);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), weights.begin()));
  EXPECT_NE(weights, other);
  std::array<double, 9> histogram{};
  double mean = 0;
  for (const std::uint8_t w : weights) {
    histogram[w] += 1;
    mean += w;
  }
  EXPECT_NEAR(mean / 10000, 1, 0.04);
  double expected = 10000 * std::exp(-1), chi = 0;
  for (int k = 0; k < 5; ++k) {
    chi += std::pow(histogram[static_cast<std::size_t>(k)] - expected, 2) / expected;
    expected /= k + 1;
  }
  EXPECT_LT(chi, 20);  // 5 degrees of freedom: 1 in 1000
}

// Purpose 4 of the contract; word 0 is the streamline, word 2 counts eight replicates each, half a word for one.
TEST(Bootstrap, weights_are_drawn_by_the_counters_of_the_contract) {
  constexpr std::uint64_t seed = 0xfedcba9876543210u;
  for (const std::uint64_t streamline : {std::uint64_t{0}, std::uint64_t{77}, (std::uint64_t{3} << 32) + 5}) {
    std::vector<std::uint8_t> weights(101);
    draw_weights(seed, streamline, weights);
    for (std::uint32_t r = 0; r < weights.size(); ++r) {
      const auto block = test::contract_block(seed, {.index = static_cast<std::uint32_t>(streamline),
                                                     .purpose = test::contract_score,
                                                     .step = r / 8,
                                                     .attempt = static_cast<std::uint32_t>(streamline >> 32)});
      const double u = static_cast<double>((block[r % 8 / 2] >> (16 * (r % 2))) & 0xffffu) / 65536;
      // The quantile of Poisson(1); the bounds are rounded to 2^-16.
      double cumulative = std::exp(-1.0), term = cumulative;
      int expected = 0;
      while (u >= cumulative && expected < 8) {
        ++expected;
        term /= expected;
        cumulative += term;
      }
      ASSERT_EQ(weights[r], expected) << "streamline " << streamline << ", replicate " << r;
    }
  }
}

// P(X <= k) of Poisson(1) is the sum of 1 / (e j!) for j up to k; the table is at most one unit of 2^-16 off.
TEST(Bootstrap, a_weight_is_the_number_of_cumulative_probabilities_reached) {
  double term = std::exp(-1.0), sum = 0;
  std::uint32_t number = 0;
  for (std::uint32_t k = 0; k < 8; ++k) {
    if (k > 0) term /= k;
    sum += term;
    while (number < 65536 && poisson_weight(number) <= k) ++number;
    EXPECT_NEAR(number, sum * 65536, 1) << k;
    EXPECT_EQ(poisson_weight(number - 1), k);
    EXPECT_EQ(poisson_weight(number), k + 1);
  }
  EXPECT_EQ(number, 65535u);
}

TEST(Bootstrap, percentiles_lie_between_order_statistics) {
  std::vector<double> values;
  for (int i = 40; i >= 0; --i) values.push_back(i);  // 2.5 % of 40 is 1
  EXPECT_DOUBLE_EQ(percentile_interval(values).low, 1);
  EXPECT_DOUBLE_EQ(percentile_interval(values).high, 39);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const PercentileInterval two = percentile_interval({nan, 10, nan, 0});
  EXPECT_DOUBLE_EQ(two.low, 0.25);
  EXPECT_DOUBLE_EQ(two.high, 9.75);
  const PercentileInterval four = percentile_interval({9, 1, 0, 4});  // places 0.075 and 2.925
  EXPECT_DOUBLE_EQ(four.low, 0.075);
  EXPECT_DOUBLE_EQ(four.high, 4 + 0.925 * 5);
  EXPECT_EQ(percentile_interval({7}).low, 7);
  EXPECT_EQ(percentile_interval({7}).high, 7);
  EXPECT_TRUE(std::isnan(percentile_interval({nan}).low) && std::isnan(percentile_interval({}).high));
}

TEST(Bootstrap, an_interval_of_a_mean_is_what_theory_says) {
  // 1000 streamlines, 300 valid: the share's standard error is sqrt(0.3 0.7 / 1000) = 0.0145.
  const auto truth = read_phantom(phantom_folder("straight"));
  ASSERT_OK(truth);
  Lines lines;
  for (int i = 0; i < 1000; ++i)
    lines.add(i % 10 < 3 ? line({-30, 0, 0}, {30, 0, 0}, 4) : line({-10, 0, 0}, {10, 0, 0}, 4));
  const Score score = score_of("straight", lines.batch(), {.bootstrap = 2000, .seed = 1});
  EXPECT_EQ(score.valid.value, 0.3);
  EXPECT_NEAR(score.valid.low, 0.3 - 1.96 * 0.0145, 0.003);
  EXPECT_NEAR(score.valid.high, 0.3 + 1.96 * 0.0145, 0.003);
}

TEST(Score, a_quantile_of_lengths_is_the_mean_of_its_bin_even_beyond_the_last) {
  LengthWeightedHistogram histogram(0.5, 4);  // up to 2
  EXPECT_EQ(histogram.quantile(0.5), 0);
  histogram.add(0.25, 10);
  histogram.add(5, 6);
  histogram.add(9, 2);
  EXPECT_EQ(histogram.quantile(0.5), 0.25);
  EXPECT_EQ(histogram.quantile(0.95), 6);
}

TEST(Score, the_truth_is_perfect_both_ways_round) {
  for (const char* preset :
       {"straight", "arcs", "helix", "crossing90", "kissing", "fanning", "commissural", "bottleneck", "deadend"}) {
    const auto truth = read_phantom(phantom_folder(preset));
    ASSERT_OK(truth);
    Lines lines;
    std::uint64_t count = 0;
    for (const Bundle& bundle : truth->bundles) {
      for (const Bundle::Section section : {Bundle::Section{0, 0}, {0.5, 0.5}, {-0.8, 0.3}, {0.1, -0.9}}) {
        std::vector<Vec3d> points = fibre(bundle, section);
        if (count++ % 2 == 1) std::reverse(points.begin(), points.end());
        lines.add(points);
      }
    }
    const Score score = score_of(preset, lines.batch());
    EXPECT_EQ(score.valid.value, 1.0) << preset;
    EXPECT_EQ(score.valid_count, count);
    EXPECT_EQ(score.bundles_found, truth->bundles.size());
    EXPECT_EQ(score.invalid_bundles, 0u);
    EXPECT_LT(score.angular_error_deg.value, 0.02) << preset;
    EXPECT_EQ(score.distance_mm.value, 0) << preset;
    EXPECT_EQ(score.distance_p95_mm, 0) << preset;
    EXPECT_GT(score.topography, 0.9999) << preset;
    for (const BundleScore& bundle : score.bundles) EXPECT_EQ(bundle.valid_count, 4u) << preset << " " << bundle.name;
    if (truth->bundles.size() == 1) {
      EXPECT_TRUE(std::isnan(score.connectivity_correlation.value));
    } else {
      EXPECT_GT(score.connectivity_correlation.value, 0.85) << preset;
    }
  }
}

TEST(Score, halves_connect_nothing) {
  const auto truth = read_phantom(phantom_folder("arcs"));
  ASSERT_OK(truth);
  Lines lines;
  for (const Bundle& bundle : truth->bundles) {
    lines.add(fibre(bundle, {0, 0}, 0, 0.5));
    lines.add(fibre(bundle, {0.3, 0}, 0.45, 1));
    lines.add(fibre(bundle, {0, 0}, 0.3, 0.7));
  }
  const Score score = score_of("arcs", lines.batch());
  EXPECT_EQ(score.no_connection.value, 1.0);
  EXPECT_EQ(score.no_connection_count, 9u);
  EXPECT_EQ(score.bundles_found, 0u);
  EXPECT_EQ(score.any.f1.value, 0);
  EXPECT_LT(score.angular_error_deg.value, 0.02);  // they run along the fibres all the same
  EXPECT_TRUE(std::isnan(score.distance_mm.value));
}

TEST(Score, an_end_within_the_tolerance_of_the_last_step_counts) {
  Lines lines;
  lines.add(line({-30.9, 0, 0}, {30.9, 0, 0}));         // 0.9 mm beyond both flat ends
  lines.add({{-25.1, 0, 0}, {0, 0, 0}, {31.5, 0, 0}});  // starts 0.9 mm after the start region, ends 1.5 mm beyond
  const Score score = score_of("straight", lines.batch());
  EXPECT_EQ(score.valid_count, 1u);
  EXPECT_EQ(score.no_connection_count, 1u);
  const Score patient = score_of("straight", lines.batch(), {.end_tolerance_mm = 1.6, .bootstrap = 0});
  EXPECT_EQ(patient.valid_count, 1u);  // the other one never was in the start region
  Lines nearly;
  nearly.add({{-26.1, 0, 0}, {0, 0, 0}, {31.5, 0, 0}});
  EXPECT_EQ(score_of("straight", nearly.batch(), {.end_tolerance_mm = 1.6, .bootstrap = 0}).valid_count, 1u);
  EXPECT_EQ(score_of("straight", nearly.batch(), {.end_tolerance_mm = 1.4, .bootstrap = 0}).valid_count, 0u);
}

TEST(Score, crossing_over_between_kissing_bundles_is_invalid) {
  const auto truth = read_phantom(phantom_folder("kissing"));
  ASSERT_OK(truth);
  std::vector<Vec3d> points = fibre(truth->bundles[0], {0, 0}, 0, 0.5);
  const std::vector<Vec3d> second = fibre(truth->bundles[1], {0, 0}, 0.5, 1);
  points.insert(points.end(), second.begin(), second.end());
  Lines lines;
  lines.add(points);
  std::reverse(points.begin(), points.end());
  lines.add(points);
  lines.add(fibre(truth->bundles[0], {0, 0}));
  const Score score = score_of("kissing", lines.batch());
  EXPECT_EQ(score.invalid_count, 2u);
  EXPECT_EQ(score.valid_count, 1u);
  EXPECT_EQ(score.invalid_bundles, 1u);
  ASSERT_EQ(score.false_connections.size(), 1u);
  EXPECT_EQ(score.false_connections[0].from, "upper_a");
  EXPECT_EQ(score.false_connections[0].to, "lower_b");
  EXPECT_EQ(score.false_connections[0].count, 2u);
  EXPECT_NEAR(score.valid_of_connections.value, 1.0 / 3, 1e-12);
}

TEST(Score, bottleneck_has_two_false_pairs_and_returning_is_false_too) {
  const auto truth = read_phantom(phantom_folder("bottleneck"));
  ASSERT_OK(truth);
  const auto joined = [](std::vector<Vec3d> a, const std::vector<Vec3d>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto& upper = truth->bundles[0];
  const auto& lower = truth->bundles[1];
  Lines lines;
  lines.add(joined(fibre(upper, {0, 0}, 0, 0.5), fibre(lower, {0, 0}, 0.5, 1)));
  lines.add(joined(fibre(lower, {0, 0}, 0, 0.5), fibre(upper, {0, 0}, 0.5, 1)));
  lines.add(joined(fibre(upper, {0.2, 0}, 0, 0.5), fibre(upper, {-0.2, 0}, 0.5, 0)));  // there and back
  lines.add(joined(fibre(upper, {0, 0}, 0, 0.5), fibre(lower, {0, 0}, 0.5, 0)));
  const Score score = score_of("bottleneck", lines.batch());
  EXPECT_EQ(score.invalid_count, 4u);
  EXPECT_EQ(score.invalid_bundles, 4u);
}

TEST(Score, leaving_the_tube_is_a_wrong_path) {
  // A detour of 12 mm of 72 mm, 9 mm beside the centre line of a tube of radius 4.
  std::vector<Vec3d> detour = line({-30, 0, 0}, {-6, 0, 0}, 48);
  for (const Vec3d& p : line({-6, 9, 0}, {6, 9, 0}, 24)) detour.push_back(p);
  for (const Vec3d& p : line({6, 0, 0}, {30, 0, 0}, 48)) detour.push_back(p);
  Lines lines;
  lines.add(detour);
  // 4.9 mm beside: outside the tube, within half a voxel of it.
  std::vector<Vec3d> close = line({-30, 0, 0}, {-6, 0, 0}, 48);
  for (const Vec3d& p : line({-6, 4.9, 0}, {6, 4.9, 0}, 24)) close.push_back(p);
  for (const Vec3d& p : line({6, 0, 0}, {30, 0, 0}, 48)) close.push_back(p);
  lines.add(close);
  const Score score = score_of("straight", lines.batch());
  EXPECT_EQ(score.wrong_path_count, 1u);
  EXPECT_EQ(score.valid_count, 1u);
  EXPECT_EQ(score.bundles[0].wrong_path_count, 1u);
  // Distances: the detour 12 mm at 5 mm outside and twice a climb from 4 to 9 (mean 2.5 over 5 mm); lengths 78 mm and
  // 69.8 mm; the other 12 mm at 0.9 and twice 0.9 mm with a mean of 0.45.
  const double sum = 12 * 5 + 2 * 5 * 2.5 + 12 * 0.9 + 2 * 0.9 * 0.45;
  EXPECT_NEAR(score.distance_mm.value, sum / (78 + 69.8), 0.002);
  EXPECT_NEAR(score.distance_p95_mm, 5, 0.01);
}

// A way of 80 mm, of which `outside` mm lie farther than rho + v/2 = 5 mm from the centre line; in steps of 0.5 mm, so
// that every sum is exact. It goes to and fro by 4 mm, which adds 8 mm, then up to 6 mm and along there.
std::vector<Vec3d> way_with_a_detour(double outside) {
  std::vector<Vec3d> points = {{-30, 0, 0}};
  const auto go = [&](double x, double y) {
    const Vec3d from = points.back();
    const double length = std::abs(x - from.x) + std::abs(y - from.y);
    const int steps = static_cast<int>(length / 0.5);
    for (int i = 1; i <= steps; ++i) points.push_back(from + (Vec3d{x, y, 0} - from) * (double(i) / steps));
  };
  go(-10, 0);
  go(-14, 0);
  go(0, 0);
  go(0, 6);
  go(outside - 2, 6);  // and 1 mm up and 1 mm down beyond 5 mm
  go(outside - 2, 0);
  go(30, 0);
  return points;
}

TEST(Score, a_way_is_right_from_95_percent_of_its_length_on) {
  const auto truth = read_phantom(phantom_folder("straight"));
  ASSERT_OK(truth);
  const StreamlineJudge judge(truth->bundles, 2, 1);
  struct Case {
    double outside;
    ConnectionVerdict verdict;
  };
  for (const Case& c :
       {Case{2, ConnectionVerdict::valid}, Case{3.5, ConnectionVerdict::valid}, Case{4, ConnectionVerdict::valid},
        Case{4.5, ConnectionVerdict::wrong_path}, Case{5, ConnectionVerdict::wrong_path},
        Case{8, ConnectionVerdict::wrong_path}, Case{16, ConnectionVerdict::wrong_path}}) {
    std::vector<Vec3d> points = way_with_a_detour(c.outside);
    for (const bool reversed : {false, true}) {
      if (reversed) std::reverse(points.begin(), points.end());
      Lines lines;
      lines.add(points);
      JudgeHistograms histograms;
      const Judgement found = judge.judge(lines.batch().positions, histograms);
      EXPECT_EQ(found.length_mm, 80);
      EXPECT_EQ(found.share_inside, (80 - c.outside) / 80) << c.outside << " mm outside";
      EXPECT_EQ(found.verdict, c.verdict) << c.outside << " mm outside";
      const Score score = score_of("straight", lines.batch());
      EXPECT_EQ(score.valid_count, c.verdict == ConnectionVerdict::valid ? 1u : 0u) << c.outside << " mm outside";
      EXPECT_EQ(score.wrong_path_count, c.verdict == ConnectionVerdict::valid ? 0u : 1u);
    }
  }
}

TEST(Score, a_shift_and_a_tilt_are_measured) {
  Lines lines;
  lines.add(line({-30, 1, 0}, {30, 1, 0}));
  EXPECT_NEAR(score_of("straight", lines.batch()).angular_error_deg.value, 0, 1e-6);
  Lines tilted;
  const double angle = 3 * pi / 180;
  tilted.add(line({-30, -30 * std::tan(angle), 0}, {30, 30 * std::tan(angle), 0}));
  const Score score = score_of("straight", tilted.batch());
  EXPECT_EQ(score.valid_count, 1u);
  EXPECT_NEAR(score.angular_error_deg.value, 3, 1e-3);
  EXPECT_NEAR(score.angular_error_median_deg, 3, 1e-3);
  EXPECT_NEAR(score.length_mm.value, 60 / std::cos(angle), 1e-4);
  // In a crossing the nearer of two true directions counts.
  Lines along;
  along.add(line({-20, 0, 0}, {20, 0, 0}));
  const Score crossing = score_of("crossing90", along.batch());
  EXPECT_NEAR(crossing.angular_error_deg.value, 45, 1e-3);
}

TEST(Score, overlap_and_overreach_count_voxels_as_said) {
  // Voxels of 2 mm, centres at odd mm in x and y (40 voxels) and z (30): a line along x at y = z = 1 mm runs through
  // the centres of exactly 30 voxels, all inside the tube.
  Lines lines;
  lines.add(line({-30, 1, 1}, {30, 1, 1}));
  const Score score = score_of("straight", lines.batch());
  const BundleScore& bundle = score.bundles[0];
  EXPECT_EQ(bundle.any.found_voxels, 30u);
  EXPECT_EQ(bundle.any.extra_voxels, 0u);
  EXPECT_EQ(bundle.half_filled.found_voxels, 30u);
  // The tube of radius 4: |y|, |z| in {1, 3} and sub-samples; every one of 4 x 4 columns is touched, and the 4 corners
  // (nearest sub-sample at (2.2, 2.2), 3.1 mm away) are too: 16 columns of 30 voxels.
  EXPECT_EQ(bundle.any.true_voxels, 480u);
  EXPECT_NEAR(bundle.any.overlap, 30.0 / 480, 1e-12);
  EXPECT_NEAR(bundle.any.f1, 60.0 / 510, 1e-12);
  EXPECT_EQ(bundle.any.overreach, 0);
  // Two lines that leave the tube by less than half a voxel: extra voxels, still valid.
  Lines outside;
  outside.add(line({-30, 4.5, 1}, {30, 4.5, 1}));
  outside.add(line({-29.9, 4.5, 1}, {29.9, 4.5, 1}));
  Score none = score_of("straight", outside.batch());
  EXPECT_EQ(none.no_connection_count, 2u);  // their ends are not inside
  Lines bulging;
  std::vector<Vec3d> points = line({-30, 3.5, 1}, {-20, 3.5, 1}, 20);
  for (const Vec3d& p : line({-20, 4.5, 1}, {20, 4.5, 1}, 80)) points.push_back(p);
  for (const Vec3d& p : line({20, 3.5, 1}, {30, 3.5, 1}, 20)) points.push_back(p);
  bulging.add(points);
  const Score bulge = score_of("straight", bulging.batch());
  EXPECT_EQ(bulge.valid_count, 1u);
  // y = 4.5 lies in voxels that reach from 4 to 6 mm, where no sub-sample is inside: 20 of them; the steps aside at
  // x = -20 and 20 lie on voxel borders and belong to the higher voxel, which adds one at x = 20.
  EXPECT_EQ(bulge.bundles[0].any.extra_voxels, 21u);
  EXPECT_NEAR(bulge.bundles[0].any.overreach, 21.0 / 480, 1e-12);
  EXPECT_NEAR(bulge.bundles[0].any.overreach_share, 21.0 / static_cast<double>(21 + bulge.bundles[0].any.found_voxels),
              1e-12);
}

TEST(Score, commissural_streamlines_have_their_ends_on_both_sides) {
  const auto truth = read_phantom(phantom_folder("commissural"));
  ASSERT_OK(truth);
  Lines lines;
  for (const Bundle& bundle : truth->bundles) lines.add(fibre(bundle, {0, 0}));
  const Score score = score_of("commissural", lines.batch());
  EXPECT_EQ(score.commissural_count, 1u);
  EXPECT_EQ(score.crossing_midline_count, 1u);
  EXPECT_EQ(score.valid_count, 5u);
}

TEST(Score, a_streamline_that_comes_back_crosses_the_midline_and_is_not_commissural) {
  Lines lines;
  lines.add({{-20, 0, 0}, {5, 0, 0}, {-15, 0, 0}});
  lines.add({{-20, 0, 0}, {5, 0, 0}});
  lines.add({{-20, 0, 0}, {0, 0, 0}, {-5, 0, 0}});
  lines.add({{3, 0, 0}, {5, 0, 0}});
  const Score score = score_of("commissural", lines.batch());
  EXPECT_EQ(score.commissural_count, 1u);
  EXPECT_EQ(score.crossing_midline_count, 2u);
  EXPECT_DOUBLE_EQ(score.commissural.value, 0.25);
  EXPECT_DOUBLE_EQ(score.crossing_midline.value, 0.5);
}

TEST(Score, connectivity_follows_the_cross_sections) {
  const auto truth = read_phantom(phantom_folder("commissural"));
  ASSERT_OK(truth);
  // Numbers in proportion to 25 and 16: the correlation is 1.
  Lines lines;
  for (std::size_t b = 0; b < truth->bundles.size(); ++b) {
    for (int i = 0; i < (b == 0 ? 25 : 16); ++i) lines.add(fibre(truth->bundles[b], {0, 0}));
  }
  EXPECT_NEAR(score_of("commissural", lines.batch()).connectivity_correlation.value, 1, 1e-12);
  // Only one of five bundles: x = n at one of 45 pairs. By hand: t = 25, 16 (4 times), 0 (40 times).
  Lines one;
  one.add(fibre(truth->bundles[0], {0, 0}));
  const double n = 45, t = 25 + 64, tt = 625 + 4 * 256;
  const double expected = (25 - t / n) / std::sqrt((1 - 1 / n) * (tt - t * t / n));
  EXPECT_NEAR(score_of("commissural", one.batch()).connectivity_correlation.value, expected, 1e-12);
}

// Numbers in proportion to the cross-sections: r is 1, and lower in every replicate. The interval nevertheless holds
// it.
TEST(Score, the_interval_of_the_connectivity_holds_its_value) {
  const auto truth = read_phantom(phantom_folder("commissural"));
  ASSERT_OK(truth);
  Lines lines;
  for (std::size_t b = 0; b < truth->bundles.size(); ++b) {
    for (int i = 0; i < (b == 0 ? 25 : 16); ++i) lines.add(fibre(truth->bundles[b], {0, 0}));
  }
  const Estimate r = score_of("commissural", lines.batch()).connectivity_correlation;
  EXPECT_LT(r.low, 0.995);
  EXPECT_GT(r.high, r.value - 1e-12);
  EXPECT_LE(r.high, 1);
}

TEST(Score, a_scrambled_order_loses_topography) {
  const auto truth = read_phantom(phantom_folder("straight"));
  ASSERT_OK(truth);
  std::mt19937 random(2);
  std::uniform_real_distribution<double> place(-2.5, 2.5);
  Lines kept, turned, scrambled;
  for (int i = 0; i < 400; ++i) {
    const double y = place(random), z = place(random);
    kept.add(line({-30, y, z}, {30, y, z}, 4));
    turned.add(line({-30, y, z}, {30, -y, -z}, 4));
    scrambled.add(line({-30, y, z}, {30, place(random), place(random)}, 4));
  }
  EXPECT_NEAR(score_of("straight", kept.batch()).topography, 1, 1e-6);
  EXPECT_NEAR(score_of("straight", turned.batch()).topography, -1, 1e-6);
  EXPECT_NEAR(score_of("straight", scrambled.batch()).topography, 0, 0.15);
}

TEST(Score, odd_streamlines_do_no_harm) {
  Lines lines;
  lines.add({});
  lines.add({{0, 0, 0}});
  lines.add({{-30, 0, 0}, {std::numeric_limits<double>::quiet_NaN(), 0, 0}, {30, 0, 0}});
  lines.add({{-1e30, 0, 0}, {1e30, 0, 0}});
  lines.add({{5, 5, 5}, {5, 5, 5}, {5, 5, 5}});
  const Score score = score_of("straight", lines.batch());
  EXPECT_EQ(score.streamlines, 5u);
  EXPECT_EQ(score.no_connection_count, 5u);
  EXPECT_EQ(score.not_finite_count, 2u);
  const Score nothing = score_of("straight", TractogramBatch{});
  EXPECT_EQ(nothing.streamlines, 0u);
  EXPECT_TRUE(std::isnan(nothing.valid.value));
}

TEST(Score, batches_and_threads_change_nothing) {
  const auto truth = read_phantom(phantom_folder("bottleneck"));
  ASSERT_OK(truth);
  std::vector<std::vector<Vec3d>> all;
  std::mt19937 random(9);
  std::uniform_real_distribution<double> uniform(-0.6, 0.6);
  for (int i = 0; i < 60; ++i) {
    const Bundle& bundle = truth->bundles[static_cast<std::size_t>(i % 2)];
    all.push_back(fibre(bundle, {uniform(random), uniform(random)}, i % 5 == 0 ? 0.4 : 0, 1));
  }
  const auto run = [&](std::size_t per_batch, int threads) {
    const auto own = ThreadPool::create(threads);
    EXPECT_TRUE(own);
    auto scorer = Scorer::create(phantom_folder("bottleneck"), {.bootstrap = 200, .seed = 3});
    EXPECT_TRUE(scorer);
    for (std::size_t i = 0; i < all.size(); i += per_batch) {
      Lines lines;
      for (std::size_t k = i; k < std::min(all.size(), i + per_batch); ++k) lines.add(all[k]);
      scorer->add(lines.batch(), **own);
    }
    const Score score = scorer->finish(**own);
    return std::vector<double>{score.valid.low,
                               score.valid.high,
                               score.angular_error_deg.value,
                               score.angular_error_deg.low,
                               score.any.f1.value,
                               score.any.f1.low,
                               score.any.f1.high,
                               score.distance_mm.high,
                               score.connectivity_correlation.low,
                               score.angular_error_median_deg,
                               score.length_mm.low};
  };
  const auto expected = run(60, 1);
  EXPECT_EQ(run(60, 8), expected);
  EXPECT_EQ(run(7, 2), expected);
  EXPECT_EQ(run(1, 1), expected);
}

}  // namespace
}  // namespace cingulum
