// ptt on amplitudes for 32 threads that run together (a warp), the same draws as ptt.hpp: every sum, product and
// comparison on which a result depends is there, too. What differs is who does what when. A thread follows one probe;
// when its probe ends, weak or whole, it takes the next candidate. The points of the disc come first, and no candidate,
// which starts with them or later, is whole before they are. Candidates are made 32 at a time and lie in the slab until
// taken. The first that is accepted, in the order of the attempts, is the result: once one is, only those before it are
// followed further. A warp has several streamlines, so that few threads idle at the end of a step.
//
// Steps on the way that need no exact arithmetic: the cell of NearestView, whose list has the nearest slot on either
// side of its border; and 1 / root(x) near one, which inverse_root.hpp has in integers.
//
// `Warp` are lanes of which each thread is one: Float is float (WarpLanes; the tests have fibers). Called by
// cuda/ptt_kernels.cu.
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
  std::uint32_t number;  // of the probe; of a thread's draw, a word that threads tell each other a probe with
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
          {0.0f, 0.0f, 0.0f, Warp::lane_index()}};
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
  float threshold;
  std::int32_t points;  // still to go; 0 when whole, below when there is no probe
  std::uint32_t tag;    // its number, times the streamlines of a warp, plus which of these it belongs to
};

// What a step needs to know of its start.
struct ProbePoint {
  float stop_value;
  float here;  // amplitude along the tangent
  float threshold;
  std::uint32_t strong;  // ProbeStep::strong
};

// What the 32 threads of a warp do for one of its streamlines, all the same.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline ProbePoint read_probe_point(const TrackingInput& input, numerics::Vec3 position, numerics::Vec3 tangent) {
  const FieldView& field = input.field;
  const CellPlace place = cell_place(position);
  const std::uint32_t cell = cell_number(place, input.plan.size);
  const CornerWeights weights = corner_weights(place, position);
  ProbePoint point;
  if constexpr (Warp::corners_side_by_side) {
    const std::uint32_t number = input.probes.corners_of_cell[cell];
    const FourFloats* const corners = corners_of(input, number);
    point.stop_value = interpolated(corners, field.channels, weights);
    point.here = interpolated(corners, nearest_slot<true>(input, tangent), weights);
    const float around = input.probes.around[most_groups * std::size_t{number} + Warp::lane_index()];
    point.threshold = threshold_below(input.plan, greatest_amplitude<Warp>(input, number, weights));
    point.strong = Warp::filters ? Warp::ballot(around >= point.threshold) : 0u;
  } else {
    const CellRecords records = cell_records(input, cell);
    float best = 0.0f;
    for (std::uint32_t first = 4u * Warp::lane_index(); first < field.channels; first += 4u * Warp::width) {
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
    point.strong = 0u;
    point.stop_value = interpolated(input, records, field.channels, weights);
    point.here = interpolated(input, records, nearest_slot<false>(input, tangent), weights);
  }
  point.here = point.here > 0.0f ? point.here : 0.0f;
  return point;
}

// A streamline of a warp between its steps, in the slab: where its probes start, the words of its draws, its points.
struct alignas(16) ProbeWalk {
  PackedStart start;
  std::uint32_t seed, stream, moves, place;
  std::uint32_t arcs, kept, first_page, last_page;
};

// Of one of its steps, beside it: what threads that follow its probes read and write.
struct alignas(16) ProbeStep {
  float here;
  float threshold;
  std::uint32_t best_of_disc;  // the bits of a support
  std::uint32_t end;           // probes from here on do not count
  float k1, k2;                // of probe `end`
  std::uint32_t accepted;      // whether it is there
  std::uint32_t strong;        // groups of places with an amplitude that is not weak within a voxel from here
};
inline constexpr std::uint32_t probe_step_place = 20;
// Behind it the points of the disc that are followed, a byte each, as the last of 32.
inline constexpr std::uint32_t probe_disc_place = 28;
inline constexpr std::uint32_t probe_walk_words = 36;
static_assert(sizeof(ProbeWalk) <= probe_step_place * sizeof(float) &&
              sizeof(ProbeStep) <= (probe_disc_place - probe_step_place) * sizeof(float) &&
              numerics::lane_count <= (probe_walk_words - probe_disc_place) * sizeof(float));

// Candidates of one streamline that are made at a time.
inline constexpr std::uint32_t probe_batch = 8;
// Of one streamline, in words: the arcs of a batch, and the ProbeWalk.
inline constexpr std::uint32_t probe_batch_words = probe_batch * probe_arc_words;
inline constexpr std::uint32_t probe_walk_slab_words = probe_batch_words + probe_walk_words;
// Of a warp: its streamlines, and a ProbeDraw for every thread.
CGL_HD constexpr std::uint32_t probe_slab_words(std::uint32_t walks) {
  return walks * probe_walk_slab_words + numerics::lane_count * sizeof(ProbeDraw) / sizeof(float);
}

// Whether what a plan needs is here: groups of slots are as many as threads at most, slots fit into ten bits.
inline constexpr std::uint32_t most_probe_slots = 384;
CGL_HD constexpr bool probes_in_registers(const TrackingInput& input) {
  return static_cast<Getter>(input.plan.getter) == Getter::ptt && input.field.kind == field_of_amplitudes &&
         input.field.half == 0u && input.sphere.half != 0u && input.nearest.cells % packed_cells == 0u &&
         input.field.channels < most_probe_slots && input.plan.ptt_probe_count <= 1u &&
         input.plan.ptt_exponent_is_one != 0u;
}

// Streamlines that a warp tracks at a time: with one, threads wait for the last candidates of a step; of four the
// others go on. More would take too much shared memory.
inline constexpr std::uint32_t walks_of_a_warp = 8;

// False where there is no page for the point.
CGL_HD_GENERIC
template <class Warp, class Machine>
CGL_HD inline bool keep_probe_point(const PageStore& store, numerics::Vec3 position, ProbeWalk& walk) {
  const std::uint32_t at = walk.kept % page_points;
  if (at == 0u) {
    const std::uint32_t page = Machine::take(store.used);
    if (page >= store.capacity) return false;
    if (walk.first_page == no_page) {
      walk.first_page = page;
    } else if (Warp::lane_index() == 0u) {
      store.next[walk.last_page] = page;
    }
    walk.last_page = page;
  }
  if (Warp::lane_index() == 0u) {
    float* const to = store.pages + static_cast<std::size_t>(walk.last_page) * page_floats + at;
    to[0] = position.x;
    to[page_points] = position.y;
    to[2u * page_points] = position.z;
  }
  walk.kept = walk.kept + 1u;
  return true;
}

// The move along `curvature`, and to the next half where one ends; with `begins` to a half at once. False when there
// are none left.
CGL_HD_GENERIC
template <class Warp, class Machine>
CGL_HD inline bool next_probe_start(const TrackingInput& input, const SeedList& seeds, const HalfList& list,
                                    const PageStore& store, bool begins, const Curvature& curvature, ProbeWalk& shared,
                                    ProbeStep& step) {
  const TrackingPlan& plan = input.plan;
  ProbeWalk walk = shared;
  numerics::Vec3 position;
  numerics::LaneFrame<Warp> frame;
  unpack_start(walk.start, position, frame);
  for (;; begins = true) {
    std::uint32_t reason = static_cast<std::uint32_t>(EndReason::none);
    bool reads = true;
    if (begins) {
      const std::uint32_t item = Machine::take(list.queue);
      if (item >= list.count) return false;
      walk.place = list.places != nullptr ? list.places[item] : (plan.one_sided != 0u ? 2u * item : item);
      const HalfStart start = half_at(seeds, list, walk.place);
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
      reason = static_cast<std::uint32_t>(EndReason::no_direction);
      reads = false;
    } else {
      const float length = plan.step_mm / static_cast<float>(plan.ptt_substeps);
      move_along(plan, probe_turn<Warp>(curvature.k1, curvature.k2, length), length, position, frame);
      if (numerics::is_outside(position, plan.size)) {
        reason = static_cast<std::uint32_t>(EndReason::outside_image);
        reads = false;
      }
    }
    if (reads) {
      const ProbePoint point = read_probe_point<Warp>(input, position, tangent_of(frame));
      if (!begins) {
        if (!(point.stop_value > plan.stop_threshold)) {
          reason = static_cast<std::uint32_t>(EndReason::stop_map);
        } else {
          walk.arcs = walk.arcs + 1u;
          if (walk.arcs == plan.ptt_substeps) {
            walk.arcs = 0u;
            if (!keep_probe_point<Warp, Machine>(store, position, walk)) reason = unfinished_half;
          }
        }
      }
      if (reason == static_cast<std::uint32_t>(EndReason::none)) {
        if (walk.kept == plan.max_steps) {
          reason = static_cast<std::uint32_t>(EndReason::max_length);
        } else {
          walk.moves = walk.moves + 1u;
          if (plan.ptt_weak_links != 0u || point.here >= point.threshold) {
            Warp::barrier();
            walk.start = packed_start(position, frame);
            if (Warp::lane_index() == 0u) {
              shared = walk;
              step = {point.here, point.threshold, 0u, numerics::lane_count + plan.ptt_tries, 0.0f, 0.0f,
                      0u,         point.strong};
            }
            Warp::barrier();
            return true;
          }
          reason = static_cast<std::uint32_t>(EndReason::no_direction);
        }
      }
    }
    if (Warp::lane_index() == 0u) list.halves[walk.place] = {walk.kept, walk.moves, reason, walk.first_page};
    // No half after this one would find a page.
    if (reason == unfinished_half) return false;
  }
}

// How far, in voxels, a point of a probe is from the one before.
CGL_HD inline float reach_of_point(const TrackingPlan& plan) {
  const float xy = plan.voxels_per_mm[0] > plan.voxels_per_mm[1] ? plan.voxels_per_mm[0] : plan.voxels_per_mm[1];
  return plan.ptt_probe_step_mm * (xy > plan.voxels_per_mm[2] ? xy : plan.voxels_per_mm[2]);
}

// False where the second point of a probe, or with `in_reach` the third, is weak wherever it lies within a voxel: its
// tangent, to rounding, from the tangent of the first.
CGL_HD_GENERIC
template <class Warp>
CGL_HD inline bool may_be_followed(const TrackingInput& input, const PackedStart& start, const ProbeTurn& turn,
                                   std::uint32_t strong, bool in_reach) {
  if (turn.keep == keep_of_straight) return true;
  numerics::Vec3 position;
  numerics::LaneFrame<Warp> frame;
  unpack_start(start, position, frame);
  const float cosine = turn.keep;
  const float cosine_2 = 2.0f * cosine * cosine - 1.0f;
  const auto along = [&](float keep, float times) {
    const float a = times * turn.turn_1;
    const float b = times * turn.turn_2;
    return numerics::Vec3{keep * frame.tangent.x + a * frame.normal.x + b * frame.binormal.x,
                          keep * frame.tangent.y + a * frame.normal.y + b * frame.binormal.y,
                          keep * frame.tangent.z + a * frame.normal.z + b * frame.binormal.z};
  };
  // cos 2t, sin 2t / sin t; cos 3t, sin 3t / sin t
  if (!may_be_strong(input, strong, along(cosine_2, 2.0f * cosine))) return false;
  return !in_reach || may_be_strong(input, strong, along(cosine * (2.0f * cosine_2 - 1.0f), 2.0f * cosine_2 + 1.0f));
}

// One warp's share of tracking: `walks` streamlines at a time. A thread has a streamline of its own, for which it
// counts and whose probes it offers; it takes one of any. Streamlines wait for each other only while all threads
// together serve one of them. When there are no more halves for one, its threads go over to the others.
CGL_HD_GENERIC
template <class Warp, class Machine, std::uint32_t walks>
CGL_HD inline void run_probe_halves(const TrackingInput& input, float* memory, std::uint32_t slab,
                                    const SeedList& seeds, const HalfList& list, const PageStore& store) {
  // Probes are numbered: first the points of the disc, then the attempts.
  constexpr std::uint32_t disc = numerics::lane_count;
  constexpr std::int32_t idle_probe = -1;
  constexpr std::uint32_t batches = Warp::width / probe_batch;  // made at a time
  const TrackingPlan& plan = input.plan;
  const std::int32_t points = static_cast<std::int32_t>(plan.ptt_probe_quality) - 1;
  const float share = 1.0f / static_cast<float>(plan.ptt_probe_quality);
  const bool weak_links = plan.ptt_weak_links != 0u;
  const auto arcs_of = [&](std::uint32_t which) { return memory + slab + which * probe_walk_slab_words; };
  const auto walk_of = [&](std::uint32_t which) {
    return reinterpret_cast<ProbeWalk*>(arcs_of(which) + probe_batch_words);
  };
  const auto step_of = [&](std::uint32_t which) {
    return reinterpret_cast<ProbeStep*>(arcs_of(which) + probe_batch_words + probe_step_place);
  };
  const ProbeArc* const disc_arcs = reinterpret_cast<const ProbeArc*>(input.probes.arcs);
  const std::uint32_t below = one_number(Warp::lanes_below());
  // What is needed of a thread's probe when it is whole.
  const auto draw_of = [&](std::uint32_t thread) { return reinterpret_cast<ProbeDraw*>(arcs_of(walks)) + thread; };

  Probe<Warp> probe{};
  probe.points = idle_probe;
  const auto take = [&](std::uint32_t tag) {
    const std::uint32_t place = tag / walks;
    const float* const its = memory + one_number(slab + tag % walks * probe_walk_slab_words);
    const ProbeArc* arc = reinterpret_cast<const ProbeArc*>(its) + place % probe_batch;
    if (place < disc) {
      const std::uint8_t* const followed =
          reinterpret_cast<const std::uint8_t*>(its + probe_batch_words + probe_disc_place);
      arc = disc_arcs + (Warp::filters ? followed[place] : place);
    }
    const ProbeStep* const step = reinterpret_cast<const ProbeStep*>(its + probe_batch_words + probe_step_place);
    probe.turn = arc->turn;
    const ProbeDraw draw = arc->draw;
    probe.tag = draw.number * walks + tag % walks;
    ProbeDraw& own_draw = *draw_of(Warp::lane_index());
    own_draw.k1 = draw.k1;
    own_draw.k2 = draw.k2;
    own_draw.height = draw.height;
    unpack_start(reinterpret_cast<const ProbeWalk*>(its + probe_batch_words)->start, probe.position, probe.frame);
    probe.sum = step->here;
    probe.threshold = step->threshold;
    probe.points = points;
  };
  const bool can_filter = !weak_links && points >= 2 && 2.0f * reach_of_point(plan) <= 0.99f;
  const bool in_reach = points >= 3 && 3.0f * reach_of_point(plan) <= 0.99f;
  std::uint32_t running = (1u << walks) - 1u;  // streamlines that may have halves
  std::uint32_t own = Warp::lane_index() % walks;
  std::uint32_t own_bits = (0xffffffffu / ((1u << walks) - 1u)) << own;  // threads with the same
  std::uint32_t own_place = Warp::lane_index() / walks;                  // among them
  // Of the own streamline, the same for all its threads.
  std::uint32_t taken = 0;                  // probes that threads have or had
  std::uint32_t made = 0;                   // probes with arcs; 0 before the first half
  std::uint32_t attempts = plan.ptt_tries;  // that probes were made of, or were seen to be weak
  std::uint32_t until_bound = 0;            // points until the last of the disc is whole
  for (;;) {
    std::uint32_t idle, open, offer;
    bool offers;
    for (;;) {
      idle = Warp::ballot(probe.points < 0);
      offer = taken + own_place;
      offers = offer < made;
      open = Warp::ballot(offers);
      // The threads that follow this streamline's probes.
      std::uint32_t followers = ~idle;
      CGL_UNROLL
      for (std::uint32_t bit = 1; bit < walks; bit *= 2u) {
        const std::uint32_t odd = Warp::ballot((probe.tag & bit) != 0u);
        followers &= (own & bit) != 0u ? odd : ~odd;
      }
      const std::uint32_t drawn = Warp::ballot(followers == 0u && taken >= made && attempts >= plan.ptt_tries);
      if (drawn != 0u) {
        // All that the step needs is known.
        const std::uint32_t first = numerics::lowest_set_bit(drawn);
        const std::uint32_t which = Warp::get(own, first);
        ProbeStep& step = *step_of(which);
        const bool starts = Warp::get(made, first) == 0u;
        const Curvature curvature{!starts && step.accepted != 0u, step.k1, step.k2};
        const bool goes_on =
            next_probe_start<Warp, Machine>(input, seeds, list, store, starts, curvature, *walk_of(which), step);
        std::uint32_t of_disc = Warp::width;  // points of the disc that are followed
        if constexpr (Warp::filters) {
          if (goes_on) {
            const bool counts =
                !can_filter || may_be_followed<Warp>(input, walk_of(which)->start, disc_arcs[Warp::lane_index()].turn,
                                                     step.strong, in_reach);
            const std::uint32_t counting = Warp::ballot(counts);
            of_disc = numerics::bit_count(counting);
            std::uint8_t* const followed =
                reinterpret_cast<std::uint8_t*>(arcs_of(which) + probe_batch_words + probe_disc_place);
            if (counts) {
              followed[disc - of_disc + numerics::bit_count(counting & below)] =
                  static_cast<std::uint8_t>(Warp::lane_index());
            }
            Warp::barrier();
          }
        }
        if (own == which) {
          taken = disc - of_disc;
          made = disc;
          // Without any there is no bound, and no direction.
          attempts = of_disc == 0u ? plan.ptt_tries : 0u;
          until_bound = 0u;
        }
        if (goes_on) continue;
        running &= ~(1u << which);
        if (running == 0u) return;
        // Its threads go to those that remain, one after the other.
        std::uint32_t next = own;
        if (own == which) {
          std::uint32_t among = running;
          for (std::uint32_t skip = own_place % numerics::bit_count(running); skip != 0u; --skip) among &= among - 1u;
          next = numerics::lowest_set_bit(among);
        }
        std::uint32_t from = Warp::lane_index();
        for (std::uint32_t w = 0; w < walks; ++w) {
          const std::uint32_t its = Warp::ballot(own == w);
          if (own == which && next == w) from = numerics::lowest_set_bit(its);
        }
        own = next;
        taken = Warp::get(taken, from);
        made = Warp::get(made, from);
        attempts = Warp::get(attempts, from);
        until_bound = Warp::get(until_bound, from);
        for (std::uint32_t w = 0; w < walks; ++w) {
          const std::uint32_t its = Warp::ballot(own == w);
          if (own == w) own_bits = its;
        }
        own_place = numerics::bit_count(own_bits & below);
        continue;
      }
      // Streamlines without candidates that may need some: one thread of each.
      const std::uint32_t short_of = Warp::ballot(taken >= made && attempts < plan.ptt_tries && own_place == 0u);
      if (short_of == 0u) break;
      if (numerics::bit_count(short_of) < batches && numerics::bit_count(idle) <= numerics::bit_count(open)) break;
      std::uint32_t of = short_of;
      CGL_UNROLL
      for (std::uint32_t b = 1; b < batches; ++b) {
        if (Warp::lane_index() >= b * probe_batch) of &= of - 1u;
      }
      const std::uint32_t from = of != 0u ? numerics::lowest_set_bit(of) : 0u;
      const std::uint32_t which = Warp::get(own, from);
      const std::uint32_t attempt = Warp::get(attempts, from) + Warp::lane_index() % probe_batch;
      const std::uint32_t first = Warp::get(made, from);
      const ProbeWalk& walk = *walk_of(which);
      Warp::barrier();
      const Candidates<Warp> candidates =
          draw_candidates<Warp>(plan, {{walk.seed, walk.stream, walk.moves - 1u, 0u}}, attempt - Warp::lane_index());
      const ProbeTurn turn = probe_turn<Warp>(candidates.k1, candidates.k2, plan.ptt_probe_step_mm);
      bool counts = of != 0u && attempt < plan.ptt_tries;
      if constexpr (Warp::filters) {
        if (counts && can_filter)
          counts = may_be_followed<Warp>(input, walk.start, turn, step_of(which)->strong, in_reach);
      }
      const std::uint32_t counting = Warp::ballot(counts);
      const auto of_batch = [&](std::uint32_t batch) {
        return counting & ((0xffffffffu >> (Warp::width - probe_batch)) << (batch * probe_batch));
      };
      if (counts) {
        const std::uint32_t before = numerics::bit_count(of_batch(Warp::lane_index() / probe_batch) & below);
        reinterpret_cast<ProbeArc*>(arcs_of(which))[(first + before) % probe_batch] = {
            turn, {candidates.k1, candidates.k2, candidates.height, disc + attempt}};
      }
      const std::uint32_t own_first = own_bits & (0u - own_bits);
      const std::uint32_t own_batch = numerics::bit_count(short_of & (own_first - 1u));
      if ((short_of & own_first) != 0u && own_batch < batches) {
        made = made + numerics::bit_count(of_batch(own_batch));
        attempts = attempts + probe_batch;
      }
      Warp::barrier();
    }

    // Each thread offers a probe of its streamline, if there are as many left; the first of those without a probe takes
    // the first offered, so that streamlines share the threads evenly.
    const std::uint32_t place = numerics::bit_count(open & below);
    if (offers) draw_of(place)->number = offer * walks + own;
    const std::uint32_t came =
        numerics::bit_count(Warp::ballot(offers && place < numerics::bit_count(idle)) & own_bits);
    Warp::barrier();
    const std::uint32_t turn = numerics::bit_count(idle & below);
    if (probe.points < 0 && turn < numerics::bit_count(open)) take(draw_of(turn)->number);
    Warp::barrier();
    if (taken < disc && taken + came >= disc) until_bound = static_cast<std::uint32_t>(points);
    taken = taken + came;

    if (probe.points > 0) {
      move_along(plan, probe.turn, plan.ptt_probe_step_mm, probe.position, probe.frame);
      const float value = amplitude_along<Warp>(input, probe.position, tangent_of(probe.frame));
      probe.sum = probe.sum + value;
      probe.points = weak_links || value >= probe.threshold ? probe.points - 1 : idle_probe;
    }
    until_bound = until_bound - 1u;
    const bool whole = probe.points == 0;
    if (!Warp::any(whole || until_bound == 0u)) continue;
    ProbeStep& step = *step_of(probe.tag % walks);
    const float mean = probe.sum * share;
    const float support = whole && mean >= probe.threshold && mean > 0.0f ? mean : 0.0f;
    const bool of_disc = probe.tag < disc * walks;
    if (of_disc && support > 0.0f) Warp::raise(step.best_of_disc, numerics::float_bits(support));
    if (whole) probe.points = idle_probe;
    Warp::barrier();
    // A candidate is never whole before the last point of the disc, which was taken before it.
    const float bound = numerics::bits_float(step.best_of_disc) * bound_margin;
    const bool passes = !of_disc && bound > 0.0f && support > draw_of(Warp::lane_index())->height * bound;
    if (!Warp::any(passes || until_bound == 0u)) continue;
    // The first in the order of attempts counts.
    ProbeStep& own_step = *step_of(own);
    const std::uint32_t number = probe.tag / walks;
    if (passes) Warp::lower(step.end, number);
    if (until_bound == 0u && own_step.best_of_disc == 0u) own_step.end = disc;
    Warp::barrier();
    if (passes && step.end == number) {
      step.k1 = draw_of(Warp::lane_index())->k1;
      step.k2 = draw_of(Warp::lane_index())->k2;
      step.accepted = 1u;
    }
    if (!of_disc && number >= step.end) probe.points = idle_probe;
    if (made != 0u && own_step.end != disc + plan.ptt_tries) {
      // What threads have not taken comes after.
      made = taken;
      attempts = plan.ptt_tries;
    }
    Warp::barrier();
  }
}

}  // namespace cingulum::kernel
