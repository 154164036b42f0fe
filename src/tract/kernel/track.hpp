// What a streamline is made of, the same on every backend: where it may be, in which directions it starts at a seed,
// the next direction at a point, and the move along it. kernel/walk.hpp puts these together to the life of a half;
// called by it, by its steps (kernel/steps.hpp) and by the trackers for their seeds.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/boot.hpp"
#include "tract/kernel/closest.hpp"
#include "tract/kernel/det.hpp"
#include "tract/kernel/drawn_start.hpp"
#include "tract/kernel/find_peaks.hpp"
#include "tract/kernel/prob.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/tensor.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// The direction from `position`, whose record lies in the slab, for a streamline that heads `ahead`. Not for ptt, which
// carries a frame.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step next_step(const TrackingInput& input, const Slab& slab, const numerics::DrawCounter& counter,
                             numerics::Vec3 position, numerics::Vec3 ahead) {
  switch (static_cast<Getter>(input.plan.getter)) {
    case Getter::prob: return prob_step<Lanes>(input, slab, counter, ahead);
    case Getter::det: return det_step<Lanes>(input, slab, ahead);
    case Getter::closest: return closest_step<Lanes>(input, slab, ahead);
    case Getter::boot: return boot_step<Lanes>(input, slab, counter, ahead);
    case Getter::tensor: return tensor_step<Lanes>(input, slab, position, ahead);
    default: return no_step();
  }
}

// Why a streamline may not be at `position`: outside of the image, or where the stopping map is not above its
// threshold. `read` gets what the getter needs of the field there, and returns the interpolated stopping value.
CGL_HD_GENERIC
template <class Read>
CGL_HD inline EndReason reason_against(const TrackingInput& input, numerics::Vec3 position, Read&& read) {
  const TrackingPlan& plan = input.plan;
  if (numerics::is_outside(position, plan.size)) return EndReason::outside_image;
  if (plan.stop_nearest != 0u) {
    const FieldView& field = input.field;
    const float* const nearest = nearest_record(field, plan.size, position);
    if (!(record_number(nearest, field.channels, field.is_float16) > plan.stop_threshold)) {
      return EndReason::outside_mask;
    }
    (void)read();
    return EndReason::none;
  }
  return read() > plan.stop_threshold ? EndReason::none : EndReason::stop_map;
}

// The kept hemisphere of directions: z > 0, or z = 0 and y > 0, or z = y = 0 and x > 0.
CGL_HD inline numerics::Vec3 on_kept_hemisphere(numerics::Vec3 v) {
  const bool kept = v.z > 0.0f || (v.z == 0.0f && (v.y > 0.0f || (v.y == 0.0f && v.x > 0.0f)));
  return kept ? v : -v;
}

// Writes x y z of up to plan.max_directions initial directions, by descending value, then slot.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline InitialDirections find_initial_directions(const TrackingInput& input, const Slab& slab,
                                                        std::uint32_t seed, numerics::Vec3 position,
                                                        float* directions) {
  const EndReason reason = reason_against(input, position, [&] { return read_record<Lanes>(input, slab, position); });
  if (reason != EndReason::none) return {0u, static_cast<std::uint32_t>(reason)};
  const auto write = [&](std::uint32_t i, numerics::Vec3 direction) {
    directions[3u * i] = direction.x;
    directions[3u * i + 1u] = direction.y;
    directions[3u * i + 2u] = direction.z;
  };
  const std::uint32_t limit =
      input.plan.max_directions < most_initial_directions ? input.plan.max_directions : most_initial_directions;
  if (input.field.kind == field_of_tensors) {
    const numerics::Vec3 vector = principal_eigenvector(tensor_of_record(slab.record));
    if (!(numerics::dot(vector, vector) > 0.0f)) return {0u, 0u};
    write(0u, on_kept_hemisphere(vector));
    return {1u, 0u};
  }
  if (input.field.kind == field_of_peaks) {
    // By descending amplitude: the next is the greatest among those after (in this order) the last one taken.
    std::uint32_t count = 0;
    std::uint32_t last = numerics::no_slot;
    float last_square = -numerics::empty_slot_value;
    while (count < limit) {
      std::uint32_t best = numerics::no_slot;
      float best_square = 0.0f;
      for (std::uint32_t i = 0; i < input.field.channels / 3u; ++i) {
        const numerics::Vec3 peak = stored_peak(slab.record, i);
        const float square = numerics::dot(peak, peak);
        const bool after = square < last_square || (square == last_square && last != numerics::no_slot && i > last);
        if (!after || !(square > best_square)) continue;
        best = i;
        best_square = square;
      }
      if (best == numerics::no_slot) break;
      last = best;
      last_square = best_square;
      const numerics::Vec3 unit = numerics::normalise(stored_peak(slab.record, best));
      if (!(numerics::dot(unit, unit) > 0.0f)) break;
      write(count, unit);
      ++count;
    }
    return {count, 0u};
  }
  std::uint32_t count = 0;
  if (input.field.kind == field_of_bootstrap) {
    const numerics::DrawCounter counter{seed, numerics::DrawPurpose::initial_direction, 0u, 0u, 0u, 0u};
    count = sample_peaks<Lanes>(input, slab, counter, input.plan.boot_seed != 0u, nullptr, limit);
  } else {
    apply_threshold<Lanes>(input.sphere, slab, fill_amplitudes<Lanes>(input, slab, nullptr));
    if (input.plan.draws_start != 0u) {
      const std::uint32_t slot = draw_start_slot<Lanes>(input, slab, seed);
      if (slot == numerics::no_slot) return {0u, 0u};
      write(0u, slot_direction(input.sphere, slot));
      return {1u, 0u};
    }
    count = find_peaks<Lanes>(input, slab, limit);
  }
  for (std::uint32_t i = 0; i < count; ++i) write(i, slot_direction(input.sphere, slab.peaks[i]));
  return {count, 0u};
}

CGL_HD inline numerics::Vec3 moved_by(const TrackingPlan& plan, numerics::Vec3 position, numerics::Vec3 displacement) {
  return {position.x + displacement.x * plan.step_in_voxels[0], position.y + displacement.y * plan.step_in_voxels[1],
          position.z + displacement.z * plan.step_in_voxels[2]};
}

// The moves of a streamline, that of ptt along an arc, of which a step has `ptt_substeps`; false where there is none.
CGL_HD inline bool follow(const TrackingPlan& plan, const Step& next, numerics::Vec3& position,
                          numerics::Frame& frame) {
  if (!next.found) return false;
  frame.tangent = next.direction;
  position = moved_by(plan, position, next.displacement);
  return true;
}
CGL_HD inline bool follow(const TrackingPlan& plan, const Curvature& curvature, numerics::Vec3& position,
                          numerics::Frame& frame) {
  if (!curvature.found) return false;
  const numerics::FrameStep next = numerics::propagate_frame(frame, curvature.k1, curvature.k2, plan.ptt_arc_mm);
  frame = next.frame;
  position = {position.x + next.displacement.x * plan.voxels_per_mm[0],
              position.y + next.displacement.y * plan.voxels_per_mm[1],
              position.z + next.displacement.z * plan.voxels_per_mm[2]};
  return true;
}

}  // namespace cingulum::kernel
