// closest: of the peaks at a point the one with the smallest angle to the direction of travel, if it lies in the cone.
// Peaks are those of the record (a field of peaks) or found on its spherical function.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/find_peaks.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// The nearest of the `count` slots in slab.peaks; among equals the first. The angle is not tested.
CGL_HD inline numerics::Vec3 nearest_peak(const SphereView& sphere, const std::uint32_t* peaks, std::uint32_t count,
                                          numerics::Vec3 ahead) {
  numerics::Vec3 nearest = aligned_direction(sphere, peaks[0], ahead);
  float cosine = numerics::dot(nearest, ahead);
  for (std::uint32_t i = 1; i < count; ++i) {
    const numerics::Vec3 direction = aligned_direction(sphere, peaks[i], ahead);
    const float other = numerics::dot(direction, ahead);
    if (!(other > cosine)) continue;
    nearest = direction;
    cosine = other;
  }
  return nearest;
}

// Peak `i` of a record of peaks, and its amplitude.
CGL_HD inline numerics::Vec3 stored_peak(const float* record, std::uint32_t i) {
  return {record[3u * i], record[3u * i + 1u], record[3u * i + 2u]};
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step closest_step(const TrackingInput& input, const Slab& slab, numerics::Vec3 ahead) {
  numerics::Vec3 nearest{0.0f, 0.0f, 0.0f};
  float cosine = -2.0f;
  if (input.field.kind == field_of_peaks) {
    for (std::uint32_t i = 0; i < input.field.channels / 3u; ++i) {
      const numerics::Vec3 unit = numerics::normalise(stored_peak(slab.record, i));
      if (!(numerics::dot(unit, unit) > 0.0f)) continue;
      const float signed_cosine = numerics::dot(unit, ahead);
      if (!(numerics::absolute(signed_cosine) > cosine)) continue;
      nearest = signed_cosine < 0.0f ? -unit : unit;
      cosine = numerics::absolute(signed_cosine);
    }
  } else {
    apply_threshold<Lanes>(input.sphere, slab, fill_amplitudes<Lanes>(input, slab, &ahead));
    const std::uint32_t count = find_peaks<Lanes>(input, slab, most_initial_directions);
    if (count > 0u) {
      nearest = nearest_peak(input.sphere, slab.peaks, count, ahead);
      cosine = numerics::dot(nearest, ahead);
    }
  }
  return cosine >= input.plan.cos_max_angle ? step_along(nearest) : no_step();
}

}  // namespace cingulum::kernel
