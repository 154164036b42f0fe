// The amplitudes of a spherical function at the slots of the sphere: read from the record (SF) or sampled from its
// series (SH), cut at zero, weighted by the angle to the direction of travel, thresholded. Called by prob, det, closest
// and for initial directions; the bootstrap samples its series here as well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Cosines between a direction and the slots of a row, without the sign on hemispheres.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float row_cosines(const SphereView& sphere, std::uint32_t row, numerics::Vec3 direction) {
  const std::uint32_t at = numerics::lane_count * row;
  const typename Lanes::Float x = Lanes::multiply(Lanes::load(sphere.x + at), Lanes::broadcast(direction.x));
  const typename Lanes::Float y = Lanes::multiply(Lanes::load(sphere.y + at), Lanes::broadcast(direction.y));
  const typename Lanes::Float z = Lanes::multiply(Lanes::load(sphere.z + at), Lanes::broadcast(direction.z));
  const typename Lanes::Float cosine = Lanes::add(Lanes::add(x, y), z);
  return sphere.is_hemisphere != 0u ? Lanes::magnitude(cosine) : cosine;
}

CGL_HD inline numerics::Vec3 slot_direction(const SphereView& sphere, std::uint32_t slot) {
  return {sphere.x[slot], sphere.y[slot], sphere.z[slot]};
}

// The slot's direction, on hemispheres turned to the side of `ahead`.
CGL_HD inline numerics::Vec3 aligned_direction(const SphereView& sphere, std::uint32_t slot, numerics::Vec3 ahead) {
  const numerics::Vec3 direction = slot_direction(sphere, slot);
  return sphere.is_hemisphere != 0u && numerics::dot(direction, ahead) < 0.0f ? -direction : direction;
}

// The greatest, and the least, of the lanes.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float fold_greatest(const typename Lanes::Float& values) {
  typename Lanes::Float a = Lanes::greater_of(values, Lanes::template exchange<16>(values));
  a = Lanes::greater_of(a, Lanes::template exchange<8>(a));
  a = Lanes::greater_of(a, Lanes::template exchange<4>(a));
  a = Lanes::greater_of(a, Lanes::template exchange<2>(a));
  a = Lanes::greater_of(a, Lanes::template exchange<1>(a));
  return Lanes::get(a, 0u);
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float fold_least(const typename Lanes::Float& values) {
  typename Lanes::Float a = Lanes::lesser_of(values, Lanes::template exchange<16>(values));
  a = Lanes::lesser_of(a, Lanes::template exchange<8>(a));
  a = Lanes::lesser_of(a, Lanes::template exchange<4>(a));
  a = Lanes::lesser_of(a, Lanes::template exchange<2>(a));
  a = Lanes::lesser_of(a, Lanes::template exchange<1>(a));
  return Lanes::get(a, 0u);
}

// Calls take(row, values) for every row of slots with the series of `coefficients`; empty slots hold what the sum
// gives.
CGL_HD_GENERIC
template <class Lanes, class Take>
CGL_HD inline void sample_series(const HarmonicView& harmonics, std::uint32_t rows, const float* coefficients,
                                 Take&& take) {
  const std::size_t block = std::size_t{numerics::lane_count} * harmonics.coefficients;
  if (harmonics.mirror != 0u) {
    const numerics::MirrorClassSizes sizes{
        {harmonics.class_sizes[0], harmonics.class_sizes[1], harmonics.class_sizes[2], harmonics.class_sizes[3]}};
    for (std::uint32_t group = 0; group < rows / 4u; ++group) {
      const numerics::MirrorMembers<Lanes> members =
          numerics::mirror_sum<Lanes>(sizes, harmonics.matrix + block * group, coefficients);
      for (std::uint32_t q = 0; q < 4u; ++q) take(4u * group + q, members.member[q]);
    }
    return;
  }
  for (std::uint32_t row = 0; row < rows; ++row) {
    const float* matrix = harmonics.matrix + block * row;
    typename Lanes::Float sum = Lanes::multiply(Lanes::broadcast(coefficients[0]), Lanes::load(matrix));
    for (std::uint32_t j = 1; j < harmonics.coefficients; ++j) {
      sum = Lanes::add(sum, Lanes::multiply(Lanes::broadcast(coefficients[j]),
                                            Lanes::load(matrix + std::size_t{numerics::lane_count} * j)));
    }
    take(row, sum);
  }
}

// Calls take(row, values) for every row of slots with the function whose record lies in the slab.
CGL_HD_GENERIC
template <class Lanes, class Take>
CGL_HD inline void sample_record(const TrackingInput& input, const Slab& slab, Take&& take) {
  if (input.field.kind == field_of_harmonics) {
    sample_series<Lanes>(input.harmonics, input.sphere.rows, slab.record, take);
  } else {
    for (std::uint32_t row = 0; row < input.sphere.rows; ++row) {
      take(row, Lanes::load(slab.record + numerics::lane_count * row));
    }
  }
}

// The values of a row cut at zero; empty slots are zero.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float row_amplitudes(const SphereView& sphere, std::uint32_t row,
                                                   const typename Lanes::Float& raw) {
  const typename Lanes::Float zero = Lanes::broadcast(0.0f);
  return Lanes::select(Lanes::mask_of_bits(sphere.occupied[row]), Lanes::greater_of(raw, zero), zero);
}

// Amplitudes times (1 - w) + w |cos|.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float weight_by_angle(float angular_weight, const typename Lanes::Float& amplitudes,
                                                    const typename Lanes::Float& cosines) {
  return Lanes::multiply(amplitudes,
                         Lanes::add(Lanes::broadcast(1.0f - angular_weight),
                                    Lanes::multiply(Lanes::broadcast(angular_weight), Lanes::magnitude(cosines))));
}

// The amplitude below which none counts: the greater of the relative threshold times the largest and the absolute one.
CGL_HD inline float threshold_below(const TrackingPlan& plan, float greatest) {
  const float relative = plan.relative_threshold * greatest;
  return relative > plan.absolute_threshold ? relative : plan.absolute_threshold;
}

// `greatest` are the largest of each lane.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float amplitude_threshold(const TrackingPlan& plan, const typename Lanes::Float& greatest) {
  return threshold_below(plan, fold_greatest<Lanes>(greatest));
}

// Fills slab.values from the record that lies in the slab: amplitudes, weighted by the angle where a direction of
// travel is given and w is not 0. Returns amplitude_threshold.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline float fill_amplitudes(const TrackingInput& input, const Slab& slab, const numerics::Vec3* ahead) {
  const SphereView& sphere = input.sphere;
  const TrackingPlan& plan = input.plan;
  typename Lanes::Float best = Lanes::broadcast(0.0f);
  const bool weighted = ahead != nullptr && plan.angular_weight != 0.0f;
  Lanes::barrier();
  sample_record<Lanes>(input, slab, [&](std::uint32_t row, const typename Lanes::Float& raw) {
    typename Lanes::Float value = row_amplitudes<Lanes>(sphere, row, raw);
    if (weighted) {
      value = weight_by_angle<Lanes>(plan.angular_weight, value, row_cosines<Lanes>(sphere, row, *ahead));
    }
    best = Lanes::greater_of(value, best);
    Lanes::store(slab.values + numerics::lane_count * row, value);
  });
  Lanes::barrier();
  return amplitude_threshold<Lanes>(plan, best);
}

// Zeros in the place of amplitudes below the threshold.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline void apply_threshold(const SphereView& sphere, const Slab& slab, float threshold) {
  for (std::uint32_t row = 0; row < sphere.rows; ++row) {
    const std::uint32_t at = numerics::lane_count * row;
    const typename Lanes::Float value = Lanes::load(slab.values + at);
    Lanes::store(slab.values + at,
                 Lanes::select(Lanes::at_least(value, Lanes::broadcast(threshold)), value, Lanes::broadcast(0.0f)));
  }
  Lanes::barrier();
}

}  // namespace cingulum::kernel
