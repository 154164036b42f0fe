// ptt on the CPU for several halves at once: lanes have the first candidates of each of them, instead of the first
// candidates of one, of which all but a few are evaluated in vain. Called by cpu/track_kernels.inc.
//
// Equal to: draw_curvature of ptt.hpp in the walk of walk.hpp, half after half; what is drawn for a half depends on
// nothing but the half. Gain on two cores (docs/design/tractography.md, "Speed"). Held by:
// TrackKernels.give_the_same_bits_with_all_instructions_of_this_cpu and PagedTracker.gives_the_bits_of_the_cpu_on_...
// random_plans, where the other side tracks one half after the other.
#pragma once

#include <cstdint>

#include "numerics/lane_elementary.hpp"
#include "numerics/lane_rotation.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/views.hpp"
#include "tract/kernel/walk.hpp"

namespace cingulum::kernel {

inline constexpr std::uint32_t tries_together = 4;   // of each half
inline constexpr std::uint32_t fewest_together = 3;  // halves for which another round is worth it
template <class Lanes>
inline constexpr std::uint32_t halves_together = Lanes::width / tries_together;

// Whether the bound is carried along, and nothing is asked of the record that lies in the slab.
inline bool goes_together(const TrackingInput& input) {
  return reads_along_probes_alone(input) && input.field.kind == field_of_amplitudes &&
         input.plan.ptt_probe_count <= 1u && input.plan.ptt_bound_interval > 1u;
}

// What the lanes of a register have of their halves.
template <std::uint32_t width>
struct TogetherLanes {
  alignas(64) float position[3][width];
  alignas(64) float frame[9][width];
  alignas(64) float bound[width];
  alignas(64) std::uint32_t words[4][width];
  std::uint32_t taken;  // a bit for each lane that has one

  void put(std::uint32_t which, const HalfWalk& walk) {
    const numerics::DrawCounter counter{
        walk.seed, numerics::DrawPurpose::step, walk.direction_index, walk.half, walk.moves, 0u};
    const numerics::PhiloxBlock block = numerics::counter_words(counter, 0u);
    const float numbers[9] = {walk.frame.tangent.x,  walk.frame.tangent.y,  walk.frame.tangent.z,
                              walk.frame.normal.x,   walk.frame.normal.y,   walk.frame.normal.z,
                              walk.frame.binormal.x, walk.frame.binormal.y, walk.frame.binormal.z};
    for (std::uint32_t attempt = 0; attempt < tries_together; ++attempt) {
      const std::uint32_t lane = which * tries_together + attempt;
      position[0][lane] = walk.position.x;
      position[1][lane] = walk.position.y;
      position[2][lane] = walk.position.z;
      for (std::uint32_t i = 0; i < 9u; ++i) frame[i][lane] = numbers[i];
      bound[lane] = walk.bound;
      for (std::uint32_t i = 0; i < 3u; ++i) words[i][lane] = block.word[i];
      words[3][lane] = attempt << 16u;
    }
    taken |= ((1u << tries_together) - 1u) << (which * tries_together);
  }
};

struct DrawnTogether {
  Curvature curvature;
  std::uint32_t refused;  // candidates that were tried in vain where none was accepted
};

// The pairs of halves [0, count) whose bound is carried along, where one of the first candidates is accepted; the
// bounds follow.
template <class Lanes>
inline void draw_together(const TrackingInput& input, const Slab& slab, HalfWalk* walks, std::uint32_t count,
                          DrawnTogether* drawn) {
  using Group = Lanes;
  const TrackingPlan& plan = input.plan;
  TogetherLanes<Group::width> lanes{};
  for (std::uint32_t i = 0; i < count; ++i) {
    drawn[i] = {{false, 0.0f, 0.0f}, 0u};
    if (walks[i].end.reason == code_of(EndReason::none) && carries_bound(plan, walks[i].moves)) lanes.put(i, walks[i]);
  }
  if (lanes.taken == 0u) return;
  const auto vector = [](const float(*from)[Group::width]) {
    return numerics::LaneVec3<Group>{Group::load(from[0]), Group::load(from[1]), Group::load(from[2])};
  };
  const typename Group::Word own = Group::slots_of_row(0u);
  const auto word = [&](int i) { return Group::gather(lanes.words[i], own); };
  LaneProbeStart<Group> start{vector(lanes.position),
                              {vector(lanes.frame), vector(lanes.frame + 3), vector(lanes.frame + 6)},
                              Group::broadcast(0.0f),
                              plan.absolute_threshold};
  typename Group::Mask alive = Group::mask_of_bits(lanes.taken);
  start.amplitude = amplitudes_along<Group>(input, slab, start.position, start.frame.tangent);
  if (plan.ptt_weak_links == 0u) {
    alive = Group::both(alive, Group::at_least(start.amplitude, Group::broadcast(start.threshold)));
  }
  constexpr std::uint32_t own_lanes = (1u << tries_together) - 1u;
  std::uint32_t open = Group::ballot(alive);
  for (std::uint32_t first = 0; first < tries_on_trust; first += tries_together) {
    alive = Group::mask_of_bits(open);
    const Candidates<Group> candidates = candidates_of<Group>(
        plan, {{word(0), word(1), word(2), Group::add(word(3), Group::broadcast(first << 16u))}}, alive);
    const typename Group::Float support = supports<Group>(input, slab, start, candidates.k1, candidates.k2, alive);
    const std::uint32_t accepted = Group::ballot(
        Group::both(alive, Group::greater(support, Group::multiply(candidates.height, Group::load(lanes.bound)))));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t shift = i * tries_together;
      if (((open >> shift) & own_lanes) == 0u) continue;
      drawn[i].refused = first + tries_together;
      const std::uint32_t bits = (accepted >> shift) & own_lanes;
      if (bits == 0u) continue;
      const std::uint32_t lane = shift + numerics::lowest_set_bit(bits);
      const float its_support = Group::get(support, lane);
      walks[i].bound = its_support > walks[i].bound ? its_support : walks[i].bound;
      drawn[i].curvature = {true, Group::get(candidates.k1, lane), Group::get(candidates.k2, lane)};
      open &= ~(own_lanes << shift);
    }
    // A few that are left are better off with all lanes for each.
    if (numerics::bit_count(open) < fewest_together * tries_together) return;
  }
}

// Goes on with halves [0, count) until one of them has ended, and returns which. Several may end in one round: those
// that are not returned have their HalfWalk::end, and are returned by the next calls.
template <class Lanes>
inline std::uint32_t advance_together(const TrackingInput& input, const Slab& slab, HalfWalk* walks,
                                      std::uint32_t count) {
  const TrackingPlan& plan = input.plan;
  const auto end_for = [](HalfWalk& walk, std::uint32_t reason) { walk.end = {walk.kept, walk.moves, reason}; };
  for (;;) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (walks[i].end.reason != code_of(EndReason::none)) return i;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      HalfWalk& walk = walks[i];
      ArrayPoints points{walk.points};
      const std::uint32_t reason = enter_point(
          input, walk.position, walk,
          [&] { return interpolate_channel(corners_at(input.field, plan.size, walk.position), input.field.channels); },
          [&](std::uint32_t index, numerics::Vec3 position) { return points.keep(index, position); });
      if (reason != code_of(EndReason::none)) end_for(walk, reason);
    }
    DrawnTogether drawn[halves_together<Lanes>];
    draw_together<Lanes>(input, slab, walks, count, drawn);
    for (std::uint32_t i = 0; i < count; ++i) {
      HalfWalk& walk = walks[i];
      if (walk.end.reason != code_of(EndReason::none)) continue;
      const numerics::DrawCounter counter{
          walk.seed, numerics::DrawPurpose::step, walk.direction_index, walk.half, walk.moves, 0u};
      walk.moves = walk.moves + 1u;
      Curvature& curvature = drawn[i].curvature;
      if (!curvature.found) {
        curvature =
            draw_curvature<Lanes>(input, slab, counter, walk.position, walk.frame, walk.bound, drawn[i].refused);
      }
      if (!follow(plan, curvature, walk.position, walk.frame)) end_for(walk, code_of(EndReason::no_direction));
    }
  }
}

}  // namespace cingulum::kernel
