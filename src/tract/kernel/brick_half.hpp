// Tracking where only a part of the field lies on the device: a brick, whole planes along z. A half that leaves it
// pauses, and goes on when the brick that it came to is there; between two moves nothing but the walk itself has to be
// kept. The walk is that of kernel/walk.hpp; here are its bounds and its points. Called by cuda/brick_kernels.cu.
//
// Equal to: run_halves of paged_half.hpp with the whole field. Gain: none in speed; fields that fit no other way are
// tracked. Held by: PagedTracker.with_any_share_of_the_memory_tracks_the_same_or_refuses_before_work_begins (with the
// lanes of a host), DeviceTracking.short_memory_gives_the_same_bits_or_a_refusal_before_work_begins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/walk.hpp"

namespace cingulum::kernel {

// Points of a half that may pause: the page that it fills is written as far as it got, and read again.
template <class Lanes, class Machine>
struct PausingPoints {
  PagedPoints<Lanes, Machine> paged;
  bool has_page;  // the page that is being filled is `paged.last`

  CGL_HD_GENERIC
  static CGL_HD PausingPoints begin(const PageStore& store) {
    return {PagedPoints<Lanes, Machine>::begin(store), false};
  }
  CGL_HD_GENERIC
  static CGL_HD PausingPoints resume(const PageStore& store, const PausedHalf& from) {
    PausingPoints points = begin(store);
    points.paged.first = from.first_page;
    points.paged.last = from.last_page;
    points.has_page = from.kept % page_points != 0u;
    if (points.has_page) {
      const float* const page = store.pages + static_cast<std::size_t>(from.last_page) * page_floats;
      points.paged.x = Lanes::load(page);
      points.paged.y = Lanes::load(page + page_points);
      points.paged.z = Lanes::load(page + 2u * page_points);
    }
    return points;
  }

  CGL_HD_GENERIC
  CGL_HD bool keep(std::uint32_t index, numerics::Vec3 position) {
    if (has_page && (index + 1u) % page_points == 0u) {
      // The last of a page that is there: PagedPoints would take another.
      const typename Lanes::Mask own = Lanes::mask_of_bits(1u << (page_points - 1u));
      paged.x = Lanes::select(own, Lanes::broadcast(position.x), paged.x);
      paged.y = Lanes::select(own, Lanes::broadcast(position.y), paged.y);
      paged.z = Lanes::select(own, Lanes::broadcast(position.z), paged.z);
      write_again();
      has_page = false;
      return true;
    }
    return paged.keep(index, position);
  }

  // Called after the last of `points` points, whether the half pauses or has ended.
  CGL_HD_GENERIC
  CGL_HD bool finish(std::uint32_t points) {
    if (points % page_points == 0u) return true;
    if (!has_page) return paged.write_page();
    write_again();
    return true;
  }

  CGL_HD_GENERIC
  CGL_HD void write_again() {
    float* const page = paged.store.pages + static_cast<std::size_t>(paged.last) * page_floats;
    Lanes::store(page, paged.x);
    Lanes::store(page + page_points, paged.y);
    Lanes::store(page + 2u * page_points, paged.z);
  }
};

// The policy `Bounds` of kernel/walk.hpp: z from `low` to below `high`.
struct BrickBounds {
  float low;
  float high;

  CGL_HD bool has(numerics::Vec3 position) const { return !(position.z < low || position.z >= high); }
};

// One group's share of tracking in a brick. Of a half that pauses, HalfRecord::points is the bits of its z.
CGL_HD_GENERIC
template <class Lanes, class Machine>
CGL_HD inline void run_halves_in_brick(const TrackingInput& input, const Slab& slab, const SeedList& seeds,
                                       const HalfList& list, const PageStore& store, const BrickWork& brick) {
  for (;;) {
    const std::uint32_t half_number = take_half<Machine>(input.plan, list);
    if (half_number == no_place) return;
    HalfWalk walk = begin_half_at(input.plan, seeds, list, half_number);
    const PausedHalf before = brick.paused[half_number];
    PausingPoints<Lanes, Machine> points = PausingPoints<Lanes, Machine>::begin(store);
    if (before.is_paused != 0u) {
      walk.moves = before.moves;
      walk.arcs = before.arcs;
      walk.kept = before.kept;
      walk.position = before.position;
      walk.frame = before.frame;
      walk.bound = before.bound;
      points = PausingPoints<Lanes, Machine>::resume(store, before);
    }
    HalfEnd end = walk_half<Lanes, StepsFromField>(input, slab, BrickBounds{brick.low, brick.high}, points, walk);
    if (end.reason != unfinished_half && !points.finish(end.points)) end.reason = unfinished_half;
    // All lanes have read it.
    Lanes::barrier();
    brick.paused[half_number] = {end.reason == paused_half ? 1u : 0u,
                                 walk.moves,
                                 walk.arcs,
                                 walk.kept,
                                 points.paged.first,
                                 points.paged.last,
                                 walk.position,
                                 walk.frame,
                                 walk.bound};
    const std::uint32_t z = numerics::float_bits(walk.position.z);
    list.halves[half_number] = {end.reason == paused_half ? z : end.points, end.steps, end.reason, points.paged.first};
    // No half after this one would find a page.
    if (end.reason == unfinished_half) return;
  }
}

}  // namespace cingulum::kernel
