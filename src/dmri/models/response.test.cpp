#include "dmri/models/response.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/argument_name.hpp"
#include "base/thread_pool.hpp"
#include "dmri/sphere/sphere.hpp"
#include "support/each_device.hpp"

namespace cingulum {
namespace {

TEST(Response, a_tensor_and_zonal_coefficients_are_told_apart) {
  ASSERT_OK_AND_ASSIGN(const FibreResponse tensor, parse_response("# a comment\n0.0017 0.0003 0.0003 416.2\n"));
  ASSERT_TRUE(tensor.eigenvalues.has_value());
  EXPECT_EQ((*tensor.eigenvalues)[1], 0.0003);
  EXPECT_EQ(tensor.s0, 416.2);
  ASSERT_OK_AND_ASSIGN(const FibreResponse zonal, parse_response("600.5 -300.25 110 -27.5\n"));
  EXPECT_FALSE(zonal.eigenvalues.has_value());
  EXPECT_EQ(zonal.zonal, (std::vector<double>{600.5, -300.25, 110, -27.5}));
  // Normalised signals are small numbers too, but not all positive.
  ASSERT_OK_AND_ASSIGN(const FibreResponse normalised, parse_response("1.2 -0.6 0.2 -0.05"));
  EXPECT_FALSE(normalised.eigenvalues.has_value());
}

TEST(Response, of_several_shells_the_last_row_is_taken) {
  ASSERT_OK_AND_ASSIGN(const FibreResponse response, parse_response("# Shells: 0,1000\n1000 0 0\n500 -200 50\n"));
  EXPECT_EQ(response.zonal, (std::vector<double>{500, -200, 50}));
  EXPECT_NEAR(response.s0, 1000 / 3.5449077, 1e-4);
}

TEST(Response, what_is_written_is_read_back) {
  FibreResponse response;
  response.eigenvalues = {1.6543210987654321e-3, 3.1e-4, 3.1e-4};
  response.s0 = 299.7654321;
  ASSERT_OK_AND_ASSIGN(const FibreResponse again, parse_response(format_tensor_response(response)));
  EXPECT_EQ(*again.eigenvalues, *response.eigenvalues);
  EXPECT_EQ(again.s0, response.s0);
  const std::vector<double> zonal = {543.2109876543, -1.0 / 3, 0.1};
  ASSERT_OK_AND_ASSIGN(const FibreResponse zonal_again, parse_response(format_zonal_response(zonal)));
  EXPECT_EQ(zonal_again.zonal, zonal);
}

TEST(Response, text_that_is_no_response_is_refused_by_name) {
  EXPECT_TRUE(testing::fails_with(parse_response(""), ErrorKind::corrupt, "no numbers"));
  EXPECT_TRUE(testing::fails_with(parse_response("1 2\n3 x 4\n"), ErrorKind::corrupt, "line 2: 'x'"));
  EXPECT_TRUE(testing::fails_with(parse_response("1e999"), ErrorKind::corrupt, "not a number"));
  EXPECT_TRUE(testing::fails_with(parse_response("nan 1 1 1"), ErrorKind::corrupt, "not a number"));
  EXPECT_TRUE(testing::fails_with(parse_response("-5 1 2"), ErrorKind::corrupt, "not positive"));
}

TEST(Response, an_isotropic_tensor_is_its_mean_alone) {
  FibreResponse response;
  response.eigenvalues = {1e-3, 1e-3, 1e-3};
  response.s0 = 100;
  const Sphere sphere = *named_sphere("repulsion362");
  const std::vector<double> b(sphere.size(), 1000.0);
  ASSERT_OK_AND_ASSIGN(const auto zonal, zonal_response(response, b, sphere.directions, 4));
  EXPECT_NEAR(zonal[0], 100 * 0.36787944117144233 * 3.5449077018110318, 1e-9);
  EXPECT_NEAR(zonal[1], 0, 1e-9);
  EXPECT_NEAR(zonal[2], 0, 1e-9);
}

// The grid is one fibre everywhere: as many voxels as the box has are used, its faces included, cut at the border on
// both sides alike.
TEST(Response, is_estimated_from_the_voxels_of_the_box_and_no_others) {
  DwiSignals signals;
  signals.geometry.size = {9, 8, 7};
  VolumeSelection selection;
  std::vector<numerics::Vec3d> directions = {{0, 0, 0}};
  selection.b_values = {0};
  selection.b0 = {0};
  const Sphere sphere = *named_sphere("repulsion362");
  for (std::size_t i = 0; i < sphere.size(); i += 12) {
    directions.push_back(sphere.directions[i]);
    selection.weighted.push_back(static_cast<std::uint32_t>(selection.b_values.size()));
    selection.b_values.push_back(1000);
  }
  signals.volumes = directions.size();
  for (std::uint32_t v = 0; v < 9 * 8 * 7; ++v) {
    signals.voxels.push_back(v);
    for (std::size_t i = 0; i < directions.size(); ++i) {
      const double c = directions[i].x;
      signals.values.push_back(static_cast<float>(500 * std::exp(-selection.b_values[i] * (2e-4 + 1.5e-3 * c * c))));
    }
  }
  const auto pool = ThreadPool::create(1).value();
  const auto voxels = [&](const ResponseBox& box) {
    const auto response = estimate_response(signals, selection, directions, box, FitMachine{*pool});
    EXPECT_TRUE(response) << testing::message_of(response);
    if (!response) return std::size_t{0};
    EXPECT_NEAR((*response->eigenvalues)[0], 1.7e-3, 1e-6);
    EXPECT_NEAR((*response->eigenvalues)[1], 2e-4, 1e-6);
    EXPECT_NEAR(response->s0, 500, 1e-3);
    return response->voxels;
  };
  EXPECT_EQ(voxels({.centre = {}, .radius = 1}), 27u);
  EXPECT_EQ(voxels({.centre = {{4, 4, 3}}, .radius = 3}), 343u);
  EXPECT_EQ(voxels({.centre = {{1, 4, 3}}, .radius = 2}), 75u);  // along x one voxel to each side
  EXPECT_EQ(voxels({.centre = {}, .radius = 2}), 125u);

  // Where voxels are too few the message has the values with which there are enough, and they are right.
  const auto advice = [&](const ResponseBox& box) {
    const auto response = estimate_response(signals, selection, directions, box, FitMachine{*pool});
    EXPECT_FALSE(response);
    return response ? std::string() : response.error().message_for(plain_argument_name);
  };
  EXPECT_TRUE(
      advice({.centre = {}, .radius = 0})
          .ends_with("1 of the 1 voxels of the mask in the box of radius 0 around voxel (4, 4, 3) have FA above "
                     "0.7, at least 10 are needed; response_radius 9 finds 504, or give a response by response"))
      << advice({.centre = {}, .radius = 0});
  EXPECT_EQ(voxels({.centre = {}, .radius = 9}), 504u);
  // FA of 1.7, 0.2, 0.2 is 0.874: nothing is above 0.9, everything above 0.85.
  EXPECT_TRUE(advice({.centre = {}, .radius = 9, .least_fa = 0.9})
                  .ends_with("response_fa 0.85 with response_radius 9 finds 504, or give a response by response"));
  EXPECT_EQ(voxels({.centre = {}, .radius = 9, .least_fa = 0.85}), 504u);
  // Where it may be widened these are taken, and said; a box that has enough stays as it is.
  const auto widened = [&](const ResponseBox& box) {
    const auto response = estimate_response(signals, selection, directions, box, FitMachine{*pool}).value();
    return std::tuple(response.voxels, response.box.radius, response.box.least_fa, widened_text(box, response));
  };
  EXPECT_EQ(widened({.centre = {}, .radius = 1, .widen = true}), std::tuple(27u, 1, 0.7, std::string()));
  EXPECT_EQ(widened({.centre = {}, .radius = 0, .widen = true}),
            std::tuple(504u, 9, 0.7,
                       "the middle of the image has less than 10 voxels with FA above 0.7: the response is that of the "
                       "504 in the whole mask with FA above 0.7"));
  EXPECT_EQ(std::get<2>(widened({.centre = {}, .radius = 1, .least_fa = 0.9, .widen = true})), 0.85);
  // At the corner the box shrinks to one voxel.
  EXPECT_TRUE(advice({.centre = {{0, 0, 0}}, .radius = 3})
                  .ends_with("move the box by response_centre, or give a response by response"));
}

TEST(VolumeSelection, a_shell_keeps_all_its_volumes) {
  GradientTable table;
  table.b_values = {0, 1000, 1005, 995, 2000, 5, 1990};
  table.vectors.resize(7, {1, 0, 0});
  ASSERT_OK_AND_ASSIGN(const VolumeSelection low, select_volumes(table, ShellChoice::one_shell, 1000, 50));
  EXPECT_EQ(low.volumes, (std::vector<std::size_t>{0, 1, 2, 3, 5}));
  EXPECT_EQ(low.b0, (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(low.weighted, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(low.of_weighted(low.b_values), (std::vector<double>{1000, 1005, 995}));
  ASSERT_OK_AND_ASSIGN(const VolumeSelection high, select_volumes(table, ShellChoice::one_shell, std::nullopt, 50));
  EXPECT_EQ(high.volumes, (std::vector<std::size_t>{0, 4, 5, 6}));
  EXPECT_EQ(high.warnings.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const VolumeSelection all, select_volumes(table, ShellChoice::all_volumes, std::nullopt, 50));
  EXPECT_EQ(all.volumes.size(), 7u);
  EXPECT_TRUE(all.warnings.empty());
}

// The shell at 950 to 1010, named by numbers in it, 80 beside it and one more; among equally near ones the lower.
TEST(VolumeSelection, a_shell_is_named_by_a_number_in_its_range_or_at_most_80_beside_it) {
  GradientTable table;
  table.b_values = {0, 1010, 950, 1150, 50, 51};
  table.vectors.resize(6, {1, 0, 0});
  struct Named {
    double b;
    std::size_t volume;  // the first that is weighted; 0: refused
  };
  for (const Named& named : {Named{951, 1}, Named{1009, 1}, Named{870, 1}, Named{869, 0}, Named{1080, 1},
                             Named{1081, 3}, Named{1230, 3}, Named{1231, 0}, Named{131, 5}, Named{132, 0}}) {
    const auto found = select_volumes(table, ShellChoice::all_volumes, named.b, 50);
    ASSERT_EQ(found.has_value(), named.volume != 0) << named.b;
    if (!found) continue;
    ASSERT_FALSE(found->weighted.empty()) << named.b;
    EXPECT_EQ(found->volumes[found->weighted.front()], named.volume) << named.b;
    EXPECT_EQ(found->weighted.size(), named.volume == 1 ? 2u : 1u) << named.b;
    // What is as large as the threshold is not weighted.
    EXPECT_EQ(found->b0.size(), 2u) << named.b;
    EXPECT_TRUE(found->warnings.empty());
  }
  ASSERT_OK_AND_ASSIGN(const VolumeSelection highest, select_volumes(table, ShellChoice::one_shell, std::nullopt, 50));
  ASSERT_EQ(highest.warnings.size(), 1u);
  EXPECT_EQ(highest.warnings[0],
            fmt::format("not used: b = 51 (1 volume), 980 (2 volumes); the model takes one shell, b = 1150 (1 volume), "
                        "the highest; {} B takes another",
                        argument_name("shell")));
  ASSERT_EQ(highest.unused.size(), 2u);
  EXPECT_EQ(highest.unused[1].volumes, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(shells_json(highest.unused).dump(), R"([{"b_value":51.0,"volumes":1},{"b_value":980.0,"volumes":2}])");
  // A shell that was asked for is no reason to warn.
  ASSERT_OK_AND_ASSIGN(const VolumeSelection named, select_volumes(table, ShellChoice::one_shell, 980, 50));
  EXPECT_TRUE(named.warnings.empty());
  EXPECT_EQ(named.notes, (std::vector<std::string>{"not used: b = 51 (1 volume), 1150 (1 volume); the model takes one "
                                                   "shell, b = 980 (2 volumes)"}));
  ASSERT_OK_AND_ASSIGN(const VolumeSelection all, select_volumes(table, ShellChoice::all_volumes, std::nullopt, 50));
  EXPECT_TRUE(all.unused.empty() && all.notes.empty() && all.warnings.empty());
}

TEST(VolumeSelection, a_shell_that_is_not_there_is_refused_with_those_that_are) {
  GradientTable table;
  table.b_values = {0, 1000, 2000};
  table.vectors.resize(3, {1, 0, 0});
  EXPECT_TRUE(testing::fails_with(select_volumes(table, ShellChoice::one_shell, 3000, 50), ErrorKind::invalid_argument,
                                  "1000 (1 volume), 2000 (1 volume)"));
  table.b_values = {0, 0, 5};
  EXPECT_TRUE(testing::fails_with(select_volumes(table, ShellChoice::one_shell, std::nullopt, 50),
                                  ErrorKind::invalid_argument, "no diffusion weighting"));
}

}  // namespace
}  // namespace cingulum
