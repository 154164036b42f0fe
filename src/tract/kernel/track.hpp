// The life of a streamline, the same on every backend: whether a seed may start, in which directions, and the steps of
// each half until a reason to end. Called by the trackers (cpu/track_kernels.inc and its siblings), one call per half.
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

// Whether the record is interpolated within the step, row by row where it is needed, and never lies in the slab. A walk
// that takes its turn by advance_half does so.
CGL_HD inline bool interpolates_in_step(const TrackingInput& input) {
  return static_cast<Getter>(input.plan.getter) == Getter::prob && input.field.kind == field_of_amplitudes;
}

// Where a streamline may not be: outside of the image, or where the stopping map is not above its threshold. Else the
// record lies in the slab.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline EndReason enter_point(const TrackingInput& input, const Slab& slab, numerics::Vec3 position,
                                    const Corners& corners, const ExpectedRecords& expected) {
  if (numerics::is_outside(position, input.plan.size)) return EndReason::outside_image;
  const float stop_value = read_record<Lanes>(input, slab, position, corners, expected);
  return stop_value > input.plan.stop_threshold ? EndReason::none : EndReason::stop_map;
}

// The same, and nothing is put into the slab.
CGL_HD inline EndReason enter_point_alone(const TrackingInput& input, numerics::Vec3 position, const Corners& corners) {
  if (numerics::is_outside(position, input.plan.size)) return EndReason::outside_image;
  const float stop_value = interpolate_channel(corners, input.field.channels);
  return stop_value > input.plan.stop_threshold ? EndReason::none : EndReason::stop_map;
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline EndReason enter_point(const TrackingInput& input, const Slab& slab, numerics::Vec3 position) {
  return enter_point<Lanes>(input, slab, position, corners_at(input.field, input.plan.size, position),
                            nothing_expected());
}

// A half of the sphere of directions: z > 0, or z = 0 and y > 0, or z = y = 0 and x > 0.
CGL_HD inline numerics::Vec3 on_kept_half(numerics::Vec3 v) {
  const bool kept = v.z > 0.0f || (v.z == 0.0f && (v.y > 0.0f || (v.y == 0.0f && v.x > 0.0f)));
  return kept ? v : -v;
}

// Writes x y z of up to plan.max_directions initial directions, by descending value, then slot.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline InitialDirections find_initial_directions(const TrackingInput& input, const Slab& slab,
                                                        std::uint32_t seed, numerics::Vec3 position,
                                                        float* directions) {
  const EndReason reason = enter_point<Lanes>(input, slab, position);
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
    write(0u, on_kept_half(vector));
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

// A half before its first step. It starts at a seed that was found good, heading `ahead`.
CGL_HD inline HalfWalk begin_half(const TrackingPlan& plan, std::uint32_t seed, std::uint32_t direction_index,
                                  std::uint32_t half, numerics::Vec3 position, numerics::Vec3 ahead, float* points) {
  HalfWalk walk{seed, direction_index, half, 0u, 0u, 0u, position, {ahead, ahead, ahead}, points, {0u, 0u, 0u}};
  if (static_cast<Getter>(plan.getter) == Getter::ptt) {
    walk.frame = initial_frame(plan.key, seed, direction_index, half, ahead);
  }
  return walk;
}

// The direction from where the walk stands, whose record lies in the slab unless it is interpolated in the step, and
// the move along it; false where there is none.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline bool take_step(const TrackingInput& input, const Slab& slab, HalfWalk& walk, const Corners& corners,
                             const ExpectedRecords& expected) {
  const TrackingPlan& plan = input.plan;
  const numerics::DrawCounter counter{
      walk.seed, numerics::DrawPurpose::step, walk.direction_index, walk.half, walk.moves, 0u};
  if (static_cast<Getter>(plan.getter) == Getter::ptt) {
    return follow(plan, draw_curvature<Lanes>(input, slab, counter, walk.position, walk.frame), walk.position,
                  walk.frame);
  }
  const Step next = interpolates_in_step(input)
                        ? prob_step_at<Lanes>(input, slab, corners, expected, counter, walk.frame.tangent)
                        : next_step<Lanes>(input, slab, counter, walk.position, walk.frame.tangent);
  return follow(plan, next, walk.position, walk.frame);
}

// Reads the field where the last move led, keeps the point if it is one, and moves on; false when the half has ended,
// and then walk.end says how. The point at which it ended is not kept. Reads nothing of the slab that an earlier call
// left there, so that walks may take turns on one slab. `corners` are those of
// walk.position (any where it lies outside), `expected` the records of the walk whose turn is next.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline bool advance_half(const TrackingInput& input, const Slab& slab, HalfWalk& walk, const Corners& corners,
                                const ExpectedRecords& expected) {
  const TrackingPlan& plan = input.plan;
  const auto end = [&walk](std::uint32_t moves, EndReason reason) {
    walk.end = {walk.kept, moves, static_cast<std::uint32_t>(reason)};
    return false;
  };
  const bool in_step = interpolates_in_step(input);
  if (walk.moves == 0u) {
    if (!in_step) read_record<Lanes>(input, slab, walk.position, corners, expected);
  } else {
    const EndReason reason = in_step ? enter_point_alone(input, walk.position, corners)
                                     : enter_point<Lanes>(input, slab, walk.position, corners, expected);
    if (reason != EndReason::none) return end(walk.moves, reason);
    walk.arcs = walk.arcs + 1u;
    if (static_cast<Getter>(plan.getter) != Getter::ptt || walk.arcs == plan.ptt_substeps) {
      walk.points[3u * walk.kept] = walk.position.x;
      walk.points[3u * walk.kept + 1u] = walk.position.y;
      walk.points[3u * walk.kept + 2u] = walk.position.z;
      walk.kept = walk.kept + 1u;
      walk.arcs = 0u;
    }
  }
  if (walk.kept == plan.max_steps) return end(walk.moves, EndReason::max_length);
  if (!take_step<Lanes>(input, slab, walk, corners, expected)) return end(walk.moves + 1u, EndReason::no_direction);
  walk.moves = walk.moves + 1u;
  return true;
}

// Where a straight probe of the next step ends: what lies there is read soon.
CGL_HD inline numerics::Vec3 probe_end(const TrackingPlan& plan, const HalfWalk& walk) {
  const numerics::Vec3 along = walk.frame.tangent * plan.ptt_probe_length_mm;
  return {walk.position.x + along.x * plan.voxels_per_mm[0], walk.position.y + along.y * plan.voxels_per_mm[1],
          walk.position.z + along.z * plan.voxels_per_mm[2]};
}

// A whole half: writes x y z of each point after the seed. `half` is 0 along the initial direction, 1 against it.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline HalfEnd track_half(const TrackingInput& input, const Slab& slab, std::uint32_t seed,
                                 std::uint32_t direction_index, std::uint32_t half, numerics::Vec3 position,
                                 numerics::Vec3 ahead, float* points) {
  HalfWalk walk = begin_half(input.plan, seed, direction_index, half, position, ahead, points);
  while (advance_half<Lanes>(input, slab, walk, corners_at(input.field, input.plan.size, walk.position),
                             nothing_expected())) {
  }
  return walk.end;
}

}  // namespace cingulum::kernel
