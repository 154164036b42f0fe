// prob: a direction drawn in proportion to its amplitude among those in the cone that pass the thresholds.
#pragma once

#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// The choice by weight of numerics/choose.hpp, the weights lying in memory.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t choose_stored(const typename Lanes::Float& lane_sums, const float* weights,
                                          std::uint32_t rows, float u) {
  const numerics::LaneChoice choice = numerics::choose_lane<Lanes>(lane_sums, u);
  if (!choice.found) return numerics::no_slot;
  numerics::SlotSearch search{choice.reached, numerics::no_slot, numerics::no_slot};
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t slot = numerics::lane_count * row + choice.lane;
    search = numerics::consider_slot(search, slot, weights[slot], choice.threshold);
  }
  return search.chosen != numerics::no_slot ? search.chosen : search.last;
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step prob_step(const TrackingInput& input, const Slab& slab, const numerics::DrawCounter& counter,
                             numerics::Vec3 ahead) {
  const SphereView& sphere = input.sphere;
  // Early: nothing waits for it, and it waits for nothing.
  const float u = numerics::uniform_from_word(numerics::random_word(input.plan.key, counter, 0u));
  const float threshold = fill_amplitudes<Lanes>(input, slab, &ahead);
  const typename Lanes::Float zero = Lanes::broadcast(0.0f);
  typename Lanes::Float sums = zero;
  for (std::uint32_t row = 0; row < sphere.rows; ++row) {
    const std::uint32_t at = numerics::lane_count * row;
    const typename Lanes::Float value = Lanes::load(slab.values + at);
    const typename Lanes::Mask kept =
        Lanes::both(Lanes::at_least(row_cosines<Lanes>(sphere, row, ahead), Lanes::broadcast(input.plan.cos_max_angle)),
                    Lanes::at_least(value, Lanes::broadcast(threshold)));
    const typename Lanes::Float weight = Lanes::select(kept, value, zero);
    sums = row == 0u ? weight : Lanes::add(sums, weight);
    Lanes::store(slab.values + at, weight);
  }
  Lanes::barrier();
  const std::uint32_t slot = choose_stored<Lanes>(sums, slab.values, sphere.rows, u);
  if (slot == numerics::no_slot) return no_step();
  return step_along(aligned_direction(sphere, slot, ahead));
}

}  // namespace cingulum::kernel
