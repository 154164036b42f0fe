// The peaks of values on a sphere: slots that no neighbour exceeds and that exceed at least one; of these, those high
// enough above the least value; of these, by descending value, those far enough from every stronger one that was kept.
// The rule is DIPY's peak_directions; dmri/models/peaks.hpp finds the same for whole images. Called by
// boot, closest and for initial directions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/classify.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

CGL_HD inline bool is_local_maximum(const SphereView& sphere, const float* values, std::uint32_t slot) {
  const float own = values[slot];
  bool above_one = false;
  for (std::uint32_t column = 0; column < sphere.degree; ++column) {
    const float other = values[sphere.neighbours[std::size_t{numerics::lane_count} * sphere.rows * column + slot]];
    if (other > own) return false;
    above_one = above_one || own > other;
  }
  return above_one;
}

// Whether a direction is too near to one of the first `count` peaks.
CGL_HD inline bool is_near_a_peak(const SphereView& sphere, const std::uint32_t* peaks, std::uint32_t count,
                                  std::uint32_t slot, float cos_min_separation) {
  const numerics::Vec3 direction = slot_direction(sphere, slot);
  for (std::uint32_t i = 0; i < count; ++i) {
    const float cosine = numerics::dot(direction, slot_direction(sphere, peaks[i]));
    if ((sphere.is_hemisphere != 0u ? numerics::absolute(cosine) : cosine) > cos_min_separation) return true;
  }
  return false;
}

// The slots of slab.survivors, of which there are `count`, that are local maxima, in the same order; returns how many.
// For lanes that run together: a lane to each, and no branches, so that its reads do not wait for each other.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t keep_local_maxima(const SphereView& sphere, const Slab& slab, std::uint32_t count) {
  std::uint32_t kept = 0;
  for (std::uint32_t first = 0; first < count; first += numerics::lane_count) {
    const std::uint32_t left = count - first;
    const std::uint32_t present = left < numerics::lane_count ? (1u << left) - 1u : 0xffffffffu;
    const typename Lanes::Word slots = Lanes::gather(slab.survivors + first, Lanes::slots_of_row(0u));
    const std::uint32_t bits = Lanes::filter(present, [&](std::uint32_t lane) {
      const std::uint32_t slot = slab.survivors[first + lane];
      const float own = slab.values[slot];
      bool above_one = false;
      bool below_one = false;
      CGL_UNROLL
      for (std::uint32_t column = 0; column < sphere.degree; ++column) {
        const float other =
            slab.values[sphere.neighbours[std::size_t{numerics::lane_count} * sphere.rows * column + slot]];
        above_one = above_one | (own > other);
        below_one = below_one | (other > own);
      }
      return above_one && !below_one;
    });
    Lanes::barrier();
    Lanes::pack(bits, slots, slab.survivors + kept);
    kept += numerics::bit_count(bits);
    Lanes::barrier();
  }
  return kept;
}

// The last part of find_peaks for lanes that run together and have a survivor each at most: the strongest is a peak and
// takes those too near to it away, until none is left.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t strongest_apart(const TrackingInput& input, const Slab& slab, std::uint32_t survivors,
                                            std::uint32_t limit) {
  using Float = typename Lanes::Float;
  const SphereView& sphere = input.sphere;
  std::uint32_t left = survivors < numerics::lane_count ? (1u << survivors) - 1u : 0xffffffffu;
  const typename Lanes::Word slots =
      Lanes::select(Lanes::mask_of_bits(left), Lanes::gather(slab.survivors, Lanes::slots_of_row(0u)),
                    Lanes::broadcast(std::uint32_t{0}));
  const Float values = Lanes::gather(slab.values, slots);
  const Float x = Lanes::gather(sphere.x, slots);
  const Float y = Lanes::gather(sphere.y, slots);
  const Float z = Lanes::gather(sphere.z, slots);
  const Float separation = Lanes::broadcast(input.plan.cos_min_separation);
  const Float lowest = Lanes::broadcast(numerics::empty_slot_value);
  std::uint32_t count = 0;
  while (count < limit && left != 0u) {
    const float top = fold_greatest<Lanes>(Lanes::select(Lanes::mask_of_bits(left), values, lowest));
    const std::uint32_t strongest = Lanes::ballot(Lanes::equal(values, Lanes::broadcast(top))) & left;
    const std::uint32_t lane = numerics::lowest_set_bit(strongest);
    slab.peaks[count] = Lanes::get(slots, lane);
    ++count;
    const Float cosine = Lanes::add(Lanes::add(Lanes::multiply(x, Lanes::broadcast(Lanes::get(x, lane))),
                                               Lanes::multiply(y, Lanes::broadcast(Lanes::get(y, lane)))),
                                    Lanes::multiply(z, Lanes::broadcast(Lanes::get(z, lane))));
    const Float distance = sphere.is_hemisphere != 0u ? Lanes::magnitude(cosine) : cosine;
    left = left & ~(Lanes::ballot(Lanes::greater(distance, separation)) | (1u << lane));
  }
  Lanes::barrier();
  return count;
}

// Writes the slots of the peaks of slab.values to slab.peaks, at most `limit` (itself at most most_initial_directions),
// by descending value, then slot; returns their number. None where the largest value is negative.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t find_peaks(const TrackingInput& input, const Slab& slab, std::uint32_t limit) {
  const SphereView& sphere = input.sphere;
  const typename Lanes::Float lowest = Lanes::broadcast(numerics::empty_slot_value);
  const typename Lanes::Float highest = Lanes::broadcast(-numerics::empty_slot_value);
  typename Lanes::Float greatest = lowest;
  typename Lanes::Float least = highest;
  for (std::uint32_t row = 0; row < sphere.rows; ++row) {
    const typename Lanes::Float value = Lanes::load(slab.values + numerics::lane_count * row);
    const typename Lanes::Mask occupied = Lanes::mask_of_bits(sphere.occupied[row]);
    greatest = Lanes::greater_of(Lanes::select(occupied, value, lowest), greatest);
    least = Lanes::lesser_of(Lanes::select(occupied, value, highest), least);
  }
  const float top = fold_greatest<Lanes>(greatest);
  if (!(top >= 0.0f)) return 0u;
  const float bottom = fold_least<Lanes>(least);
  const float base = bottom > 0.0f ? bottom : 0.0f;
  // The largest value is itself a peak or on the edge of a plateau that is: no need to find the peaks first.
  const float needed = input.plan.relative_peak_threshold * (top - base);
  std::uint32_t survivors = 0;
  for (std::uint32_t row = 0; row < sphere.rows; ++row) {
    const typename Lanes::Float value = Lanes::load(slab.values + numerics::lane_count * row);
    const typename Lanes::Mask high =
        Lanes::at_least(Lanes::subtract(value, Lanes::broadcast(base)), Lanes::broadcast(needed));
    std::uint32_t bits = Lanes::ballot(high) & sphere.occupied[row];
    if constexpr (Lanes::serial) {
      bits = Lanes::filter(bits, [&](std::uint32_t lane) {
        return is_local_maximum(sphere, slab.values, numerics::lane_count * row + lane);
      });
      for (; bits != 0u; bits &= bits - 1u) {
        slab.survivors[survivors] = numerics::lane_count * row + numerics::lowest_set_bit(bits);
        ++survivors;
      }
    } else {
      Lanes::pack(bits, Lanes::slots_of_row(row), slab.survivors + survivors);
      survivors += numerics::bit_count(bits);
    }
  }
  Lanes::barrier();
  if constexpr (!Lanes::serial) {
    survivors = keep_local_maxima<Lanes>(sphere, slab, survivors);
    if (survivors <= numerics::lane_count) return strongest_apart<Lanes>(input, slab, survivors, limit);
  }
  std::uint32_t count = 0;
  while (count < limit) {
    std::uint32_t best = numerics::no_slot;
    float best_value = numerics::empty_slot_value;
    for (std::uint32_t i = 0; i < survivors; ++i) {
      const std::uint32_t slot = slab.survivors[i];
      if (slot == numerics::no_slot || !(slab.values[slot] > best_value)) continue;
      best = i;
      best_value = slab.values[slot];
    }
    if (best == numerics::no_slot) break;
    const std::uint32_t slot = slab.survivors[best];
    Lanes::barrier();
    slab.survivors[best] = numerics::no_slot;
    Lanes::barrier();
    if (is_near_a_peak(sphere, slab.peaks, count, slot, input.plan.cos_min_separation)) continue;
    slab.peaks[count] = slot;
    Lanes::barrier();
    ++count;
  }
  return count;
}

}  // namespace cingulum::kernel
