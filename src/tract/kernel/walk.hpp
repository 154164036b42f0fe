// The life of a half of a streamline, written once for every backend: it enters a point, ends there for a reason or
// keeps it, takes a step, and so on. What differs between trackers are policies:
//   Steps    how a point is read and the next move found (kernel/steps.hpp);
//   Bounds   what of the field is there: all of it (WholeField) or a brick (brick_half.hpp);
//   Points   where kept points go: an array (ArrayPoints), pages (paged_half.hpp), pages of halves that pause
//            (brick_half.hpp).
// Called by cpu/track_kernels.inc, paged_half.hpp and brick_half.hpp. ptt_in_registers.hpp has a loop of its own and
// enters points by enter_point(). Mirrored by webgpu/streamline.wgsl and webgpu/track.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/steps.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// The reason of a half that was not begun, or had no memory for its points. All bits are set: a filled buffer means it.
inline constexpr std::uint32_t unfinished_half = 0xffffffffu;
// The reason of a half that left the brick of the field that is there.
inline constexpr std::uint32_t paused_half = 0xfffffffeu;

CGL_HD constexpr std::uint32_t code_of(EndReason reason) {
  return static_cast<std::uint32_t>(reason);
}

struct WholeField {
  CGL_HD bool has(numerics::Vec3) const { return true; }
};

// x y z of each point, one after the other.
struct ArrayPoints {
  float* to;

  CGL_HD bool keep(std::uint32_t index, numerics::Vec3 position) const {
    to[3u * index] = position.x;
    to[3u * index + 1u] = position.y;
    to[3u * index + 2u] = position.z;
    return true;
  }
};

// The number of moves of a second half that has not turned back yet: see walk_on().
inline constexpr std::uint32_t turning_back = 0xffffffffu;

// A half before its first step. It starts at a seed that was found good, heading `ahead`; where the second half turns
// back, it looks the first half's way until it knows what that one's first step is.
CGL_HD inline HalfWalk begin_half(const TrackingPlan& plan, std::uint32_t seed, std::uint32_t direction_index,
                                  std::uint32_t half, numerics::Vec3 position, numerics::Vec3 ahead, float* points) {
  HalfWalk walk{seed, direction_index, half, 0u, 0u, 0u, position, {ahead, ahead, ahead}, points, {0u, 0u, 0u}};
  if (static_cast<Getter>(plan.getter) == Getter::ptt) {
    walk.frame = initial_frame(plan.key, seed, direction_index, half, ahead);
  } else if (plan.turns_back != 0u && half == 1u) {
    walk.frame.tangent = -ahead;
    walk.moves = turning_back;
  }
  return walk;
}

// Where the last move led, or the seed: why the half ends there, in the one order of reasons that all backends have, or
// EndReason::none. `keep` puts the point where points go; the seed, and the point at which a half ends, are not kept.
// `Walk` has moves, arcs and kept as HalfWalk has them.
CGL_HD_GENERIC
template <class Walk, class Read, class Keep>
CGL_HD inline std::uint32_t enter_point(const TrackingInput& input, numerics::Vec3 position, Walk& walk, Read&& read,
                                        Keep&& keep) {
  const TrackingPlan& plan = input.plan;
  const EndReason reason = reason_against(input, position, read);
  if (reason != EndReason::none) return code_of(reason);
  if (walk.moves != 0u && walk.moves != turning_back) {
    walk.arcs = walk.arcs + 1u;
    if (static_cast<Getter>(plan.getter) != Getter::ptt || walk.arcs == plan.ptt_substeps) {
      if (!keep(walk.kept, position)) return unfinished_half;
      walk.kept = walk.kept + 1u;
      walk.arcs = 0u;
    }
  }
  return code_of(walk.kept == plan.max_steps ? EndReason::max_length : EndReason::none);
}

// One round of a half: enters the point where it stands and moves on. EndReason::none while it goes on, else why it
// does not: an EndReason, paused_half or unfinished_half. Reads nothing of the slab that an earlier turn left there
// unless `held` says so, so that halves may take turns on one slab.
CGL_HD_GENERIC
template <class Lanes, class Steps, class Bounds, class Points>
CGL_HD inline std::uint32_t walk_on(const TrackingInput& input, const Slab& slab, const Bounds& bounds,
                                    typename Steps::template Held<Lanes>& held, Points& points, HalfWalk& walk) {
  if (!bounds.has(walk.position)) return paused_half;
  const std::uint32_t reason = enter_point(
      input, walk.position, walk, [&] { return Steps::template read<Lanes>(input, slab, walk.position, held); },
      [&](std::uint32_t index, numerics::Vec3 position) { return points.keep(index, position); });
  if (reason != code_of(EndReason::none)) return reason;
  // A second half begins with the first half's first step, from the same draws, and heads against it; it stays at the
  // seed. (A half that waited for another's step could not be tracked beside it.)
  const bool turns = walk.moves == turning_back;
  const numerics::Vec3 seed_position = walk.position;
  const numerics::DrawCounter counter{
      walk.seed, numerics::DrawPurpose::step, walk.direction_index, turns ? 0u : walk.half, turns ? 0u : walk.moves,
      0u};
  walk.moves = walk.moves + 1u;
  const bool moved = move<Lanes, Steps>(input, slab, held, counter, walk.position, walk.frame, walk.bound);
  if (turns) {
    walk.position = seed_position;
    walk.frame.tangent = -walk.frame.tangent;
    return code_of(EndReason::none);
  }
  return code_of(moved ? EndReason::none : EndReason::no_direction);
}

// Rounds until the half goes on no more.
CGL_HD_GENERIC
template <class Lanes, class Steps, class Bounds, class Points>
CGL_HD inline HalfEnd walk_half(const TrackingInput& input, const Slab& slab, const Bounds& bounds, Points& points,
                                HalfWalk& walk) {
  auto held = Steps::template Held<Lanes>::begin(input);
  for (;;) {
    const std::uint32_t reason = walk_on<Lanes, Steps>(input, slab, bounds, held, points, walk);
    if (reason != code_of(EndReason::none)) return {walk.kept, walk.moves, reason};
  }
}

}  // namespace cingulum::kernel
