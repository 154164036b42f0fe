// ptt: parallel transport tractography (Aydogan and Shi, IEEE TMI 40, 2021). A streamline carries a frame (tangent,
// normal, binormal) and goes along arcs of constant curvature (k1, k2), drawn anew at each internal step. The support
// of a pair is the mean amplitude along a probe that such an arc would take, raised to an exponent; pairs are drawn in
// proportion to it.
//
// Amplitude at a position along a tangent: of a spherical function, that of the nearest direction of the sphere (the
// largest cosine, without its sign on hemispheres; among equals the lowest slot), interpolated; of a series, the
// interpolated series at the tangent itself. Below zero, and outside of the image, it is zero. An amplitude counts as
// weak below the greater of the relative threshold times the largest amplitude over the sphere at the streamline's own
// position, and the absolute threshold. A probe whose mean is weak has no support; unless weak links are allowed,
// neither has one with a weak amplitude anywhere.
//
// Pairs are drawn by rejection: uniform in the disc of radius ptt_max_curvature, accepted with probability support over
// bound, the first accepted of at most ptt_tries. The bound is the largest support of the 32 points of the disc that
// DiscView has, times bound_margin: with it, rejection gives the wanted distribution wherever no support exceeds the
// bound, and cuts the excess off elsewhere (getters.test.cpp measures the distribution).
//
// The bound is estimated at every ptt_bound_interval-th arc of a half and carried along in between, raised to the
// support of an accepted pair that exceeds it. Where none of the first tries_on_trust pairs is accepted under a carried
// bound, it is estimated at once, and the further pairs are tried under the new one: where amplitudes fall, and where
// the half ends, an old bound would refuse all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/lane_elementary.hpp"
#include "numerics/lane_rotation.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/rotation.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/series.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

inline constexpr float bound_margin = 1.1f;
// Candidates under a bound that was carried along. As many as a warp has lanes: a whole number of groups on each
// device.
inline constexpr std::uint32_t tries_on_trust = numerics::lane_count;
inline constexpr float two_pi = 0x1.921fb6p+2f;
// Numbers per lane in slab.probe. Odd on a warp, so that its lanes read from different banks of shared memory.
template <class Group>
inline constexpr std::uint32_t probe_stride = Group::serial ? 96u : 97u;

// The slot whose direction is nearest to each lane's unit vector.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Word nearest_slots(const TrackingInput& input, const numerics::LaneVec3<Group>& v) {
  using Float = typename Group::Float;
  using Word = typename Group::Word;
  const NearestView& nearest = input.nearest;
  const SphereView& sphere = input.sphere;
  const Float x = Group::magnitude(v.x);
  const Float y = Group::magnitude(v.y);
  const Float z = Group::magnitude(v.z);
  const typename Group::Mask along_x = Group::both(Group::at_least(x, y), Group::at_least(x, z));
  const typename Group::Mask along_y = Group::at_least(y, z);
  const Float major = Group::select(along_x, v.x, Group::select(along_y, v.y, v.z));
  const Float first = Group::select(along_x, v.y, v.x);
  const Float second = Group::select(along_x, v.z, Group::select(along_y, v.z, v.y));
  Word face =
      Group::select(along_x, Group::broadcast(0u), Group::select(along_y, Group::broadcast(1u), Group::broadcast(2u)));
  if (sphere.is_hemisphere == 0u) {
    const typename Group::Mask negative = Group::greater(Group::broadcast(0.0f), major);
    face = Group::add(face, Group::select(negative, Group::broadcast(3u), Group::broadcast(0u)));
  }
  const auto cell = [&](const Float& minor) {
    const Float scaled = Group::multiply(Group::add(Group::divide(minor, major), Group::broadcast(1.0f)),
                                         Group::broadcast(0.5f * static_cast<float>(nearest.cells)));
    const Float last = Group::broadcast(static_cast<float>(nearest.cells - 1u));
    return Group::integer_of_float(Group::lesser_of(Group::greater_of(scaled, Group::broadcast(0.0f)), last));
  };
  const Word cells = Group::broadcast(nearest.cells);
  const Word row = Group::add(Group::multiply(face, cells), cell(second));
  Word at = Group::multiply(Group::add(Group::multiply(row, cells), cell(first)), Group::broadcast(nearest.capacity));
  const auto cosine_with = [&](const Word& slot) {
    const Float cosine = numerics::lane_dot<Group>(
        {Group::gather(sphere.x, slot), Group::gather(sphere.y, slot), Group::gather(sphere.z, slot)}, v);
    return sphere.is_hemisphere != 0u ? Group::magnitude(cosine) : cosine;
  };
  const Word first_slot = Group::gather(nearest.slots, at);
  Word best = first_slot;
  Float best_cosine = Group::broadcast(-2.0f);
  for (std::uint32_t n = 1; n < nearest.capacity; ++n) {
    at = Group::add(at, Group::broadcast(1u));
    const Word slot = Group::gather(nearest.slots, at);
    // Slots ascend, and the first stands again where there are no more.
    if (!Group::any(Group::less(first_slot, slot))) break;
    if (n == 1u) best_cosine = cosine_with(first_slot);
    const Float cosine = cosine_with(slot);
    const typename Group::Mask better = Group::greater(cosine, best_cosine);
    best = Group::select(better, slot, best);
    best_cosine = Group::select(better, cosine, best_cosine);
  }
  return best;
}

template <class Group>
struct LaneAxisCell {
  typename Group::Word low, high;
  typename Group::Float low_weight, high_weight;
};

// numerics::axis_cell of each lane; positions are below 2^24.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline LaneAxisCell<Group> lane_axis_cell(const typename Group::Float& position, std::uint32_t size) {
  using Float = typename Group::Float;
  const Float zero = Group::broadcast(0.0f);
  const Float last = Group::broadcast(static_cast<float>(size - 1u));
  const Float below = Group::floor_of_lanes(position);
  const Float high_weight = Group::subtract(position, below);
  const Float above = Group::add(below, Group::broadcast(1.0f));
  return {Group::integer_of_float(Group::lesser_of(Group::greater_of(below, zero), last)),
          Group::integer_of_float(Group::lesser_of(Group::greater_of(above, zero), last)),
          Group::subtract(Group::broadcast(1.0f), high_weight), high_weight};
}

// Bits of the lanes whose position lies in the image (numerics::is_outside).
CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Mask lanes_inside(numerics::GridSize size, const numerics::LaneVec3<Group>& position) {
  const auto inside = [](const typename Group::Float& p, std::uint32_t extent) {
    return Group::both(
        Group::at_least(p, Group::broadcast(-0.5f)),
        Group::greater(Group::broadcast(static_cast<float>(extent)), Group::add(p, Group::broadcast(0.5f))));
  };
  return Group::both(Group::both(inside(position.x, size.x), inside(position.y, size.y)), inside(position.z, size.z));
}

// The amplitude at each lane's position along its tangent.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Float amplitudes_along(const TrackingInput& input, const Slab& slab,
                                                     const numerics::LaneVec3<Group>& position,
                                                     const numerics::LaneVec3<Group>& tangent) {
  using Float = typename Group::Float;
  using Word = typename Group::Word;
  const FieldView& field = input.field;
  const numerics::GridSize size = input.plan.size;
  const typename Group::Mask inside = lanes_inside<Group>(size, position);
  const Float zero = Group::broadcast(0.0f);
  if (!Group::any(inside)) return zero;
  if (field.kind == field_of_harmonics) {
    Group::Wide::barrier();
    Group::each_lane(inside, [&](std::uint32_t lane) {
      const Corners corners = corners_at(
          field, size, {Group::own(position.x, lane), Group::own(position.y, lane), Group::own(position.z, lane)});
      interpolate_channels<typename Group::Wide>(corners, 0u, field.channels,
                                                 slab.probe + std::size_t{probe_stride<Group>} * lane);
    });
    const Word first = Group::multiply(Group::slots_of_row(0u), Group::broadcast(probe_stride<Group>));
    const Float value = series_at<Group>(input.harmonics, tangent.x, tangent.y, tangent.z, [&](int index) {
      return Group::gather(slab.probe + input.harmonics.record_index[index], first);
    });
    return Group::select(inside, Group::greater_of(value, zero), zero);
  }
  const Word slot = nearest_slots<Group>(input, tangent);
  const LaneAxisCell<Group> x = lane_axis_cell<Group>(position.x, size.x);
  const LaneAxisCell<Group> y = lane_axis_cell<Group>(position.y, size.y);
  const LaneAxisCell<Group> z = lane_axis_cell<Group>(position.z, size.z);
  Float sum = zero;
  for (std::uint32_t corner = 0; corner < 8u; ++corner) {
    const Word cx = (corner & 1u) != 0u ? x.high : x.low;
    const Word cy = (corner & 2u) != 0u ? y.high : y.low;
    const Word cz = (corner & 4u) != 0u ? z.high : z.low;
    const Float weight = Group::multiply(Group::multiply((corner & 1u) != 0u ? x.high_weight : x.low_weight,
                                                         (corner & 2u) != 0u ? y.high_weight : y.low_weight),
                                         (corner & 4u) != 0u ? z.high_weight : z.low_weight);
    const Word row = Group::add(cy, Group::multiply(Group::broadcast(size.y), cz));
    const Word voxel = Group::add(cx, Group::multiply(Group::broadcast(size.x), row));
    const Word record = Group::gather(field.record_of_voxel, voxel);
    const Float value =
        field.is_float16 != 0u
            ? Group::gather_float16(float16_of(field.records), record, field.stride, slot, field.is_small != 0u)
            : Group::gather_number(field.records, record, field.stride, slot, field.is_small != 0u);
    const Float term = Group::multiply(weight, value);
    sum = corner == 0u ? term : Group::add(sum, term);
  }
  return Group::select(inside, Group::greater_of(sum, zero), zero);
}

// The mean over the parallel probes around the curve; `strong` receives whether none of them is below the
// threshold.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Float probe_amplitudes(const TrackingInput& input, const Slab& slab,
                                                     const numerics::LaneVec3<Group>& position,
                                                     const numerics::LaneFrame<Group>& frame, float threshold,
                                                     typename Group::Mask& strong) {
  using Float = typename Group::Float;
  const TrackingPlan& plan = input.plan;
  const Float least = Group::broadcast(threshold);
  if (plan.ptt_probe_count <= 1u) {
    const Float value = amplitudes_along<Group>(input, slab, position, frame.tangent);
    strong = Group::at_least(value, least);
    return value;
  }
  Float sum = Group::broadcast(0.0f);
  for (std::uint32_t c = 0; c < plan.ptt_probe_count; ++c) {
    const numerics::SineCosine<float> at =
        numerics::sine_cosine((two_pi * static_cast<float>(c)) / static_cast<float>(plan.ptt_probe_count));
    const numerics::LaneVec3<Group> offset = numerics::lane_add<Group>(
        numerics::lane_scale<Group>(frame.normal, Group::broadcast(plan.ptt_probe_radius_mm * at.cosine)),
        numerics::lane_scale<Group>(frame.binormal, Group::broadcast(plan.ptt_probe_radius_mm * at.sine)));
    const numerics::LaneVec3<Group> beside{
        Group::add(position.x, Group::multiply(offset.x, Group::broadcast(plan.voxels_per_mm[0]))),
        Group::add(position.y, Group::multiply(offset.y, Group::broadcast(plan.voxels_per_mm[1]))),
        Group::add(position.z, Group::multiply(offset.z, Group::broadcast(plan.voxels_per_mm[2])))};
    const Float value = amplitudes_along<Group>(input, slab, beside, frame.tangent);
    const typename Group::Mask as_strong = Group::at_least(value, least);
    strong = c == 0u ? as_strong : Group::both(strong, as_strong);
    sum = c == 0u ? value : Group::add(sum, value);
  }
  return Group::divide(sum, Group::broadcast(static_cast<float>(plan.ptt_probe_count)));
}

// What all probes of one internal step share.
struct ProbeStart {
  numerics::Vec3 position;
  numerics::Frame frame;
  float amplitude;  // at the position, along the tangent
  float threshold;  // below it an amplitude is weak
};

// The same where each lane has its own.
template <class Group>
struct LaneProbeStart {
  numerics::LaneVec3<Group> position;
  numerics::LaneFrame<Group> frame;
  typename Group::Float amplitude;
  float threshold;
};

// The supports of each lane's curvatures; zero for lanes that are not `alive`.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Float supports(const TrackingInput& input, const Slab& slab,
                                             const LaneProbeStart<Group>& start, const typename Group::Float& k1,
                                             const typename Group::Float& k2, typename Group::Mask alive) {
  using Float = typename Group::Float;
  const TrackingPlan& plan = input.plan;
  const numerics::LaneArc<Group> arc = numerics::lane_arc<Group>(k1, k2, plan.ptt_probe_step_mm);
  numerics::LaneFrame<Group> frame = start.frame;
  numerics::LaneVec3<Group> position = start.position;
  Float sum = start.amplitude;
  for (std::uint32_t q = 1; q < plan.ptt_probe_quality; ++q) {
    const numerics::LaneFrameStep<Group> next = numerics::lane_propagate<Group>(frame, arc);
    frame = next.frame;
    position.x = Group::add(position.x, Group::multiply(next.displacement.x, Group::broadcast(plan.voxels_per_mm[0])));
    position.y = Group::add(position.y, Group::multiply(next.displacement.y, Group::broadcast(plan.voxels_per_mm[1])));
    position.z = Group::add(position.z, Group::multiply(next.displacement.z, Group::broadcast(plan.voxels_per_mm[2])));
    typename Group::Mask strong;
    sum = Group::add(sum, probe_amplitudes<Group>(input, slab, position, frame, start.threshold, strong));
    if (plan.ptt_weak_links == 0u) {
      alive = Group::both(alive, strong);
      if (!Group::any(alive)) return Group::broadcast(0.0f);
    }
  }
  Float mean = Group::multiply(sum, Group::broadcast(1.0f / static_cast<float>(plan.ptt_probe_quality)));
  alive = Group::both(alive, Group::both(Group::at_least(mean, Group::broadcast(start.threshold)),
                                         Group::greater(mean, Group::broadcast(0.0f))));
  if (plan.ptt_exponent_is_one == 0u) {
    mean = Group::map(
        mean, [&](float value) { return numerics::exponential(plan.ptt_exponent * numerics::logarithm(value)); });
  }
  return Group::select(alive, mean, Group::broadcast(0.0f));
}

CGL_HD_GENERIC
template <class Group>
CGL_HD inline typename Group::Float supports(const TrackingInput& input, const Slab& slab, const ProbeStart& start,
                                             const typename Group::Float& k1, const typename Group::Float& k2,
                                             typename Group::Mask alive) {
  return supports<Group>(
      input, slab,
      LaneProbeStart<Group>{numerics::spread<Group>(start.position), numerics::spread<Group>(start.frame),
                            Group::broadcast(start.amplitude), start.threshold},
      k1, k2, alive);
}

struct Curvature {
  bool found;
  float k1;
  float k2;
};

// Whether the bound is carried along to the arc that follows on `arcs` others of its half.
CGL_HD constexpr bool carries_bound(const TrackingPlan& plan, std::uint32_t arcs) {
  return arcs % plan.ptt_bound_interval != 0u;
}

// Whether no amplitude over the whole sphere is needed to tell which are weak.
CGL_HD constexpr bool threshold_is_absolute(const TrackingPlan& plan) {
  return plan.relative_threshold == 0.0f;
}

// A pair per lane, uniform in the disc, and the height at which each is tried.
template <class Group>
struct Candidates {
  typename Group::Float k1, k2, height;  // height in [0, 1)
  typename Group::Mask allowed;          // among the first ptt_tries
};

// Draws the candidate of each lane by its counter.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline Candidates<Group> candidates_of(const TrackingPlan& plan, const numerics::LaneBlocks<Group>& counters,
                                              const typename Group::Mask& allowed) {
  using Float = typename Group::Float;
  const numerics::LaneBlocks<Group> draws = numerics::lane_philox4x32_10<Group>(counters, plan.key.low, plan.key.high);
  const auto uniform = [&](int i) {
    return Group::multiply(Group::float_of_integer(Group::template shift_right<8>(draws.word[i])),
                           Group::broadcast(0x1p-24f));
  };
  const Float radius = Group::multiply(Group::broadcast(plan.ptt_max_curvature), Group::square_root(uniform(0)));
  const numerics::LaneSineCosine<Group> angle =
      numerics::lane_sine_cosine<Group>(Group::multiply(Group::broadcast(two_pi), uniform(1)));
  return {Group::multiply(radius, angle.cosine), Group::multiply(radius, angle.sine), uniform(2), allowed};
}

// Attempts first, first + 1, ... of which those below `end` are allowed.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline Candidates<Group> draw_candidates(const TrackingPlan& plan, const numerics::PhiloxBlock& words,
                                                std::uint32_t first, std::uint32_t end) {
  const typename Group::Word attempt = Group::add(Group::slots_of_row(0u), Group::broadcast(first));
  return candidates_of<Group>(plan,
                              {{Group::broadcast(words.word[0]), Group::broadcast(words.word[1]),
                                Group::broadcast(words.word[2]), Group::template shift_left<16>(attempt)}},
                              Group::less(attempt, Group::broadcast(end)));
}

// Bits of the lanes that are accepted. `bound` has the margin in it.
CGL_HD_GENERIC
template <class Group>
CGL_HD inline std::uint32_t accepted_lanes(const Candidates<Group>& candidates, const typename Group::Float& support,
                                           float bound) {
  return Group::ballot(Group::both(
      candidates.allowed, Group::greater(support, Group::multiply(candidates.height, Group::broadcast(bound)))));
}

// The pair for one internal step; the record at `position` lies in the slab unless the threshold is absolute. `bound`
// is that of the arc before, and becomes that of this one.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Curvature draw_curvature(const TrackingInput& input, const Slab& slab,
                                       const numerics::DrawCounter& counter, numerics::Vec3 position,
                                       const numerics::Frame& frame, float& bound, std::uint32_t refused = 0) {
  using Group = typename Lanes::Narrow;
  using Float = typename Group::Float;
  const TrackingPlan& plan = input.plan;
  const float threshold =
      threshold_is_absolute(plan) ? plan.absolute_threshold : fill_amplitudes<Lanes>(input, slab, nullptr);
  ProbeStart start{position, frame, 0.0f, threshold};
  typename Group::Mask strong;
  const Float here = probe_amplitudes<Group>(input, slab, numerics::spread<Group>(position),
                                             numerics::spread<Group>(frame), start.threshold, strong);
  start.amplitude = Group::get(here, 0u);
  if (plan.ptt_weak_links == 0u && (Group::ballot(strong) & 1u) == 0u) return {false, 0.0f, 0.0f};
  const numerics::PhiloxBlock words = numerics::counter_words(counter, 0u);
  const typename Lanes::Float limit = Lanes::broadcast(plan.ptt_max_curvature);
  const typename Lanes::Float disc_k1 = Lanes::multiply(Lanes::load(input.disc.k1), limit);
  const typename Lanes::Float disc_k2 = Lanes::multiply(Lanes::load(input.disc.k2), limit);
  const auto taken = [&](const Candidates<Group>& candidates, const Float& support,
                         std::uint32_t accepted) -> Curvature {
    const std::uint32_t lane = numerics::lowest_set_bit(accepted);
    const float its_support = Group::get(support, lane);
    bound = its_support > bound ? its_support : bound;
    return {true, Group::get(candidates.k1, lane), Group::get(candidates.k2, lane)};
  };
  // One loop for both bounds: a lambda that is called twice stays a function for nvcc, and then the input, of which it
  // has the address, lies in the memory of every kernel that could call it (det from series ran at a third of its
  // rate).
  const bool carried = carries_bound(plan, counter.step);
  std::uint32_t attempt = carried ? refused : 0u;
  for (bool trusts = carried;; trusts = false) {
    const std::uint32_t end = trusts ? tries_on_trust : plan.ptt_tries;
    if (!trusts) {
      if constexpr (Lanes::serial) {
        // The disc and the first candidates at once: what one register waits for, the others fill.
        using Probes = typename Lanes::Probes;
        static_assert(Probes::width == numerics::lane_count + Group::width);
        alignas(64) float k1[Probes::width];
        alignas(64) float k2[Probes::width];
        alignas(64) float support[Probes::width];
        const Candidates<Group> candidates = draw_candidates<Group>(plan, words, attempt, end);
        Lanes::store(k1, disc_k1);
        Lanes::store(k2, disc_k2);
        Group::store(k1 + numerics::lane_count, candidates.k1);
        Group::store(k2 + numerics::lane_count, candidates.k2);
        const typename Probes::Mask alive =
            Probes::less(Probes::slots_of_row(0u), Probes::broadcast(numerics::lane_count + end - attempt));
        Probes::store(support, supports<Probes>(input, slab, start, Probes::load(k1), Probes::load(k2), alive));
        bound = fold_greatest<Lanes>(Lanes::load(support)) * bound_margin;
        if (!(bound > 0.0f)) return {false, 0.0f, 0.0f};
        const Float of_candidates = Group::load(support + numerics::lane_count);
        const std::uint32_t accepted = accepted_lanes<Group>(candidates, of_candidates, bound);
        if (accepted != 0u) return taken(candidates, of_candidates, accepted);
        attempt = attempt + Group::width;
      } else {
        bound = fold_greatest<Lanes>(supports<Lanes>(input, slab, start, disc_k1, disc_k2, Lanes::mask_of_bits(~0u))) *
                bound_margin;
        if (!(bound > 0.0f)) return {false, 0.0f, 0.0f};
      }
    }
    for (; attempt < end; attempt += Group::width) {
      const Candidates<Group> candidates = draw_candidates<Group>(plan, words, attempt, end);
      const Float support = supports<Group>(input, slab, start, candidates.k1, candidates.k2, candidates.allowed);
      const std::uint32_t accepted = accepted_lanes<Group>(candidates, support, bound);
      if (accepted != 0u) return taken(candidates, support, accepted);
    }
    if (!trusts) return {false, 0.0f, 0.0f};
    attempt = tries_on_trust;
  }
}

// The frame at the seed: the tangent is the initial direction, the normal turned about it at random.
CGL_HD inline numerics::Frame initial_frame(numerics::PhiloxKey key, std::uint32_t seed, std::uint32_t direction_index,
                                            std::uint32_t half, numerics::Vec3 tangent) {
  const numerics::DrawCounter counter{seed, numerics::DrawPurpose::initial_direction, direction_index, half, 0u, 0u};
  const numerics::SineCosine<float> angle =
      numerics::sine_cosine(two_pi * numerics::uniform_from_word(numerics::random_word(key, counter, 0u)));
  const numerics::Frame frame = numerics::frame_with_tangent(tangent);
  return numerics::straighten(tangent, frame.normal * angle.cosine + frame.binormal * angle.sine);
}

}  // namespace cingulum::kernel
