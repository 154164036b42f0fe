// The plan as kernels read it: plain numbers, the same bytes for every backend. Made and checked by tracking_plan.cpp.
// Includes nothing that a device compiler would stumble over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "numerics/philox.hpp"
#include "numerics/trilinear.hpp"

namespace cingulum {

enum class Getter : std::uint32_t { boot, prob, ptt, det, closest, tensor };

// Why a half of a streamline ended, in the order of the codes that TRX files carry (end_reason).
enum class EndReason : std::uint8_t {
  none = 0,      // one-sided: this half was not tracked
  stop_map = 1,  // the stopping map is not above its threshold
  outside_image = 2,
  no_direction = 3,  // the getter found none in the cone
  max_length = 4,
  stop_region = 5,   // a region given by --stop was entered
  outside_mask = 6,  // the voxel that contains the point does not pass, where a map is a mask (stop_nearest)
};
constexpr std::size_t end_reason_count = 7;

// The numbers that kernels read. Plain: copied to devices as they are.
struct TrackingPlan {
  std::uint32_t getter;
  numerics::GridSize size;
  float step_mm;
  float step_in_voxels[3];  // step_mm / edge_mm along i, j, k
  float voxels_per_mm[3];
  float cos_max_angle;
  float stop_threshold;
  std::uint32_t stop_nearest;  // the map's value is that of the voxel that contains the point, not an interpolated one
  std::uint32_t max_steps;     // of one half
  float relative_threshold;
  float absolute_threshold;
  float relative_peak_threshold;
  float cos_min_separation;
  std::uint32_t max_directions;  // at most this many initial directions; never 0
  std::uint32_t draws_start;     // one initial direction per seed, drawn by the amplitudes there, instead of its peaks
  float angular_weight;
  std::uint32_t one_sided;
  std::uint32_t turns_back;  // the second half starts against the first step of the first; ptt's halves share a tangent
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
  std::uint32_t ptt_bound_interval;  // arcs from one estimate of the rejection bound to the next
  std::uint32_t ptt_substeps;
  float ptt_arc_mm;            // step_mm / ptt_substeps
  std::uint32_t reach_voxels;  // records that a streamline reads lie this far, along each axis, from one that passes
  numerics::PhiloxKey key;
};
static_assert(std::is_trivially_copyable_v<TrackingPlan>);

constexpr std::uint32_t most_initial_directions = 32;

}  // namespace cingulum
