#include "runs/oct/oct_request.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runs/oct/oct_fields.hpp"
#include "runs/oct/oct_options.hpp"
#include "runs/oct/oct_run.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct_request_tests {
namespace {

using testing::fails_with;

OctRequest with_defaults(OctRequest request = {}) {
  EXPECT_TRUE(fill_in_defaults(oct_fields(), request));
  return request;
}

class Machine : public ::testing::Test {
 protected:
  Settings settings_ = Settings::from_variables({{"HOME", "/nowhere"}});
  RunMachine machine_{settings_, {}};
  TemporaryFolder folder_;
};
using OctRequests = Machine;

TEST(OctFields, have_one_name_each_and_defaults_that_parse) {
  std::set<std::string> names;
  for (const auto& field : oct_fields()) {
    const std::vector<std::string>& actions = field.argument.actions;
    EXPECT_TRUE(names.insert(field.argument.name).second) << field.argument.name;
    // A request is one of the whole run: its sidecar holds every field that decides the volume.
    EXPECT_TRUE(actions.empty() || std::find(actions.begin(), actions.end(), "run") != actions.end())
        << field.argument.name;
  }
  EXPECT_EQ(names.size(), 46u);
  EXPECT_EQ(oct_fields().front().argument.name, "tiles");
  EXPECT_EQ(oct_fields().back().argument.name, "device");
  EXPECT_EQ(with_defaults().blending.value(), "cosine");
}

// Every option that decides the slices reaches the stage that it is for: a field that is left out of oct_options.cpp
// would leave two of these equal.
TEST_F(OctRequests, become_the_options_of_the_stages) {
  OctRequest request;
  request.search = 7;
  request.smoothing = 0.5;
  request.max_rejected = 0.25;
  request.method = "smith";
  request.strength = 0.75;
  request.floor = 3.5;
  request.median = 4;
  request.s_xy = 9;
  request.s_z = 1.5;
  request.no_log = true;
  request.detect_cutting_errors = true;
  request.moving_plane = 6;
  request.planes = 8;
  request.max_rotation = 2.5;
  request.max_shift = 11.0;
  request.confidence_high = 0.7;
  request.confidence_low = 0.2;
  request.smooth_window = 3;
  request.translation_smooth_sigma = 1.25;
  request.max_cumulative_drift = 17.0;
  request.crop_depth = 120.0;
  request.resolution = 25.0;
  request.no_flat_field = true;
  request.no_profile = true;
  request.normalise_planes = true;
  request.slicing_interval = 0.2;
  request.search_range = 0.05;
  request.memory = 1u << 20;
  request.tile_memory = 1u << 10;
  request.device = std::vector<std::string>{"cpu", "cpu"};
  request = with_defaults(request);
  ASSERT_OK_AND_ASSIGN(const oct::ReconstructionOptions options, reconstruction_options(request, machine_));
  EXPECT_EQ(options.placement.search_px, 7u);
  EXPECT_EQ(options.placement.smoothing_px, 0.5);
  EXPECT_EQ(options.placement.max_rejected, 0.25);
  ASSERT_TRUE(options.corrections.attenuation.has_value());
  EXPECT_EQ(options.corrections.attenuation->strength, 0.75);
  EXPECT_EQ(options.corrections.attenuation->noise_floor, 3.5);
  EXPECT_EQ(options.corrections.attenuation->window, 4u);
  EXPECT_FALSE(options.corrections.axial_profile);
  EXPECT_TRUE(options.corrections.normalise);
  EXPECT_EQ(options.registration.moving_plane, 6u);
  EXPECT_EQ(options.registration.planes, 8u);
  EXPECT_EQ(options.registration.max_rotation_deg, 2.5);
  EXPECT_EQ(options.registration.max_shift_px, 11.0);
  EXPECT_EQ(options.stack.first_plane, 6u);
  EXPECT_EQ(options.stack.max_rotation_deg, 2.5);
  EXPECT_EQ(options.stack.max_shift_px, 11.0);
  EXPECT_EQ(options.stack.confidence_high, 0.7);
  EXPECT_EQ(options.stack.confidence_low, 0.2);
  EXPECT_EQ(options.stack.rotation_window, 3u);
  EXPECT_EQ(options.stack.shift_smoothing, 1.25);
  EXPECT_EQ(options.stack.max_drift_px, 17.0);
  EXPECT_EQ(options.crop_depth_um, 120.0);
  EXPECT_EQ(options.resolution_um, 25.0);
  EXPECT_FALSE(options.flat_field);
  EXPECT_TRUE(options.curvature);
  EXPECT_EQ(options.slicing_interval_mm, 0.2);
  EXPECT_EQ(options.search_range_mm, 0.05);
  EXPECT_EQ(options.memory_bytes, 1u << 20);
  EXPECT_EQ(options.kept_tile_bytes, 1u << 10);
  EXPECT_EQ(options.devices, 2u);
  const oct::InterfaceOptions surface = interface_options(request);
  EXPECT_EQ(surface.box_xy, 9u);
  EXPECT_EQ(surface.sigma_z, 1.5);
  EXPECT_FALSE(surface.use_log);
  EXPECT_TRUE(surface.detect_cutting_errors);
}

TEST_F(OctRequests, of_other_scripts_change_what_was_not_given) {
  OctRequest request;
  request.compat = "linumpy";
  EXPECT_EQ(stack_options(with_defaults(request)).rotation_window, 5u);
  EXPECT_EQ(stack_options(with_defaults(request)).shift_smoothing, 3.0);
  request.smooth_window = 0;
  request.translation_smooth_sigma = 0.0;
  EXPECT_EQ(stack_options(with_defaults(request)).rotation_window, 0u);
  EXPECT_EQ(stack_options(with_defaults(request)).shift_smoothing, 0.0);
}

TEST_F(OctRequests, levels_are_a_number_or_found) {
  OctRequest request;
  ASSERT_OK_AND_ASSIGN(const auto one, pyramid_levels(with_defaults(request)));
  EXPECT_EQ(one, 1u);
  request.pyramid = "auto";
  ASSERT_OK_AND_ASSIGN(const auto found, pyramid_levels(with_defaults(request)));
  EXPECT_FALSE(found.has_value());
  for (const char* bad : {"0", "65", "-1", "2.5", "", "many"}) {
    request.pyramid = bad;
    EXPECT_TRUE(fails_with(pyramid_levels(with_defaults(request)), ErrorKind::invalid_argument, "pyramid")) << bad;
  }
}

TEST_F(OctRequests, without_tiles_or_a_name_for_the_volume_are_refused) {
  EXPECT_TRUE(fails_with(reconstruct({}, machine_), ErrorKind::invalid_argument, "tiles"));
  OctRequest request;
  request.tiles = (folder_.path() / "nothing").string();
  EXPECT_TRUE(fails_with(reconstruct(request, machine_), ErrorKind::invalid_argument, "out"));
  request.out = (folder_.path() / "volume.ome.zarr").string();
  EXPECT_FALSE(reconstruct(request, machine_));
  EXPECT_FALSE(explain_reconstruction(request, machine_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "a run that does not begin leaves nothing";
}

}  // namespace
}  // namespace cingulum::oct_request_tests
