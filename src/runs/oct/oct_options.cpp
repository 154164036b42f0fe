#include "runs/oct/oct_options.hpp"

#include "base/argument_name.hpp"
#include "base/quantity.hpp"
#include "oct/placement/blend.hpp"
#include "runs/wanted_devices.hpp"

namespace cingulum {

oct::PlacementOptions placement_options(const OctRequest& request) {
  oct::PlacementOptions options;
  options.search_px = static_cast<std::size_t>(request.search.value());
  options.smoothing_px = request.smoothing.value();
  options.max_rejected = request.max_rejected.value();
  return options;
}

Result<oct::AttenuationOptions> attenuation_options(const OctRequest& request) {
  oct::AttenuationOptions options;
  CGL_TRY_ASSIGN(options.method, oct::parse_attenuation_method(request.method.value()));
  options.strength = request.strength.value();
  if (request.floor.has()) options.noise_floor = request.floor.value();
  options.window = static_cast<std::size_t>(request.median.value());
  return options;
}

oct::InterfaceOptions interface_options(const OctRequest& request) {
  oct::InterfaceOptions options;
  options.box_xy = static_cast<std::uint32_t>(request.s_xy.value());
  options.sigma_z = request.s_z.value();
  options.use_log = !request.no_log.value();
  options.detect_cutting_errors = request.detect_cutting_errors.value();
  return options;
}

oct::RegistrationOptions registration_options(const OctRequest& request) {
  oct::RegistrationOptions options;
  options.moving_plane = static_cast<std::size_t>(request.moving_plane.value());
  options.planes = static_cast<std::size_t>(request.planes.value());
  options.max_rotation_deg = request.max_rotation.value();
  options.max_shift_px = request.max_shift.value();
  return options;
}

oct::StackOptions stack_options(const OctRequest& request) {
  oct::StackOptions options;
  options.first_plane = static_cast<std::size_t>(request.moving_plane.value());
  options.max_rotation_deg = request.max_rotation.value();
  options.max_shift_px = request.max_shift.value();
  options.confidence_high = request.confidence_high.value();
  options.confidence_low = request.confidence_low.value();
  options.rotation_window = static_cast<std::size_t>(request.smooth_window.value());
  options.shift_smoothing = request.translation_smooth_sigma.value();
  options.max_drift_px = request.max_cumulative_drift.value();
  if (request.compat.has()) {
    if (!request.smooth_window.given()) options.rotation_window = 5;
    if (!request.translation_smooth_sigma.given()) options.shift_smoothing = 3;
  }
  return options;
}

Result<oct::ReconstructionOptions> reconstruction_options(const OctRequest& request, RunMachine& machine) {
  oct::ReconstructionOptions options;
  CGL_TRY_ASSIGN(options.pool, machine.pool());
  options.run.cancel = machine.cancel();
  options.run.progress = machine.progress_options();
  options.flat_field = !request.no_flat_field.value();
  options.curvature = !request.no_curvature.value();
  options.crop = !request.no_crop.value();
  if (request.crop_depth.has()) options.crop_depth_um = request.crop_depth.value();
  if (request.resolution.has()) options.resolution_um = request.resolution.value();
  options.kept_tile_bytes = request.tile_memory.value();
  options.memory_bytes = request.memory.has() ? request.memory.value() : oct::free_host_memory();
  CGL_TRY_ASSIGN(const std::vector<std::string> devices, wanted_device_names(request.device, machine));
  options.devices = devices.size();
  options.placement = placement_options(request);
  CGL_TRY_ASSIGN(options.blending, oct::parse_blending(request.blending.value()));
  options.corrections.axial_profile = !request.no_profile.value();
  if (!request.no_attenuation.value()) {
    CGL_TRY_ASSIGN(options.corrections.attenuation, attenuation_options(request));
    // A finer map lets bright spots throw bright shadows, by which slices would be registered too deep.
    constexpr std::size_t attenuation_block_px = 64;
    if (!request.median.given() && !request.compat.has()) {
      options.corrections.attenuation->block_px = attenuation_block_px;
    }
  }
  options.corrections.normalise = request.normalise_planes.value() || request.compat.has();
  options.basic = request.compat.has();
  options.registration = registration_options(request);
  options.search_range_mm = request.search_range.value();
  if (request.slicing_interval.has()) options.slicing_interval_mm = request.slicing_interval.value();
  options.stack = stack_options(request);
  return options;
}

Result<oct::VolumeReadOptions> volume_read_options(const OctRequest& request, RunMachine& machine) {
  oct::VolumeReadOptions options;
  CGL_TRY_ASSIGN(options.pool, machine.pool());
  options.cancel = machine.cancel();
  if (request.unit.has()) options.unit = request.unit.value();
  return options;
}

Result<std::optional<std::size_t>> pyramid_levels(const OctRequest& request) {
  const std::string& levels = request.pyramid.value();
  if (levels == "auto") return std::nullopt;
  const auto value = parse_integer(levels);
  if (!value || *value < 1 || *value > 64) {
    return fail_argument("pyramid", "{} '{}': accepted are 1 to 64 levels, or auto", argument_name("pyramid"), levels);
  }
  return std::optional(static_cast<std::size_t>(*value));
}

}  // namespace cingulum
