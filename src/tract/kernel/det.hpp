// det: the direction of the largest amplitude in the cone; for a series, moved from the vertex to the maximum itself.
#pragma once

#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/classify.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/rotation.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/series.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Newton's method on the sphere, derivatives by differences over this angle. Its square times the third derivative is
// the error that remains: below 0.05 degrees at degree 12 (getters.test.cpp measures it).
inline constexpr float refinement_reach = 0.03f;
inline constexpr int refinement_rounds = 3;
// The refinement goes no further than this in one round, and in all not beyond the cosine of 0.2 rad: half a cell of
// the coarsest sphere.
inline constexpr float refinement_step = 0.1f;
inline constexpr float refinement_cosine = 0.98f;

// The maximum of the series near `start`. Stays where it is when the surface is not a hill there.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline numerics::Vec3 refine_maximum(const HarmonicView& harmonics, const float* coefficients,
                                            numerics::Vec3 start) {
  using Float = typename Lanes::Float;
  numerics::Vec3 at = start;
  // Lanes 0 to 6 stand at (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1) of the tangent plane.
  const Float first = Lanes::select(
      Lanes::mask_of_bits(0b0100010u), Lanes::broadcast(refinement_reach),
      Lanes::select(Lanes::mask_of_bits(0b1000100u), Lanes::broadcast(-refinement_reach), Lanes::broadcast(0.0f)));
  const Float second = Lanes::select(
      Lanes::mask_of_bits(0b0101000u), Lanes::broadcast(refinement_reach),
      Lanes::select(Lanes::mask_of_bits(0b1010000u), Lanes::broadcast(-refinement_reach), Lanes::broadcast(0.0f)));
  for (int round = 0; round < refinement_rounds; ++round) {
    const numerics::Vec3 e1 = numerics::any_perpendicular(at);
    const numerics::Vec3 e2 = numerics::cross(at, e1);
    const auto component = [&](float a, float b, float c) {
      return Lanes::add(Lanes::add(Lanes::broadcast(a), Lanes::multiply(first, Lanes::broadcast(b))),
                        Lanes::multiply(second, Lanes::broadcast(c)));
    };
    Float x = component(at.x, e1.x, e2.x);
    Float y = component(at.y, e1.y, e2.y);
    Float z = component(at.z, e1.z, e2.z);
    const Float square = Lanes::add(Lanes::add(Lanes::multiply(x, x), Lanes::multiply(y, y)), Lanes::multiply(z, z));
    const Float scale = Lanes::divide(Lanes::broadcast(1.0f), Lanes::square_root(square));
    x = Lanes::multiply(x, scale);
    y = Lanes::multiply(y, scale);
    z = Lanes::multiply(z, scale);
    const Float f = series_at<Lanes>(
        harmonics, x, y, z, [&](int index) { return Lanes::broadcast(coefficients[harmonics.record_index[index]]); });
    const float f0 = Lanes::get(f, 0u);
    const float right = Lanes::get(f, 1u);
    const float left = Lanes::get(f, 2u);
    const float up = Lanes::get(f, 3u);
    const float down = Lanes::get(f, 4u);
    const float both = Lanes::get(f, 5u) + Lanes::get(f, 6u);
    const float g1 = 0.5f * (right - left);
    const float g2 = 0.5f * (up - down);
    const float h11 = (right + left) - 2.0f * f0;
    const float h22 = (up + down) - 2.0f * f0;
    const float h12 = 0.5f * (((both - (right + left)) - (up + down)) + 2.0f * f0);
    const float determinant = h11 * h22 - h12 * h12;
    if (!(h11 < 0.0f && h22 < 0.0f && determinant > 0.0f)) break;
    // In units of the reach.
    float s1 = (h12 * g2 - h22 * g1) / determinant;
    float s2 = (h12 * g1 - h11 * g2) / determinant;
    const float far = (s1 * s1 + s2 * s2) * (refinement_reach * refinement_reach);
    if (far > refinement_step * refinement_step) {
      const float shorter = refinement_step / numerics::root(far);
      s1 = s1 * shorter;
      s2 = s2 * shorter;
    }
    at = numerics::normalise((at + e1 * (s1 * refinement_reach)) + e2 * (s2 * refinement_reach));
  }
  return numerics::dot(at, start) >= refinement_cosine ? at : start;
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step det_step(const TrackingInput& input, const Slab& slab, numerics::Vec3 ahead) {
  const SphereView& sphere = input.sphere;
  const float threshold = fill_amplitudes<Lanes>(input, slab, &ahead);
  const numerics::SlotMaximum best =
      numerics::maximum<Lanes>(numerics::lane_count * sphere.rows, [&](std::uint32_t row) {
        const typename Lanes::Mask in_cone =
            Lanes::at_least(row_cosines<Lanes>(sphere, row, ahead), Lanes::broadcast(input.plan.cos_max_angle));
        return Lanes::select(in_cone, Lanes::load(slab.values + numerics::lane_count * row), Lanes::broadcast(0.0f));
      });
  if (!(best.value > 0.0f && best.value >= threshold)) return no_step();
  const numerics::Vec3 vertex = aligned_direction(sphere, best.slot, ahead);
  if (input.plan.refine == 0u || input.field.kind != field_of_harmonics) return step_along(vertex);
  // An even series is the same on both sides. A maximum that lies just outside of the cone is not taken.
  const numerics::Vec3 refined = refine_maximum<Lanes>(input.harmonics, slab.record, vertex);
  return step_along(numerics::dot(refined, ahead) >= input.plan.cos_max_angle ? refined : vertex);
}

}  // namespace cingulum::kernel
