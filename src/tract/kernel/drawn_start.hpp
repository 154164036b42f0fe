// The initial direction of a seed drawn in proportion to the amplitudes there, instead of its peaks: one streamline per
// seed, as Trekker and iFOD have it. Called by find_initial_directions of track.hpp; mirrored by
// webgpu/initial_directions.wgsl.
#pragma once

#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/prob.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Word 0 of the same counter turns the frame of ptt (initial_frame).
inline constexpr std::uint32_t start_draw = 1;

// The slot among slab.values, which are thresholded; no_slot where all are zero.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t draw_start_slot(const TrackingInput& input, const Slab& slab, std::uint32_t seed) {
  const numerics::DrawCounter counter{seed, numerics::DrawPurpose::initial_direction, 0u, 0u, 0u, 0u};
  const float u = numerics::uniform_from_word(numerics::random_word(input.plan.key, counter, start_draw));
  typename Lanes::Float sums = Lanes::load(slab.values);
  for (std::uint32_t row = 1; row < input.sphere.rows; ++row) {
    sums = Lanes::add(sums, Lanes::load(slab.values + numerics::lane_count * row));
  }
  return choose_stored<Lanes>(sums, slab.values, input.sphere.rows, u);
}

}  // namespace cingulum::kernel
