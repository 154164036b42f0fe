#include "tract/plan/tracking_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/edit_distance.hpp"
#include "numerics/elementary64.hpp"
#include "tract/kernel/ptt.hpp"

namespace cingulum {
namespace {

constexpr std::array<std::string_view, 6> getter_names = {"boot", "prob", "ptt", "det", "closest", "tensor"};

constexpr std::array<std::string_view, end_reason_count> end_reason_names = {
    "none", "stop_map", "outside_image", "no_direction", "max_length", "stop_region", "outside_mask"};

double radians(double degrees) {
  constexpr double pi_over_180 = 0x1.1df46a2529d39p-6;
  return degrees * pi_over_180;
}

// A range with either end open: the message says "more than" or "less than" there.
struct Accepted {
  double minimum = 0;
  double maximum = std::numeric_limits<double>::max();
  bool above_minimum = false;
  std::string_view unit = {};
};

Status check(std::string_view argument, double value, const Accepted& accepted) {
  const bool low = accepted.above_minimum ? value > accepted.minimum : value >= accepted.minimum;
  if (numerics::is_finite(value) && low && value <= accepted.maximum) return {};
  const std::string unit = accepted.unit.empty() ? "" : fmt::format(" {}", accepted.unit);
  const std::string_view least = accepted.above_minimum ? "more than" : "at least";
  if (accepted.maximum == std::numeric_limits<double>::max()) {
    return fail_argument(argument, "{} {}{}: accepted is a number of {} {}{}", argument_name(argument), value, unit,
                         least, accepted.minimum, unit);
  }
  return fail_argument(argument, "{} {}{}: accepted is a number of {} {} and at most {}{}", argument_name(argument),
                       value, unit, least, accepted.minimum, accepted.maximum, unit);
}

Status check_options(const TrackingOptions& options) {
  constexpr Accepted share = {.minimum = 0, .maximum = 1};
  constexpr Accepted not_negative_mm = {.minimum = 0, .maximum = 1e6, .unit = "mm"};
  CGL_TRY(check("step_size", options.step_mm, {.minimum = 0, .maximum = 100, .unit = "mm"}));
  CGL_TRY(check("max_angle", options.max_angle_deg,
                {.minimum = 0, .maximum = 90, .above_minimum = true, .unit = "degrees"}));
  CGL_TRY(check("min_length", options.min_length_mm, not_negative_mm));
  CGL_TRY(
      check("max_length", options.max_length_mm, {.minimum = 0, .maximum = 1e6, .above_minimum = true, .unit = "mm"}));
  if (options.min_length_mm > options.max_length_mm) {
    return fail_argument("min_length", "{} {} mm: accepted is at most {}, {} mm", argument_name("min_length"),
                         options.min_length_mm, argument_name("max_length"), options.max_length_mm);
  }
  CGL_TRY(check("stop_threshold", options.stop_threshold, {.minimum = -1e30, .maximum = 1e30}));
  CGL_TRY(check("pmf_threshold", options.relative_threshold, share));
  CGL_TRY(check("pmf_threshold_absolute", options.absolute_threshold, {.minimum = 0, .maximum = 1e30}));
  CGL_TRY(check("relative_peak_threshold", options.relative_peak_threshold, share));
  CGL_TRY(check("min_separation_angle", options.min_separation_deg, {.minimum = 0, .maximum = 90, .unit = "degrees"}));
  CGL_TRY(check("max_directions", options.max_directions, {.minimum = 0, .maximum = most_initial_directions}));
  CGL_TRY(check("angular_weight", options.angular_weight, share));
  // Attempts and tries stand in 16 bits of the random counter.
  CGL_TRY(check("boot_attempts", options.boot_attempts, {.minimum = 1, .maximum = 65535}));
  CGL_TRY(check("min_signal", options.boot_min_signal, {.minimum = 0, .maximum = 1e30, .above_minimum = true}));
  CGL_TRY(check("ptt_probe_length", options.ptt_probe_length_mm, {.minimum = 0, .maximum = 1000, .unit = "mm"}));
  CGL_TRY(check("ptt_probe_radius", options.ptt_probe_radius_mm, {.minimum = 0, .maximum = 1000, .unit = "mm"}));
  CGL_TRY(check("ptt_probe_quality", options.ptt_probe_quality, {.minimum = 2, .maximum = 64}));
  CGL_TRY(check("ptt_probe_count", options.ptt_probe_count, {.minimum = 1, .maximum = 64}));
  if (options.ptt_probe_count > 1 && options.ptt_probe_radius_mm == 0) {
    return fail_argument("ptt_probe_count",
                         "{} {}: several probes lie on a circle; accepted is 1, or a {} of more than 0 mm",
                         argument_name("ptt_probe_count"), options.ptt_probe_count, argument_name("ptt_probe_radius"));
  }
  CGL_TRY(check("ptt_exponent", options.ptt_exponent, {.minimum = 0, .maximum = 64, .above_minimum = true}));
  CGL_TRY(check("ptt_min_radius", options.ptt_min_radius_mm, {.minimum = 0, .maximum = 1e6, .unit = "mm"}));
  CGL_TRY(check("ptt_tries", options.ptt_tries, {.minimum = 1, .maximum = 65535}));
  CGL_TRY(check("ptt_bound_interval", options.ptt_bound_interval, {.minimum = 1, .maximum = 1000}));
  return check("ptt_substeps", options.ptt_substeps, {.minimum = 1, .maximum = 1000});
}

Status check_geometry(const ImageGeometry& geometry) {
  // Kernels compare positions with sizes in float32, in which whole numbers are exact below 2^24.
  constexpr std::int64_t longest_axis = std::int64_t{1} << 24U;
  for (const std::int64_t size : geometry.size) {
    if (size < 1 || size >= longest_axis) {
      return fail(ErrorKind::invalid_argument, "an image of {} x {} x {} voxels: accepted is 1 to {} along each axis",
                  geometry.size[0], geometry.size[1], geometry.size[2], longest_axis - 1);
    }
  }
  const double voxels = static_cast<double>(geometry.size[0]) * static_cast<double>(geometry.size[1]) *
                        static_cast<double>(geometry.size[2]);
  if (voxels >= 0x1p32) {
    return fail(ErrorKind::invalid_argument, "an image of {} x {} x {} voxels: accepted is fewer than 2^32 in all",
                geometry.size[0], geometry.size[1], geometry.size[2]);
  }
  for (const double edge : geometry.voxel_mm()) {
    if (!(numerics::is_finite(edge) && edge >= 1e-4 && edge <= 1e4)) {
      return fail(ErrorKind::invalid_argument,
                  "a voxel edge of {} mm: accepted is 0.0001 to 10000 mm; check the affine of the image", edge);
    }
  }
  return {};
}

std::uint32_t reach_of(const TrackingPlan& plan) {
  if (static_cast<Getter>(plan.getter) != Getter::ptt) return 1;
  const double reach_mm = static_cast<double>(plan.ptt_probe_length_mm) +
                          static_cast<double>(plan.ptt_probe_radius_mm) + static_cast<double>(plan.step_mm);
  const float voxels_per_mm = std::max(plan.voxels_per_mm[0], std::max(plan.voxels_per_mm[1], plan.voxels_per_mm[2]));
  return 2 + static_cast<std::uint32_t>(reach_mm * static_cast<double>(voxels_per_mm));
}

}  // namespace

std::string_view getter_name(Getter getter) {
  return getter_names[static_cast<std::size_t>(getter)];
}

Result<Getter> getter_from_name(std::string_view name) {
  for (std::size_t i = 0; i < getter_names.size(); ++i) {
    if (getter_names[i] == name) return static_cast<Getter>(i);
  }
  return fail_argument("direction_getter", "direction getter '{}': accepted is {}", name,
                       fmt::join(getter_names, ", "));
}

std::string_view end_reason_name(EndReason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return index < end_reason_names.size() ? end_reason_names[index] : "unknown";
}

Result<TrackingPlan> make_tracking_plan(const TrackingOptions& options, const ImageGeometry& geometry) {
  CGL_TRY(check_geometry(geometry));
  CGL_TRY(check_options(options));
  const std::array<double, 3> edges = geometry.voxel_mm();
  const double smallest_edge = geometry.smallest_edge_mm();
  const double step = options.step_mm > 0 ? options.step_mm : 0.5 * smallest_edge;
  const double angle = radians(options.max_angle_deg);

  TrackingPlan plan = {};
  plan.getter = static_cast<std::uint32_t>(options.getter);
  plan.size = {static_cast<std::uint32_t>(geometry.size[0]), static_cast<std::uint32_t>(geometry.size[1]),
               static_cast<std::uint32_t>(geometry.size[2])};
  plan.step_mm = static_cast<float>(step);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    plan.step_in_voxels[axis] = static_cast<float>(step / edges[axis]);
    plan.voxels_per_mm[axis] = static_cast<float>(1.0 / edges[axis]);
  }
  plan.cos_max_angle = static_cast<float>(numerics::cosine(angle));
  plan.stop_threshold = static_cast<float>(options.stop_threshold);
  plan.stop_nearest = options.stop_rule == StopRule::nearest ? 1 : 0;

  // A half may take the whole length. The share keeps 500 / 0.1 from becoming 4999.
  const double steps = numerics::floor_of(options.max_length_mm / step * (1 + 1e-9));
  const double internal_steps = steps * options.ptt_substeps;
  if (!(steps >= 1)) {
    return fail_argument("max_length", "{} {} mm: accepted is at least one step, {} mm", argument_name("max_length"),
                         options.max_length_mm, step);
  }
  constexpr double most_steps = 16'777'216;
  if (internal_steps > most_steps) {
    return fail_argument("max_length", "{} {} mm takes {} steps of {} mm: accepted are {} (with {} counted)",
                         argument_name("max_length"), options.max_length_mm, internal_steps,
                         step / options.ptt_substeps, most_steps, argument_name("ptt_substeps"));
  }
  plan.max_steps = static_cast<std::uint32_t>(steps);
  plan.relative_threshold = static_cast<float>(options.relative_threshold);
  plan.absolute_threshold = static_cast<float>(options.absolute_threshold);
  plan.relative_peak_threshold = static_cast<float>(options.relative_peak_threshold);
  plan.cos_min_separation = static_cast<float>(numerics::cosine(radians(options.min_separation_deg)));
  plan.max_directions = options.max_directions == 0 ? most_initial_directions : options.max_directions;
  plan.draws_start = options.draw_start ? 1 : 0;
  plan.angular_weight = static_cast<float>(options.angular_weight);
  plan.one_sided = options.one_sided ? 1 : 0;
  plan.turns_back = options.second_half == SecondHalf::first_step && options.getter != Getter::ptt ? 1 : 0;
  plan.refine = options.refine ? 1 : 0;
  plan.rk4 = options.rk4 ? 1 : 0;
  plan.boot_attempts = options.boot_attempts;
  plan.boot_retry_angle = options.boot_retry == BootRetry::no_peak_or_angle ? 1 : 0;
  plan.boot_seed = options.boot_seed ? 1 : 0;
  plan.boot_min_signal = static_cast<float>(options.boot_min_signal);

  const double probe_length = options.ptt_probe_length_mm > 0 ? options.ptt_probe_length_mm : 2 * smallest_edge;
  plan.ptt_probe_length_mm = static_cast<float>(probe_length);
  // The first of `quality` points is the probe's beginning.
  plan.ptt_probe_step_mm = static_cast<float>(probe_length / (options.ptt_probe_quality - 1));
  plan.ptt_probe_radius_mm = static_cast<float>(options.ptt_probe_radius_mm);
  plan.ptt_probe_quality = options.ptt_probe_quality;
  plan.ptt_probe_count = options.ptt_probe_count;
  plan.ptt_exponent_is_one = options.ptt_exponent == 1 ? 1 : 0;
  plan.ptt_exponent = static_cast<float>(options.ptt_exponent);
  // The circle on which a chord of one step turns by the largest angle has radius step / (2 sin(angle / 2)).
  const double min_radius =
      options.ptt_min_radius_mm > 0 ? options.ptt_min_radius_mm : step / (2 * numerics::sine(angle / 2));
  plan.ptt_max_curvature = static_cast<float>(1.0 / min_radius);
  plan.ptt_weak_links = options.ptt_weak_links ? 1 : 0;
  plan.ptt_tries = options.ptt_tries;
  // Few candidates leave none to spend on a bound that may be too high.
  plan.ptt_bound_interval = options.ptt_tries > kernel::tries_on_trust ? options.ptt_bound_interval : 1;
  plan.ptt_substeps = options.ptt_substeps;
  // The quotient is taken in float32, as a kernel would take it.
  plan.ptt_arc_mm = plan.step_mm / static_cast<float>(plan.ptt_substeps);
  plan.reach_voxels = reach_of(plan);
  plan.key = numerics::philox_key(options.random_key);
  return plan;
}

}  // namespace cingulum
