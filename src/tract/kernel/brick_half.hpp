// Tracking where only a part of the field lies on the device: a brick, whole planes along z. A half that leaves it
// pauses, and goes on when the brick that it came to is there; between two moves nothing but the walk itself has to be
// kept, so that the bits are those of kernel/track.hpp. Called by the kernels of cuda/ and, with the lanes of a host,
// by the tests of paged_tracker.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tract/kernel/paged_half.hpp"
#include "tract/kernel/track.hpp"

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

  // After the last of `points` points, for now or for good.
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

// Goes on until the half ends (its reason), leaves the brick (paused_half) or finds no page (unfinished_half).
CGL_HD_GENERIC
template <class Lanes, class Points>
CGL_HD inline HalfEnd walk_half_in_brick(const TrackingInput& input, const Slab& slab, const BrickWork& brick,
                                         HalfWalk& walk, Points& points) {
  const TrackingPlan& plan = input.plan;
  const bool in_step = interpolates_in_step(input);
  const bool is_ptt = static_cast<Getter>(plan.getter) == Getter::ptt;
  const auto end = [&walk](std::uint32_t moves, EndReason reason) {
    return HalfEnd{walk.kept, moves, static_cast<std::uint32_t>(reason)};
  };
  for (;;) {
    if (walk.position.z < brick.low || walk.position.z >= brick.high) return {walk.kept, walk.moves, paused_half};
    const Corners corners = corners_at(input.field, plan.size, walk.position);
    if (walk.moves == 0u) {
      if (!in_step) read_record<Lanes>(input, slab, walk.position, corners, nothing_expected());
    } else {
      const EndReason reason = in_step ? enter_point_alone(input, walk.position, corners)
                                       : enter_point<Lanes>(input, slab, walk.position, corners, nothing_expected());
      if (reason != EndReason::none) return end(walk.moves, reason);
      walk.arcs = walk.arcs + 1u;
      if (!is_ptt || walk.arcs == plan.ptt_substeps) {
        if (!points.keep(walk.kept, walk.position)) return {walk.kept, walk.moves, unfinished_half};
        walk.kept = walk.kept + 1u;
        walk.arcs = 0u;
      }
    }
    if (walk.kept == plan.max_steps) return end(walk.moves, EndReason::max_length);
    if (!take_step<Lanes>(input, slab, walk, corners, nothing_expected())) {
      return end(walk.moves + 1u, EndReason::no_direction);
    }
    walk.moves = walk.moves + 1u;
  }
}

// One group's share of tracking in a brick. Of a half that pauses, HalfRecord::points is the bits of its z.
CGL_HD_GENERIC
template <class Lanes, class Machine>
CGL_HD inline void run_halves_in_brick(const TrackingInput& input, const Slab& slab, const SeedList& seeds,
                                       const HalfList& list, const PageStore& store, const BrickWork& brick) {
  for (;;) {
    const std::uint32_t item = Machine::take(list.queue);
    if (item >= list.count) return;
    const std::uint32_t place = list.places[item];
    const HalfStart start = half_at(seeds, list, place);
    HalfWalk walk =
        begin_half(input.plan, start.seed, start.direction_index, start.half, start.position, start.ahead, nullptr);
    const PausedHalf before = brick.paused[place];
    PausingPoints<Lanes, Machine> points = PausingPoints<Lanes, Machine>::begin(store);
    if (before.is_paused != 0u) {
      walk.moves = before.moves;
      walk.arcs = before.arcs;
      walk.kept = before.kept;
      walk.position = before.position;
      walk.frame = before.frame;
      points = PausingPoints<Lanes, Machine>::resume(store, before);
    }
    HalfEnd end = walk_half_in_brick<Lanes>(input, slab, brick, walk, points);
    if (end.reason != unfinished_half && !points.finish(end.points)) end.reason = unfinished_half;
    // All lanes have read it.
    Lanes::barrier();
    brick.paused[place] = {end.reason == paused_half ? 1u : 0u,
                           walk.moves,
                           walk.arcs,
                           walk.kept,
                           points.paged.first,
                           points.paged.last,
                           walk.position,
                           walk.frame};
    const std::uint32_t z = numerics::float_bits(walk.position.z);
    list.halves[place] = {end.reason == paused_half ? z : end.points, end.steps, end.reason, points.paged.first};
    // No half after this one would find a page.
    if (end.reason == unfinished_half) return;
  }
}

}  // namespace cingulum::kernel
