#include "dmri/series/gradient_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "dmri/models/tensor.hpp"
#include "dmri/series/gradient_frame.hpp"
#include "dmri/sphere/sphere.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

struct CurvePoint {
  Vec3d position;  // world, mm
  Vec3d tangent;
};

// A helix and two arcs around the origin of the world: no mirror image or exchange of axes looks the same.
std::vector<CurvePoint> curved_bundles() {
  std::vector<CurvePoint> points;
  for (double t = -3.4; t < 3.4; t += 0.05) {
    points.push_back({{14 * std::cos(t), 14 * std::sin(t), 7 * t},
                      numerics::normalise(Vec3d{-14 * std::sin(t), 14 * std::cos(t), 7})});
  }
  for (double t = 0.2; t < 1.8; t += 0.04) {
    points.push_back({{-26 + 30 * std::cos(t), -26 + 30 * std::sin(t), 19}, {-std::sin(t), std::cos(t), 0}});
    points.push_back({{24, -25 + 32 * std::cos(t), -24 + 32 * std::sin(t)}, {0, -std::sin(t), std::cos(t)}});
  }
  return points;
}

struct Series {
  DwiSignals signals;
  std::vector<double> b_values;
  std::vector<Vec3d> world_gradients;
};

struct Noise {
  double sigma = 0;
  bool fibres = true;
};

// A grid of the given voxel size that covers 60 mm around the origin; `axes` are the image axes as unit vectors in the
// world.
Series make_series(const std::array<Vec3d, 3>& axes, const std::array<double, 3>& voxel_mm,
                   const std::vector<CurvePoint>& curve, Noise noise = {}) {
  Series series;
  ImageGeometry& geometry = series.signals.geometry;
  Vec3d origin = {0, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    geometry.size[i] = static_cast<std::int64_t>(60 / voxel_mm[i]);
    const int column = static_cast<int>(i);
    geometry.voxel_to_world.at(0, column) = axes[i].x * voxel_mm[i];
    geometry.voxel_to_world.at(1, column) = axes[i].y * voxel_mm[i];
    geometry.voxel_to_world.at(2, column) = axes[i].z * voxel_mm[i];
    origin = origin - axes[i] * (voxel_mm[i] * static_cast<double>(geometry.size[i] - 1) / 2);
  }
  geometry.voxel_to_world.at(0, 3) = origin.x;
  geometry.voxel_to_world.at(1, 3) = origin.y;
  geometry.voxel_to_world.at(2, 3) = origin.z;
  const auto sphere = named_sphere("small");
  EXPECT_TRUE(sphere.has_value());
  series.b_values = {0};
  series.world_gradients = {{0, 0, 0}};
  for (std::size_t i = 0; i < sphere->size(); i += 12) {
    series.b_values.push_back(1000);
    series.world_gradients.push_back(sphere->directions[i]);
  }
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  series.signals.volumes = series.b_values.size();
  for (std::int64_t k = 0; k < geometry.size[2]; ++k) {
    for (std::int64_t j = 0; j < geometry.size[1]; ++j) {
      for (std::int64_t i = 0; i < geometry.size[0]; ++i) {
        const Vec3d here = geometry.voxel_to_world.apply({double(i), double(j), double(k)});
        double nearest = 16;  // (4 mm)^2: the radius of a bundle
        const CurvePoint* found = nullptr;
        for (const CurvePoint& point : curve) {
          const Vec3d difference = here - point.position;
          if (!noise.fibres || !(dot(difference, difference) < nearest)) continue;
          nearest = dot(difference, difference);
          found = &point;
        }
        series.signals.voxels.push_back(static_cast<std::uint32_t>(voxel_index(geometry, i, j, k)));
        for (std::size_t v = 0; v < series.b_values.size(); ++v) {
          const double cosine = found == nullptr ? 0 : dot(found->tangent, series.world_gradients[v]);
          const double diffusivity = found == nullptr ? 0.8e-3 : 0.3e-3 + 1.4e-3 * cosine * cosine;
          const double signal = 1000 * std::exp(-series.b_values[v] * diffusivity) + noise.sigma * normal(random);
          series.signals.values.push_back(static_cast<float>(signal));
        }
      }
    }
  }
  return series;
}

// The table as a file in the given frame would have it.
GradientTable table_in_frame(const Series& series, const std::array<Vec3d, 3>& axes, GradientFrame frame) {
  GradientTable table;
  table.b_values = series.b_values;
  table.frame = frame;
  const bool positive = series.signals.geometry.voxel_to_world.determinant() > 0;
  for (const Vec3d& g : series.world_gradients) {
    Vec3d own = {dot(axes[0], g), dot(axes[1], g), dot(axes[2], g)};
    if (frame == GradientFrame::fsl && positive) own.x = -own.x;
    table.vectors.push_back(frame == GradientFrame::world ? g : own);
  }
  return table;
}

GradientCheck check(const Series& series, const GradientTable& table, GradientFrame used) {
  static const auto pool = ThreadPool::create(2);
  const auto result = check_gradients(series.signals, table, used, **pool);
  EXPECT_TRUE(result.has_value()) << result.error().message();
  return result ? *result : GradientCheck{};
}

std::vector<std::array<Vec3d, 3>> all_orientations() {
  constexpr std::size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  std::vector<std::array<Vec3d, 3>> result;
  for (const auto& order : orders) {
    for (int signs = 0; signs < 8; ++signs) {
      std::array<Vec3d, 3> axes;
      for (std::size_t i = 0; i < 3; ++i) {
        double components[3] = {0, 0, 0};
        components[order[i]] = (signs >> i & 1) != 0 ? -1 : 1;
        axes[i] = {components[0], components[1], components[2]};
      }
      result.push_back(axes);
    }
  }
  return result;
}

// Rotated by 25 degrees about (1, 2, 3): far from every signed permutation.
std::array<Vec3d, 3> tilted(const std::array<Vec3d, 3>& axes) {
  const double angle = 25 * M_PI / 180;
  const Vec3d u = numerics::normalise(Vec3d{1, 2, 3});
  std::array<Vec3d, 3> result;
  for (std::size_t i = 0; i < 3; ++i) {
    const Vec3d v = axes[i];
    result[i] = v * std::cos(angle) + cross(u, v) * std::sin(angle) + u * (dot(u, v) * (1 - std::cos(angle)));
  }
  return result;
}

bool is_same_reading(const GradientCheck& result, GradientFrame a, GradientFrame b) {
  for (const GradientReading& reading : result.readings) {
    const auto has = [&](GradientFrame frame) {
      return std::find(reading.frames.begin(), reading.frames.end(), frame) != reading.frames.end();
    };
    if (has(a)) return has(b);
  }
  return false;
}

void expect_every_frame_told_apart(const std::array<Vec3d, 3>& axes, Noise noise) {
  const Series series = make_series(axes, {2, 2.4, 3.2}, curved_bundles(), noise);
  constexpr GradientFrame frames[] = {GradientFrame::fsl, GradientFrame::voxel, GradientFrame::world};
  for (const GradientFrame truth : frames) {
    const GradientTable table = table_in_frame(series, axes, truth);
    for (const GradientFrame used : frames) {
      const GradientCheck result = check(series, table, used);
      const std::string what = fmt::format("{}, truth {}, used {}: {}", series.signals.geometry.axis_codes(),
                                           gradient_frame_name(truth), gradient_frame_name(used), result.message);
      if (is_same_reading(result, truth, used)) {
        EXPECT_EQ(result.verdict, GradientVerdict::agrees) << what;
      } else {
        ASSERT_EQ(result.verdict, GradientVerdict::another_is_better) << what;
        ASSERT_TRUE(result.better_frame.has_value()) << what;
        EXPECT_TRUE(is_same_reading(result, truth, *result.better_frame)) << what;
        EXPECT_NE(spell_argument_names(result.message).find("give bvec_frame"), std::string::npos);
      }
    }
  }
}

TEST(gradient_check, frames_are_told_apart_in_all_48_orientations) {
  for (const auto& axes : all_orientations()) expect_every_frame_told_apart(axes, {.sigma = 20});
}

TEST(gradient_check, frames_are_told_apart_in_oblique_images) {
  const auto orientations = all_orientations();
  for (const std::size_t i : {0U, 5U, 18U, 31U, 47U}) expect_every_frame_told_apart(tilted(orientations[i]), {});
}

TEST(gradient_check, exchanged_and_negated_columns_are_found_and_named) {
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2, 2}, curved_bundles(), {.sigma = 20});
  const GradientTable good = table_in_frame(series, axes, GradientFrame::fsl);
  GradientTable bad = good;
  for (Vec3d& v : bad.vectors) v = {v.x, v.z, -v.y};
  const GradientCheck result = check(series, bad, GradientFrame::fsl);
  ASSERT_EQ(result.verdict, GradientVerdict::another_is_better);
  EXPECT_FALSE(result.better_frame.has_value());
  EXPECT_NE(result.message.find("mend the file"), std::string::npos) << result.message;
  // The best reading gives the good table's directions back, up to a common sign.
  const auto truth = directions_in_image_axes(good, GradientFrame::fsl, series.signals.geometry.voxel_to_world);
  const auto& m = result.readings[result.best].to_image;
  for (std::size_t i = 1; i < truth.size(); ++i) {
    const Vec3d v = bad.vectors[i];
    const Vec3d turned = {m[0] * v.x + m[1] * v.y + m[2] * v.z, m[3] * v.x + m[4] * v.y + m[5] * v.z,
                          m[6] * v.x + m[7] * v.y + m[8] * v.z};
    EXPECT_NEAR(std::abs(dot(turned, truth[i])), 1, 1e-9);
  }
}

TEST(gradient_check, data_without_coherent_fibres_raise_no_alarm) {
  const auto axes = all_orientations()[0];
  // Noise alone: directions are random, and there are many of them.
  const Series noise = make_series(axes, {2, 2, 2}, curved_bundles(), {.sigma = 250, .fibres = false});
  for (const GradientFrame used : {GradientFrame::fsl, GradientFrame::voxel}) {
    const GradientCheck result = check(noise, table_in_frame(noise, axes, GradientFrame::fsl), used);
    EXPECT_GT(result.voxels, 1000U);
    EXPECT_EQ(result.verdict, GradientVerdict::undecided) << result.message;
  }
  // Nothing at all.
  const Series empty = make_series(axes, {3, 3, 3}, curved_bundles(), {.sigma = 0, .fibres = false});
  const GradientCheck result = check(empty, table_in_frame(empty, axes, GradientFrame::fsl), GradientFrame::voxel);
  EXPECT_EQ(result.verdict, GradientVerdict::undecided) << result.message;
}

TEST(gradient_check, a_straight_bundle_along_an_axis_does_not_tell_flips_apart) {
  std::vector<CurvePoint> line;
  for (double t = -30; t < 30; t += 0.5) line.push_back({{t, 3, -4}, {1, 0, 0}});
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2, 2}, line);
  const GradientTable table = table_in_frame(series, axes, GradientFrame::fsl);
  for (const GradientFrame used : {GradientFrame::fsl, GradientFrame::voxel, GradientFrame::world}) {
    EXPECT_NE(check(series, table, used).verdict, GradientVerdict::another_is_better);
  }
}

TEST(gradient_check, steps_are_taken_in_millimetres) {
  // An oblique bundle in voxels four times as high as wide: steps counted in voxels would leave it.
  std::vector<CurvePoint> line;
  for (double t = -40; t < 40; t += 0.5) {
    line.push_back({{t * std::sqrt(0.5), 0, t * std::sqrt(0.5)}, {std::sqrt(0.5), 0, std::sqrt(0.5)}});
  }
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {1.5, 1.5, 6}, line);
  const GradientCheck result = check(series, table_in_frame(series, axes, GradientFrame::fsl), GradientFrame::fsl);
  EXPECT_GT(result.readings[result.used].coherence, 0.75);
  // A mean of squared cosines.
  for (const GradientReading& reading : result.readings) {
    EXPECT_GE(reading.coherence, 0) << reading.name;
    EXPECT_LE(reading.coherence, 1) << reading.name;
  }
}

// The definition written out, voxel by voxel; the b-vectors are in the axes of the image, so that a tensor's main
// direction is a step.
TEST(gradient_check, coherence_is_that_of_steps_taken_one_by_one) {
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2.4, 3.2}, curved_bundles(), {.sigma = 20});
  const GradientTable table = table_in_frame(series, axes, GradientFrame::voxel);
  const GradientCheck result = check(series, table, GradientFrame::voxel);
  const auto pool = ThreadPool::create(1);
  const auto fit = fit_tensors(series.signals, table.b_values, table.vectors, {.method = TensorMethod::ols}, **pool);
  ASSERT_TRUE(fit);
  const auto size = series.signals.geometry.size;
  const auto is_fibre = [&](std::size_t v) {
    return fit->fa[v] > 0.25f && fit->eigenvalues[3 * v + 1] > fit->least_diffusivity;
  };
  const auto direction = [&](std::size_t v) { return Vec3d{fit->v1[3 * v], fit->v1[3 * v + 1], fit->v1[3 * v + 2]}; };
  for (const GradientReading& reading : result.readings) {
    double sum = 0, count = 0;
    for (std::size_t v = 0; v < fit->size(); ++v) {  // all voxels are in the mask
      if (!is_fibre(v)) continue;
      const Vec3d own = direction(v);
      const auto& m = reading.to_image;
      const Vec3d turned = numerics::normalise(Vec3d{m[0] * own.x + m[1] * own.y + m[2] * own.z,
                                                     m[3] * own.x + m[4] * own.y + m[5] * own.z,
                                                     m[6] * own.x + m[7] * own.y + m[8] * own.z});
      const auto place = static_cast<std::int64_t>(v);
      const std::int64_t start[3] = {place % size[0], place / size[0] % size[1], place / (size[0] * size[1])};
      for (const double edges : {2.0, -2.0, 3.0, -3.0}) {
        const double step_mm = edges * (2 + 2.4 + 3.2) / 3;
        const double way[3] = {turned.x * step_mm / 2, turned.y * step_mm / 2.4, turned.z * step_mm / 3.2};
        std::int64_t end[3];
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          end[axis] = static_cast<std::int64_t>(std::floor(static_cast<double>(start[axis]) + way[axis] + 0.5));
          inside = inside && end[axis] >= 0 && end[axis] < size[axis];
        }
        if (!inside) continue;
        const auto other = static_cast<std::size_t>(voxel_index(series.signals.geometry, end[0], end[1], end[2]));
        const double cosine = is_fibre(other) ? dot(own, direction(other)) : 0;
        sum += cosine * cosine;
        count += 1;
      }
    }
    ASSERT_GT(count, 1000);
    EXPECT_NEAR(reading.coherence, sum / count, 1e-7) << reading.name;
  }
}

TEST(gradient_check, the_scores_do_not_depend_on_threads) {
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2, 2}, curved_bundles(), {.sigma = 30});
  const GradientTable table = table_in_frame(series, axes, GradientFrame::voxel);
  const auto one = ThreadPool::create(1);
  const auto three = ThreadPool::create(3);
  ASSERT_TRUE(one && three);
  const auto a = check_gradients(series.signals, table, GradientFrame::fsl, **one);
  const auto b = check_gradients(series.signals, table, GradientFrame::fsl, **three);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->readings.size(), 24U);
  for (std::size_t r = 0; r < a->readings.size(); ++r) {
    EXPECT_EQ(a->readings[r].coherence, b->readings[r].coherence);
    EXPECT_EQ(a->readings[r].standard_errors, b->readings[r].standard_errors);
  }
}

// Turned by an angle about z: the largest difference of two entries of the matrices is its sine.
TEST(gradient_check, axes_within_a_hundredth_are_the_same_reading) {
  for (const double sine : {-0.0101, -0.0099, 0.0, 0.0099, 0.0101}) {
    const double cosine = std::sqrt(1 - sine * sine);
    const std::array<Vec3d, 3> axes = {{{cosine, sine, 0}, {-sine, cosine, 0}, {0, 0, 1}}};
    const Series series = make_series(axes, {12, 12, 12}, {}, {});
    const GradientCheck result =
        check(series, table_in_frame(series, axes, GradientFrame::voxel), GradientFrame::voxel);
    const bool same = std::abs(sine) < 0.01;
    EXPECT_EQ(is_same_reading(result, GradientFrame::voxel, GradientFrame::world), same) << sine;
    EXPECT_FALSE(is_same_reading(result, GradientFrame::voxel, GradientFrame::fsl)) << "x of FSL runs the other way";
    EXPECT_EQ(result.readings.size(), same ? 24U : 48U) << sine;
    EXPECT_EQ(result.verdict, GradientVerdict::undecided) << "no fibres";
    EXPECT_EQ(result.voxels, 0U);
    EXPECT_EQ(result.readings[result.used].name, "voxel");
  }
}

SettledFrame settle(const Series& series, const GradientTable& table, WantedFrame wanted) {
  static const auto pool = ThreadPool::create(2);
  const auto result = settle_gradient_frame(series.signals, table, wanted, **pool);
  EXPECT_TRUE(result.has_value()) << result.error().message();
  return result ? *result : SettledFrame{};
}

TEST(gradient_frame, a_wrong_frame_stops_unless_it_was_given_or_left_to_the_check) {
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2, 2}, curved_bundles(), {.sigma = 20});
  GradientTable table = table_in_frame(series, axes, GradientFrame::voxel);
  table.frame = GradientFrame::fsl;  // as a pair of files says
  const auto pool = ThreadPool::create(1);
  const auto stopped = settle_gradient_frame(series.signals, table, WantedFrame::of_format, **pool);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::corrupt);
  EXPECT_NE(stopped.error().message().find("voxel"), std::string::npos) << stopped.error().message();

  const SettledFrame found = settle(series, table, WantedFrame::automatic);
  EXPECT_EQ(found.frame, GradientFrame::voxel);
  EXPECT_TRUE(found.warning.empty());

  const SettledFrame kept = settle(series, table, WantedFrame::fsl);
  EXPECT_EQ(kept.frame, GradientFrame::fsl);
  ASSERT_TRUE(kept.check);
  EXPECT_EQ(kept.check->verdict, GradientVerdict::another_is_better);
  EXPECT_EQ(kept.warning, kept.check->message);

  const SettledFrame right = settle(series, table, WantedFrame::voxel);
  EXPECT_EQ(right.frame, GradientFrame::voxel);
  EXPECT_TRUE(right.warning.empty());
}

TEST(gradient_frame, what_no_frame_explains_stops_though_it_was_left_to_the_check) {
  const auto axes = all_orientations()[0];
  const Series series = make_series(axes, {2, 2, 2}, curved_bundles(), {.sigma = 20});
  GradientTable table = table_in_frame(series, axes, GradientFrame::fsl);
  for (Vec3d& v : table.vectors) v = {v.x, v.z, -v.y};
  const auto pool = ThreadPool::create(1);
  EXPECT_FALSE(settle_gradient_frame(series.signals, table, WantedFrame::automatic, **pool));
}

TEST(gradient_frame, a_check_that_cannot_be_made_stops_unless_the_frame_was_given) {
  const auto axes = all_orientations()[0];
  Series series = make_series(axes, {3, 3, 3}, curved_bundles());
  const std::vector<std::size_t> few = {0, 1, 2, 3, 4};  // one b0 and four directions determine no tensor
  restrict_signals(series.signals, few);
  GradientTable table = table_in_frame(series, axes, GradientFrame::fsl);
  table.b_values.resize(few.size());
  table.vectors.resize(few.size());
  const auto pool = ThreadPool::create(1);
  for (const WantedFrame wanted : {WantedFrame::of_format, WantedFrame::automatic}) {
    const auto stopped = settle_gradient_frame(series.signals, table, wanted, **pool);
    ASSERT_FALSE(stopped);
    EXPECT_NE(stopped.error().message().find("checking the b-vectors"), std::string::npos);
  }
  const SettledFrame given = settle(series, table, WantedFrame::world);
  EXPECT_EQ(given.frame, GradientFrame::world);
  EXPECT_FALSE(given.check);
  EXPECT_NE(given.not_checked.find("fitting tensors"), std::string::npos);
}

TEST(gradient_frame, names_of_wanted_frames_are_read_and_written) {
  for (const char* name : {"", "auto", "fsl", "voxel", "world"}) {
    const auto wanted = parse_wanted_frame(name);
    ASSERT_TRUE(wanted) << name;
    EXPECT_EQ(wanted_frame_name(*wanted), name);
  }
  EXPECT_FALSE(parse_wanted_frame("scanner"));
  EXPECT_EQ(unchecked_frame(WantedFrame::automatic, GradientFrame::world), GradientFrame::world);
  EXPECT_EQ(unchecked_frame(WantedFrame::voxel, GradientFrame::world), GradientFrame::voxel);
}

TEST(gradient_check, of_large_images_the_planes_in_the_middle_decide) {
  const std::array<Vec3d, 3> axes = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  // 60 x 60 x 48 voxels, of which 24 planes are more than 50 000.
  const Series series = make_series(axes, {1, 1, 1.25}, curved_bundles());
  ASSERT_EQ(series.signals.geometry.size[2], 48);
  const GradientTable table = table_in_frame(series, axes, GradientFrame::voxel);
  const GradientCheck whole = check(series, table, GradientFrame::voxel);
  EXPECT_EQ(whole.verdict, GradientVerdict::agrees);
  const auto without_diffusion_in = [&](std::size_t first, std::size_t end) {
    Series spoiled = series;
    const std::size_t plane = std::size_t{60} * 60 * series.signals.volumes;
    std::fill(spoiled.signals.values.begin() + static_cast<std::ptrdiff_t>(first * plane),
              spoiled.signals.values.begin() + static_cast<std::ptrdiff_t>(end * plane), 1000.0f);
    return check(spoiled, table, GradientFrame::voxel);
  };
  for (const auto& [first, end] : {std::pair<std::size_t, std::size_t>{0, 12}, {36, 48}}) {
    const GradientCheck outside = without_diffusion_in(first, end);
    EXPECT_EQ(outside.voxels, whole.voxels);
    EXPECT_EQ(outside.readings[0].coherence, whole.readings[0].coherence);
  }
  EXPECT_LT(without_diffusion_in(12, 13).voxels, whole.voxels);
  EXPECT_LT(without_diffusion_in(35, 36).voxels, whole.voxels);
}

}  // namespace
}  // namespace cingulum
