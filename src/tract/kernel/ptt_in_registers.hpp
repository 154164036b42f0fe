// ptt on amplitudes for 32 threads that run together (a warp), the same draws as ptt.hpp: every sum, product and
// comparison on which a result depends is there, too. What differs is who does what when. A thread follows one probe;
// when its probe ends, weak or whole, it takes the next candidate. The points of the disc come first, or, where the
// bound is carried along, after the candidates that it serves; no candidate that starts with them or later is whole
// before they are. Candidates are made 32 at a time and lie in the slab until taken. The first that is accepted, in the
// order of the attempts, is the result: once one is, only those before it are followed further. A warp has several
// streamlines, so that few threads idle at the end of a step.
//
// Steps on the way that need no exact arithmetic: the cell of NearestView, whose list has the nearest slot on either
// side of its border; 1 / root(x) near one, which inverse_root.hpp has in integers; and which slots cannot have the
// largest amplitude of a point.
//
// `Warp` are lanes of which each thread is one: Float is float (WarpLanes; the tests have fibers). Called by
// cuda/ptt_kernels.cu.
//
// Equal to: draw_curvature of ptt.hpp in the walk of walk.hpp, as AnySteps takes it. Gain on an H200 (phantom `brain`,
// 100 000 seeds, quality 7): 114 to 120 M arcs/s, where the kernel for all shapes makes 34.8. Held by:
// PagedTracker.gives_the_bits_of_the_cpu_on_random_plans and PagedTracker.follows_probes_of_few_streamlines (fibers for
// threads), DeviceTracking.default_shapes_have_the_bits_of_the_cpu. What does not differ is shared: take_half,
// enter_point (why a half ends, in one order), append_page.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/inverse_root.hpp"
#include "numerics/lane_rotation.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/rotation.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/probe_tables.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"
#include "tract/kernel/walk.hpp"

namespace cingulum::kernel {

// A LaneArc in words that are read four at a time. `keep` of a straight one is that of no other.
struct alignas(16) ProbeTurn {
  float along, aside_1, aside_2, keep;
  float turn_1, turn_2, normal_normal, normal_binormal;
};
inline constexpr float keep_of_straight = 2.0f;
// The candidate that it belongs to.
struct alignas(16) ProbeDraw {
  float k1, k2, height;
};
struct ProbeArc {
  ProbeTurn turn;
  ProbeDraw draw;
};
inline constexpr std::uint32_t probe_arc_words = sizeof(ProbeArc) / sizeof(float);

CGL_HD_GENERIC
template <class Warp>
CGL_HD inline ProbeTurn probe_turn(float k1, float k2, float length) {
  const numerics::LaneArc<Warp> arc = numerics::lane_arc<Warp>(k1, k2, length);
  return {arc.along,  arc.aside_1, arc.aside_2,       arc.bent ? arc.keep : keep_of_straight,
          arc.turn_1, arc.turn_2,  arc.normal_normal, arc.normal_binormal};
}

// The arc of this thread's point of the disc.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline ProbeArc disc_arc(const TrackingInput& input) {
  const float limit = input.plan.ptt_max_curvature;
  return {probe_turn<Warp>(Warp::load(input.disc.k1) * limit, Warp::load(input.disc.k2) * limit,
                           input.plan.ptt_probe_step_mm),
          {}};
}

// propagate_frame along an arc of `length`, and the position with it.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline void move_along(const TrackingPlan& plan, const ProbeTurn& a, float length, numerics::Vec3& position,
                              numerics::LaneFrame<Warp>& frame) {
  numerics::LaneVec3<Warp> moved;
  if (a.keep != keep_of_straight) {
    const numerics::LaneArc<Warp> arc{true,     0.0f,     a.along,   a.aside_1,       a.aside_2,        a.keep,
                                      a.turn_1, a.turn_2, -a.turn_1, a.normal_normal, a.normal_binormal};
    const numerics::LaneFrameStep<Warp> next =
        numerics::lane_propagate<Warp>(frame, arc, [](const numerics::LaneVec3<Warp>& v) {
          return numerics::lane_scale<Warp>(v, numerics::inverse_root(numerics::lane_dot<Warp>(v, v)));
        });
    frame = next.frame;
    moved = next.displacement;
  } else {
    moved = numerics::lane_scale<Warp>(frame.tangent, length);
  }
  position = {position.x + moved.x * plan.voxels_per_mm[0], position.y + moved.y * plan.voxels_per_mm[1],
              position.z + moved.z * plan.voxels_per_mm[2]};
}

template <class Warp>
CGL_HD inline numerics::Vec3 tangent_of(const numerics::LaneFrame<Warp>& frame) {
  return {frame.tangent.x, frame.tangent.y, frame.tangent.z};
}

// A position and a frame as words that are read four at a time.
struct PackedStart {
  FourFloats words[3];
};

template <class Warp>
CGL_HD inline PackedStart packed_start(numerics::Vec3 position, const numerics::LaneFrame<Warp>& frame) {
  const numerics::LaneVec3<Warp>& t = frame.tangent;
  const numerics::LaneVec3<Warp>& n = frame.normal;
  const numerics::LaneVec3<Warp>& b = frame.binormal;
  return {{{{position.x, position.y, position.z, t.x}}, {{t.y, t.z, n.x, n.y}}, {{n.z, b.x, b.y, b.z}}}};
}
template <class Warp>
CGL_HD inline void unpack_start(const PackedStart& start, numerics::Vec3& position, numerics::LaneFrame<Warp>& frame) {
  const FourFloats first = start.words[0];
  const FourFloats second = start.words[1];
  const FourFloats third = start.words[2];
  position = numerics::Vec3{first.number[0], first.number[1], first.number[2]};
  frame.tangent = numerics::LaneVec3<Warp>{first.number[3], second.number[0], second.number[1]};
  frame.normal = numerics::LaneVec3<Warp>{second.number[2], second.number[3], third.number[0]};
  frame.binormal = numerics::LaneVec3<Warp>{third.number[1], third.number[2], third.number[3]};
}

// Where a probe stands.
template <class Warp>
struct Probe {
  numerics::Vec3 position;
  numerics::LaneFrame<Warp> frame;
  ProbeTurn turn;
  float sum;
  std::int32_t points;  // still to go; 0 when whole, below when there is no probe
  std::uint32_t number;
};

// What a step needs to know of its start.
struct ProbePoint {
  float stop_value;
  float here;  // amplitude along the tangent
  float threshold;
};

// What the 32 threads of a warp do for one of its streamlines, all the same.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline ProbePoint read_probe_point(const TrackingInput& input, numerics::Vec3 position, numerics::Vec3 tangent) {
  const FieldView& field = input.field;
  const GridCell grid = grid_cell(position);
  const std::uint32_t cell = cell_number(grid, input.plan.size);
  const CornerWeights weights = corner_weights(grid, position);
  ProbePoint point;
  if constexpr (Warp::corners_side_by_side) {
    const std::uint32_t number = input.probes.corners_of_cell[cell];
    const FourFloats* const corners = corners_of(input, number);
    point.stop_value = interpolated(corners, field.channels, weights);
    point.here = interpolated(corners, nearest_slot<true>(input, tangent), weights);
    point.threshold = threshold_is_absolute(input.plan)
                          ? input.plan.absolute_threshold
                          : threshold_below(input.plan, greatest_amplitude<Warp>(input, number, weights));
  } else {
    const CellRecords records = cell_records(input, cell);
    float best = 0.0f;
    const std::uint32_t asked = threshold_is_absolute(input.plan) ? 0u : field.channels;
    for (std::uint32_t first = 4u * Warp::lane_index(); first < asked; first += 4u * Warp::width) {
      const char* const column = one_address(field.records + first);
      FourFloats value[8];
      CGL_UNROLL
      for (std::uint32_t corner = 0; corner < 8u; ++corner) {
        value[corner] = *reinterpret_cast<const FourFloats*>(column + sizeof(FourFloats) * records.record(corner));
      }
      CGL_UNROLL
      for (std::uint32_t i = 0; i < 4u; ++i) {
        float sum = weights.weight[0] * value[0].number[i];
        CGL_UNROLL
        for (std::uint32_t corner = 1; corner < 8u; ++corner) {
          sum = sum + weights.weight[corner] * value[corner].number[i];
        }
        if (first + i < field.channels) best = sum > best ? sum : best;
      }
    }
    point.threshold = amplitude_threshold<Warp>(input.plan, best);
    point.stop_value = interpolated(input, records, field.channels, weights);
    point.here = interpolated(input, records, nearest_slot<false>(input, tangent), weights);
  }
  point.here = point.here > 0.0f ? point.here : 0.0f;
  return point;
}

// A streamline of a warp between its steps, in the slab: where its probes start, the words of its draws, its points.
struct alignas(16) ProbeWalk {
  PackedStart start;
  std::uint32_t seed, stream, moves, half_number;
  std::uint32_t arcs, kept, first_page, last_page;
};

// One step of a ProbeWalk, kept beside it: what the threads that follow its probes read and write.
struct alignas(16) ProbeStep {
  float here;
  float threshold;
  std::uint32_t best_of_disc;   // the bits of a support
  std::uint32_t end;            // probes from here on do not count
  float k1, k2, support;        // of probe `end`
  std::uint32_t accepted;       // whether it is there
  float bound;                  // of the arc before
  std::uint32_t first_of_disc;  // the number of the disc's first probe; those before it are tried under `bound`
};
inline constexpr std::uint32_t probe_step_place = 20;
inline constexpr std::uint32_t probe_walk_words = 32;
static_assert(sizeof(ProbeWalk) <= probe_step_place * sizeof(float) &&
              sizeof(ProbeStep) <= (probe_walk_words - probe_step_place) * sizeof(float));

// Words of one streamline: the arcs of 32 candidates, and the ProbeWalk with its step.
inline constexpr std::uint32_t probe_batch_words = numerics::lane_count * probe_arc_words;
inline constexpr std::uint32_t probe_walk_slab_words = probe_batch_words + probe_walk_words;
// Words of a warp: its streamlines, and a ProbeDraw for every thread.
CGL_HD constexpr std::uint32_t probe_slab_words(std::uint32_t walks) {
  return walks * probe_walk_slab_words + numerics::lane_count * sizeof(ProbeDraw) / sizeof(float);
}

// Whether what a plan needs is here: groups of slots are as many as threads at most, slots fit into ten bits.
inline constexpr std::uint32_t most_probe_slots = 384;
CGL_HD constexpr bool probes_in_registers(const TrackingInput& input) {
  return static_cast<Getter>(input.plan.getter) == Getter::ptt && input.field.kind == field_of_amplitudes &&
         input.field.is_float16 == 0u && input.sphere.is_hemisphere != 0u && input.nearest.cells % packed_cells == 0u &&
         input.field.channels < most_probe_slots && input.plan.ptt_probe_count <= 1u &&
         input.plan.ptt_exponent_is_one != 0u;
}

// Streamlines that a warp tracks at a time: with one, threads wait for the last candidates of a step; of four the
// others go on. With two it was a little slower (docs/design/devices.md).
inline constexpr std::uint32_t walks_of_a_warp = 4;

// False where there is no page for the point.
CGL_HD_GENERIC
template <class Warp, class Machine>
CGL_HD inline bool keep_probe_point(const PageStore& store, numerics::Vec3 position, ProbeWalk& walk) {
  const std::uint32_t at = walk.kept % page_points;
  if (at == 0u && !append_page<Machine>(store, walk.first_page, walk.last_page)) return false;
  if (Warp::lane_index() == 0u) {
    float* const to = store.pages + static_cast<std::size_t>(walk.last_page) * page_floats + at;
    to[0] = position.x;
    to[page_points] = position.y;
    to[2u * page_points] = position.z;
  }
  return true;
}

// What the step, whose candidate was accepted, leaves to the next: HalfWalk::bound.
CGL_HD inline float bound_after(const ProbeStep& step) {
  const float bound =
      step.end < step.first_of_disc ? step.bound : numerics::bits_float(step.best_of_disc) * bound_margin;
  return step.support > bound ? step.support : bound;
}

// The move along the curvature that `step` has found, and to the next half where one ends; with `begins` to a half at
// once. False when there are none left.
CGL_HD_GENERIC
template <class Warp, class Machine>
CGL_HD inline bool next_probe_start(const TrackingInput& input, const SeedList& seeds, const HalfList& list,
                                    const PageStore& store, bool begins, ProbeWalk& shared, ProbeStep& step) {
  const TrackingPlan& plan = input.plan;
  const Curvature curvature{!begins && step.accepted != 0u, step.k1, step.k2};
  const float bound = curvature.found ? bound_after(step) : 0.0f;
  ProbeWalk walk = shared;
  numerics::Vec3 position;
  numerics::LaneFrame<Warp> frame;
  unpack_start(walk.start, position, frame);
  for (;; begins = true) {
    std::uint32_t reason = code_of(EndReason::none);
    if (begins) {
      walk.half_number = take_half<Machine>(plan, list);
      if (walk.half_number == no_place) return false;
      const HalfStart start = half_at(seeds, list, walk.half_number);
      walk.seed = start.seed;
      walk.stream = numerics::counter_words(
                        {start.seed, numerics::DrawPurpose::step, start.direction_index, start.half, 0u, 0u}, 0u)
                        .word[1];
      walk.moves = 0u;
      walk.arcs = 0u;
      walk.kept = 0u;
      walk.first_page = no_page;
      walk.last_page = no_page;
      position = start.position;
      frame =
          numerics::spread<Warp>(initial_frame(plan.key, start.seed, start.direction_index, start.half, start.ahead));
    } else if (!curvature.found) {
      reason = code_of(EndReason::no_direction);
    } else {
      const float length = plan.ptt_arc_mm;
      move_along(plan, probe_turn<Warp>(curvature.k1, curvature.k2, length), length, position, frame);
    }
    if (reason == code_of(EndReason::none)) {
      ProbePoint point{};
      reason = enter_point(
          input, position, walk,
          [&] {
            point = read_probe_point<Warp>(input, position, tangent_of(frame));
            return point.stop_value;
          },
          [&](std::uint32_t, numerics::Vec3 kept) { return keep_probe_point<Warp, Machine>(store, kept, walk); });
      if (reason == code_of(EndReason::none)) {
        const std::uint32_t first_of_disc = carries_bound(plan, walk.moves) ? tries_on_trust : 0u;
        walk.moves = walk.moves + 1u;
        if (plan.ptt_weak_links != 0u || point.here >= point.threshold) {
          Warp::barrier();
          walk.start = packed_start(position, frame);
          if (Warp::lane_index() == 0u) {
            shared = walk;
            step = {point.here, point.threshold, 0u,           numerics::lane_count + plan.ptt_tries, 0.0f, 0.0f, 0.0f,
                    0u,         bound,           first_of_disc};
          }
          Warp::barrier();
          return true;
        }
        reason = code_of(EndReason::no_direction);
      }
    }
    if (Warp::lane_index() == 0u) list.halves[walk.half_number] = {walk.kept, walk.moves, reason, walk.first_page};
    // No half after this one would find a page.
    if (reason == unfinished_half) return false;
  }
}

// One warp's share of tracking: `walks` streamlines at a time, each with its part of the threads. Streamlines of a warp
// wait for each other only while all threads together serve one of them.
CGL_HD_GENERIC
template <class Warp, class Machine, std::uint32_t walks>
CGL_HD inline void run_probe_halves(const TrackingInput& input, float* memory, std::uint32_t slab,
                                    const SeedList& seeds, const HalfList& list, const PageStore& store) {
  constexpr std::uint32_t threads = Warp::width / walks;  // of one streamline
  // Probes are numbered: the points of the disc, then the attempts; where the bound is carried along the first attempts
  // stand before the disc.
  constexpr std::uint32_t disc = numerics::lane_count;
  constexpr std::int32_t idle_probe = -1;
  const TrackingPlan& plan = input.plan;
  const std::int32_t points = static_cast<std::int32_t>(plan.ptt_probe_quality) - 1;
  const float share = 1.0f / static_cast<float>(plan.ptt_probe_quality);
  const bool weak_links = plan.ptt_weak_links != 0u;
  const auto arcs_of = [&](std::uint32_t which) {
    return reinterpret_cast<ProbeArc*>(memory + slab + which * probe_walk_slab_words);
  };
  const auto walk_of = [&](std::uint32_t which) {
    return reinterpret_cast<ProbeWalk*>(arcs_of(which) + numerics::lane_count);
  };
  const auto step_of = [&](std::uint32_t which) {
    return reinterpret_cast<ProbeStep*>(memory + slab + which * probe_walk_slab_words + probe_batch_words +
                                        probe_step_place);
  };
  const std::uint32_t own = Warp::lane_index() / threads;
  // The bits of this streamline's threads; none when it has no more halves.
  std::uint32_t own_bits = (0xffffffffu >> (Warp::width - threads)) << (own * threads);
  float* const own_slab = memory + one_number(slab + own * probe_walk_slab_words);
  const ProbeArc* const own_arcs = reinterpret_cast<const ProbeArc*>(own_slab);
  const ProbeWalk* const own_walk = reinterpret_cast<const ProbeWalk*>(own_slab + probe_batch_words);
  ProbeStep& step = *reinterpret_cast<ProbeStep*>(own_slab + probe_batch_words + probe_step_place);
  // What is needed of a thread's probe when it is whole.
  ProbeDraw& draw = reinterpret_cast<ProbeDraw*>(memory + slab + walks * probe_walk_slab_words)[Warp::lane_index()];
  const ProbeArc* const disc_arcs = reinterpret_cast<const ProbeArc*>(input.probes.arcs);
  const std::uint32_t below = one_number(Warp::lanes_below());

  Probe<Warp> probe{};
  probe.points = idle_probe;
  // The same for all threads of a streamline.
  bool begun = false;  // its first half
  float threshold = 0.0f;
  std::uint32_t taken = 0;          // probes that threads have or had
  std::uint32_t made = 0;           // probes with arcs
  std::uint32_t end = 0;            // ProbeStep::end
  std::uint32_t first_of_disc = 0;  // ProbeStep::first_of_disc
  std::uint32_t until_bound = 0;    // points until the last of the disc is whole
  const auto is_of_disc = [&](std::uint32_t number) { return number - first_of_disc < disc; };
  for (;;) {
    for (;;) {
      // Threads without a probe take one.
      const std::uint32_t idle = Warp::ballot(probe.points < 0) & own_bits;
      const std::uint32_t last = made < end ? made : end;
      const std::uint32_t left = taken < last ? last - taken : 0u;
      const std::uint32_t rank = numerics::bit_count(idle & below);
      if (probe.points < 0 && rank < left) {
        probe.number = taken + rank;
        const ProbeArc* const from = is_of_disc(probe.number) ? disc_arcs : own_arcs;
        const ProbeArc* const arc = from + probe.number % numerics::lane_count;
        probe.turn = arc->turn;
        draw = arc->draw;
        unpack_start(own_walk->start, probe.position, probe.frame);
        probe.sum = step.here;
        probe.points = points;
      }
      const std::uint32_t wanted = numerics::bit_count(idle);
      const std::uint32_t taken_now = taken + (wanted < left ? wanted : left);
      const std::uint32_t disc_end = first_of_disc + disc;
      if (taken < disc_end && taken_now >= disc_end) until_bound = static_cast<std::uint32_t>(points);
      taken = taken_now;
      // What remains idle needs candidates, or the streamline has all that it needs.
      const bool needs = wanted > left && (made < end || (left == 0u && idle == own_bits));
      const std::uint32_t needing = Warp::ballot(needs);
      if (needing == 0u) break;
      const std::uint32_t first = numerics::lowest_set_bit(needing);
      const std::uint32_t which = first / threads;
      if ((Warp::ballot(made < end) & (1u << first)) != 0u) {
        // Candidates, 32 at a time by all threads. Those before the disc make it follow: its arcs are there.
        const ProbeWalk& walk = *walk_of(which);
        const std::uint32_t its_made = Warp::get(made, first);
        const std::uint32_t attempt = its_made == 0u ? 0u : its_made - disc;
        Warp::barrier();
        const Candidates<Warp> candidates =
            draw_candidates<Warp>(plan, {{walk.seed, walk.stream, walk.moves - 1u, 0u}}, attempt, plan.ptt_tries);
        arcs_of(which)[Warp::lane_index()] = {probe_turn<Warp>(candidates.k1, candidates.k2, plan.ptt_probe_step_mm),
                                              {candidates.k1, candidates.k2, candidates.height}};
        if (own == which) made = made + (made == 0u ? tries_on_trust + disc : numerics::lane_count);
        Warp::barrier();
        continue;
      }
      // The step is drawn.
      ProbeStep& its_step = *step_of(which);
      const bool starts = (Warp::ballot(begun) & (1u << first)) == 0u;
      const bool goes_on =
          next_probe_start<Warp, Machine>(input, seeds, list, store, starts, *walk_of(which), its_step);
      if (own == which) {
        if (!goes_on) own_bits = 0u;
        begun = goes_on;
        threshold = its_step.threshold;
        first_of_disc = its_step.first_of_disc;
        taken = 0u;
        made = goes_on && first_of_disc == 0u ? disc : 0u;
        end = goes_on ? disc + plan.ptt_tries : 0u;
        until_bound = 0u;
      }
      if (!goes_on && !Warp::any(own_bits != 0u)) return;
    }

    if (probe.points > 0) {
      move_along(plan, probe.turn, plan.ptt_probe_step_mm, probe.position, probe.frame);
      const float value = amplitude_along<Warp>(input, probe.position, tangent_of(probe.frame));
      probe.sum = probe.sum + value;
      probe.points = weak_links || value >= threshold ? probe.points - 1 : idle_probe;
    }
    until_bound = until_bound - 1u;
    const bool whole = probe.points == 0;
    if (!Warp::any(whole || until_bound == 0u)) continue;
    const float mean = probe.sum * share;
    const float support = whole && mean >= threshold && mean > 0.0f ? mean : 0.0f;
    const bool of_disc = is_of_disc(probe.number);
    if (of_disc && support > 0.0f) Warp::raise(step.best_of_disc, numerics::float_bits(support));
    if (whole) probe.points = idle_probe;
    Warp::barrier();
    // A candidate behind the disc is never whole before its last point, which was taken before it.
    const float bound =
        probe.number < first_of_disc ? step.bound : numerics::bits_float(step.best_of_disc) * bound_margin;
    const bool passes = !of_disc && bound > 0.0f && support > draw.height * bound;
    if (!Warp::any(passes || until_bound == 0u)) continue;
    // The first in the order of attempts counts.
    if (passes) Warp::lower(step.end, probe.number);
    if (until_bound == 0u && step.best_of_disc == 0u) Warp::lower(step.end, first_of_disc + disc);
    Warp::barrier();
    if (passes && step.end == probe.number) {
      step.k1 = draw.k1;
      step.k2 = draw.k2;
      step.support = support;
      step.accepted = 1u;
    }
    if (begun) end = step.end;
    if (probe.number >= end) probe.points = idle_probe;
    Warp::barrier();
  }
}

}  // namespace cingulum::kernel
