// What a run of tractography is asked to do, checked: lengths in millimetres, angles in degrees, names as users write
// them (TrackingOptions), and the plain numbers that every backend gets, the same bytes for each (TrackingPlan). Made
// by the command line and by Python, read by the trackers. It holds no data and knows no device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "tract/kernel/plan.hpp"

namespace cingulum {

[[nodiscard]] std::string_view getter_name(Getter getter);
[[nodiscard]] Result<Getter> getter_from_name(std::string_view name);

enum class BootRetry : std::uint32_t {
  no_peak,           // DIPY: sample until one has a peak, then test the angle once
  no_peak_or_angle,  // cuslines: the angle test, too, asks for another sample
};

// What the second half of a streamline starts against.
enum class SecondHalf : std::uint32_t {
  first_step,         // the step that the first half drew (DIPY): at the seed, too, it turns by max_angle at most
  initial_direction,  // that of the first half, so that at the seed it may turn by twice max_angle
};

// What of the stopping map is compared with the threshold.
enum class StopRule : std::uint32_t {
  trilinear,  // the interpolated value: ends stop_map
  nearest,    // the value of the voxel that contains the point: for masks and labels; ends outside_mask
};

[[nodiscard]] std::string_view end_reason_name(EndReason reason);

// A plan in the units of the user. A run sets each of these from its request, whose table alone says what the defaults
// of a run are (runs/track/track_fields.cpp); the values here are for plans that tests and benches write by hand.
struct TrackingOptions {
  Getter getter = Getter::boot;
  double step_mm = 0;  // 0: half of the smallest voxel edge
  double max_angle_deg = 60;
  double min_length_mm = 2;
  double max_length_mm = 500;
  double stop_threshold = 0.1;  // tracked where the map is above it
  StopRule stop_rule = StopRule::trilinear;
  double relative_threshold = 0.1;  // prob, det, ptt: amplitudes below this share of the largest count as zero
  double absolute_threshold = 0;    // and those below this
  double relative_peak_threshold = 0.25;
  double min_separation_deg = 45;
  std::uint32_t max_directions = 0;  // initial directions per seed, the strongest; 0: all
  bool draw_start = false;           // one initial direction per seed, drawn by the amplitudes there
  double angular_weight = 0;         // w: amplitudes times (1 - w) + w |cos| to the direction of travel
  bool one_sided = false;
  SecondHalf second_half = SecondHalf::first_step;
  bool refine = true;  // det from SH: sub-vertex refinement
  bool rk4 = false;    // tensor
  std::uint32_t boot_attempts = 5;
  BootRetry boot_retry = BootRetry::no_peak;
  bool boot_seed = false;  // bootstrap at the seed, too
  double boot_min_signal = 1;
  double ptt_probe_length_mm = 0;  // 0: two smallest voxel edges
  double ptt_probe_radius_mm = 0;
  std::uint32_t ptt_probe_quality = 7;
  std::uint32_t ptt_probe_count = 1;
  double ptt_exponent = 1;
  double ptt_min_radius_mm = 0;  // 0: from step and angle
  bool ptt_weak_links = false;
  std::uint32_t ptt_tries = 1000;        // at 60 degrees a probe of two edges has support on few hundredths of the disc
  std::uint32_t ptt_bound_interval = 1;  // arcs from one estimate of the rejection bound to the next
  std::uint32_t ptt_substeps = 1;
  std::uint64_t random_key = 0;
};

// Checks every value; the failure names option, value and range.
[[nodiscard]] Result<TrackingPlan> make_tracking_plan(const TrackingOptions& options, const ImageGeometry& geometry);

}  // namespace cingulum
