// What a run of tractography is asked to do, checked: lengths in millimetres, angles in degrees, names as users write
// them (TrackingOptions), and the plain numbers that every backend gets, the same bytes for each (TrackingPlan). Made
// by the command line and by Python, read by the trackers. It holds no data and knows no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/philox.hpp"
#include "numerics/trilinear.hpp"

namespace cingulum {

enum class Getter : std::uint32_t { boot, prob, ptt, det, closest, tensor };
[[nodiscard]] std::string_view getter_name(Getter getter);
[[nodiscard]] Result<Getter> getter_from_name(std::string_view name);

enum class BootRetry : std::uint32_t {
  no_peak,           // DIPY: sample until one has a peak, then test the angle once
  no_peak_or_angle,  // cuslines: the angle test, too, asks for another sample
};

// Why a half of a streamline ended, in the order of the codes that TRX files carry (end_reason).
enum class EndReason : std::uint8_t {
  none = 0,      // one-sided: this half was not tracked
  stop_map = 1,  // the stopping map is not above its threshold
  outside_image = 2,
  no_direction = 3,  // the getter found none in the cone
  max_length = 4,
  stop_region = 5,  // a region given by --stop was entered
  outside_mask = 6,
};
constexpr std::size_t end_reason_count = 7;
[[nodiscard]] std::string_view end_reason_name(EndReason reason);

// As the user gave it; defaults are those of the command line.
struct TrackingOptions {
  Getter getter = Getter::boot;
  double step_mm = 0;  // 0: half of the smallest voxel edge
  double max_angle_deg = 60;
  double min_length_mm = 2;
  double max_length_mm = 500;
  double stop_threshold = 0.1;      // tracked where the map is above it
  double relative_threshold = 0.1;  // prob, det, ptt: amplitudes below this share of the largest count as zero
  double absolute_threshold = 0;    // and those below this
  double relative_peak_threshold = 0.25;
  double min_separation_deg = 45;
  std::uint32_t max_directions = 0;  // initial directions per seed, the strongest; 0: all
  double angular_weight = 0;         // w: amplitudes times (1 - w) + w |cos| to the direction of travel
  bool one_sided = false;
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
  std::uint32_t ptt_tries = 1000;  // at 60 degrees a probe of two edges has support on few hundredths of the disc
  std::uint32_t ptt_substeps = 1;
  std::uint64_t random_key = 0;
};

// The numbers that kernels read. Plain: copied to devices as they are.
struct TrackingPlan {
  std::uint32_t getter;
  numerics::GridSize size;
  float step_mm;
  float step_in_voxels[3];  // step_mm / edge_mm along i, j, k
  float voxels_per_mm[3];
  float cos_max_angle;
  float stop_threshold;
  std::uint32_t max_steps;  // of one half
  float relative_threshold;
  float absolute_threshold;
  float relative_peak_threshold;
  float cos_min_separation;
  std::uint32_t max_directions;  // at most this many initial directions; never 0
  float angular_weight;
  std::uint32_t one_sided;
  std::uint32_t refine;
  std::uint32_t rk4;
  std::uint32_t boot_attempts;
  std::uint32_t boot_retry_angle;
  std::uint32_t boot_seed;
  float boot_min_signal;
  float ptt_probe_length_mm;
  float ptt_probe_step_mm;
  float ptt_probe_radius_mm;
  std::uint32_t ptt_probe_quality;
  std::uint32_t ptt_probe_count;
  std::uint32_t ptt_exponent_is_one;
  float ptt_exponent;
  float ptt_max_curvature;  // per mm
  std::uint32_t ptt_weak_links;
  std::uint32_t ptt_tries;
  std::uint32_t ptt_substeps;
  numerics::PhiloxKey key;
};
static_assert(std::is_trivially_copyable_v<TrackingPlan>);

constexpr std::uint32_t most_initial_directions = 32;

// Checks every value; the failure names option, value and range.
[[nodiscard]] Result<TrackingPlan> make_tracking_plan(const TrackingOptions& options, const ImageGeometry& geometry);

}  // namespace cingulum
