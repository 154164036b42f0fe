// prob: a direction drawn in proportion to its amplitude among those in the cone that pass the thresholds.
#pragma once

#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

// Stands before a function with a loop over rows of lanes: all that it calls is inlined. A call within the loop would
// send every register of lanes to memory and back. nvcc does so by itself.
#if defined(__CUDACC__)
#define CGL_WITHOUT_CALLS
#else
#define CGL_WITHOUT_CALLS __attribute__((flatten))
#endif

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

// The step where `sample(take)` calls take(row, values) for every row of slots. The threshold depends on all slots,
// the cone does not: the first pass keeps what lies in it.
CGL_HD_GENERIC
template <class Lanes, class Sample>
CGL_HD CGL_WITHOUT_CALLS inline Step prob_step_among(const TrackingInput& input, const Slab& slab,
                                                     const numerics::DrawCounter& counter, numerics::Vec3 ahead,
                                                     Sample&& sample) {
  const SphereView& sphere = input.sphere;
  const TrackingPlan& plan = input.plan;
  // The number is drawn early: nothing waits for it, and it waits for nothing.
  const float u = numerics::uniform_from_word(numerics::random_word(plan.key, counter, 0u));
  const typename Lanes::Float zero = Lanes::broadcast(0.0f);
  typename Lanes::Float best = zero;
  Lanes::barrier();
  sample([&](std::uint32_t row, const typename Lanes::Float& raw) {
    const typename Lanes::Float cosines = row_cosines<Lanes>(sphere, row, ahead);
    typename Lanes::Float value = row_amplitudes<Lanes>(sphere, row, raw);
    if (plan.angular_weight != 0.0f) value = weight_by_angle<Lanes>(plan.angular_weight, value, cosines);
    best = Lanes::greater_of(value, best);
    const typename Lanes::Mask in_cone = Lanes::at_least(cosines, Lanes::broadcast(plan.cos_max_angle));
    Lanes::store(slab.values + numerics::lane_count * row, Lanes::select(in_cone, value, zero));
  });
  Lanes::barrier();
  const typename Lanes::Float threshold = Lanes::broadcast(amplitude_threshold<Lanes>(plan, best));
  typename Lanes::Float sums = zero;
  for (std::uint32_t row = 0; row < sphere.rows; ++row) {
    float* const place = slab.values + numerics::lane_count * row;
    const typename Lanes::Float value = Lanes::load(place);
    const typename Lanes::Float weight = Lanes::select(Lanes::at_least(value, threshold), value, zero);
    sums = row == 0u ? weight : Lanes::add(sums, weight);
    Lanes::store(place, weight);
  }
  Lanes::barrier();
  const std::uint32_t slot = choose_stored<Lanes>(sums, slab.values, sphere.rows, u);
  if (slot == numerics::no_slot) return no_step();
  return step_along(aligned_direction(sphere, slot, ahead));
}

// One step of prob from the record that lies in the slab.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step prob_step(const TrackingInput& input, const Slab& slab, const numerics::DrawCounter& counter,
                             numerics::Vec3 ahead) {
  return prob_step_among<Lanes>(input, slab, counter, ahead,
                                [&](const auto& take) { sample_record<Lanes>(input, slab, take); });
}

// One step of prob from the records around the position, for fields of amplitudes: a channel is a slot, so each row is
// interpolated, asking for the expected records meanwhile, where it is needed and never lies in slab.record.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step prob_step_at(const TrackingInput& input, const Slab& slab, const Corners& corners,
                                const ExpectedRecords& expected, const numerics::DrawCounter& counter,
                                numerics::Vec3 ahead) {
  return prob_step_among<Lanes>(input, slab, counter, ahead, [&](const auto& take) {
    // Its own: for all the compiler knows, what is stored might change the others, and it would read them again.
    const Corners around = corners;
    for (std::uint32_t row = 0; row < input.sphere.rows; ++row) {
      const std::uint32_t at = numerics::lane_count * row;
      ask_for(expected, at);
      take(row, interpolate_row<Lanes>(around, at));
    }
  });
}

}  // namespace cingulum::kernel
