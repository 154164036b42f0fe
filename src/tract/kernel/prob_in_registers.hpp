// prob for lanes that run together (a warp) when the rows of the sphere are known to the compiler, without angular
// weight: the amplitudes and the sphere stay in registers from the gather to the choice, so that nothing but the
// coefficients of a series goes through the slab. Every product, sum and comparison is that of sample.hpp,
// amplitudes.hpp and prob.hpp, so the bits are, too. Called by cuda/amplitude_kernels.cu and cuda/series_kernels.cu;
// the tests of paged_tracker.cpp run it with the lanes of a host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// A half sphere, and the sizes of the cosines between a direction and its slots.
template <class Lanes, std::uint32_t rows>
struct HeldVertices {
  using Float = typename Lanes::Float;
  Float x[rows], y[rows], z[rows];

  CGL_HD_GENERIC
  static CGL_HD HeldVertices begin(const SphereView& sphere) {
    HeldVertices held{};
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t at = numerics::lane_count * row;
      held.x[row] = Lanes::load(sphere.x + at);
      held.y[row] = Lanes::load(sphere.y + at);
      held.z[row] = Lanes::load(sphere.z + at);
    }
    return held;
  }

  CGL_HD_GENERIC
  CGL_HD void cosines(numerics::Vec3 direction, Float (&cosine)[rows]) const {
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      cosine[row] = Lanes::magnitude(Lanes::add(Lanes::add(Lanes::multiply(x[row], Lanes::broadcast(direction.x)),
                                                           Lanes::multiply(y[row], Lanes::broadcast(direction.y))),
                                                Lanes::multiply(z[row], Lanes::broadcast(direction.z))));
    }
  }
};

// Of a mirror-symmetric sphere the first members of the orbits: the products of the others differ by signs alone, and
// those of a member that is stored as its opposite by the sign of the sum, which the size does not have. Empty slots
// get the cosines of the members that would be there.
template <class Lanes, std::uint32_t groups>
struct HeldOrbits {
  using Float = typename Lanes::Float;
  Float x[groups], y[groups], z[groups];

  CGL_HD_GENERIC
  static CGL_HD HeldOrbits begin(const SphereView& sphere) {
    HeldOrbits held{};
    CGL_UNROLL
    for (std::uint32_t group = 0; group < groups; ++group) {
      const std::uint32_t at = 4u * numerics::lane_count * group;
      held.x[group] = Lanes::load(sphere.x + at);
      held.y[group] = Lanes::load(sphere.y + at);
      held.z[group] = Lanes::load(sphere.z + at);
    }
    return held;
  }

  CGL_HD_GENERIC
  CGL_HD void cosines(numerics::Vec3 direction, Float (&cosine)[4u * groups]) const {
    CGL_UNROLL
    for (std::uint32_t group = 0; group < groups; ++group) {
      const Float a = Lanes::multiply(x[group], Lanes::broadcast(direction.x));
      const Float b = Lanes::multiply(y[group], Lanes::broadcast(direction.y));
      const Float c = Lanes::multiply(z[group], Lanes::broadcast(direction.z));
      const Float sum = Lanes::add(a, b);
      cosine[4u * group] = Lanes::magnitude(Lanes::add(sum, c));
      cosine[4u * group + 1u] = Lanes::magnitude(Lanes::subtract(sum, c));
      cosine[4u * group + 2u] = Lanes::magnitude(Lanes::add(Lanes::subtract(a, b), c));
      cosine[4u * group + 3u] = Lanes::magnitude(Lanes::add(Lanes::subtract(b, a), c));
    }
  }
};

// The sphere, and the amplitudes where the streamline stands, cut at zero.
template <class Lanes, std::uint32_t rows, class Vertices>
struct HeldAmplitudes {
  Vertices vertices;
  typename Lanes::Mask occupied[rows];
  typename Lanes::Float value[rows];
  float greatest;

  CGL_HD_GENERIC
  static CGL_HD HeldAmplitudes begin(const TrackingInput& input) {
    HeldAmplitudes held{};
    held.vertices = Vertices::begin(input.sphere);
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      held.occupied[row] = Lanes::mask_of_bits(input.sphere.occupied[row]);
    }
    return held;
  }

  // From the values as they were read or sampled.
  CGL_HD_GENERIC
  CGL_HD void take(const typename Lanes::Float (&raw)[rows]) {
    const typename Lanes::Float zero = Lanes::broadcast(0.0f);
    typename Lanes::Float best = zero;
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      value[row] = Lanes::select(occupied[row], Lanes::greater_of(raw[row], zero), zero);
      best = Lanes::greater_of(value[row], best);
    }
    greatest = fold_greatest<Lanes>(best);
  }

  // prob.hpp's prob_step from here on.
  CGL_HD_GENERIC
  CGL_HD Step step(const TrackingInput& input, const numerics::DrawCounter& counter, numerics::Vec3 ahead) const {
    using Float = typename Lanes::Float;
    using Word = typename Lanes::Word;
    const float u = numerics::uniform_from_word(numerics::random_word(input.plan.key, counter, 0u));
    const float relative = input.plan.relative_threshold * greatest;
    const Float threshold =
        Lanes::broadcast(relative > input.plan.absolute_threshold ? relative : input.plan.absolute_threshold);
    const Float zero = Lanes::broadcast(0.0f);
    const Float least_cosine = Lanes::broadcast(input.plan.cos_max_angle);
    Float cosine[rows];
    vertices.cosines(ahead, cosine);
    Float weight[rows];
    Float sums = zero;
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      const typename Lanes::Mask kept =
          Lanes::both(Lanes::at_least(cosine[row], least_cosine), Lanes::at_least(value[row], threshold));
      weight[row] = Lanes::select(kept, value[row], zero);
      sums = row == 0u ? weight[row] : Lanes::add(sums, weight[row]);
    }
    const numerics::LaneChoice choice = numerics::choose_lane<Lanes>(sums, u);
    if (!choice.found) return no_step();
    // Every lane searches its own rows from where the chosen lane begins; only what that one finds is asked for.
    const Word none = Lanes::broadcast(numerics::no_slot);
    Word chosen = none;
    Word last = none;
    Float reached = Lanes::broadcast(choice.reached);
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      const Word own = Lanes::broadcast(row);
      const typename Lanes::Mask positive = Lanes::greater(weight[row], zero);
      reached = Lanes::add(reached, weight[row]);
      // Rows ascend: the least that passed is the first.
      const Word passed =
          Lanes::select(Lanes::both(positive, Lanes::greater(reached, Lanes::broadcast(choice.threshold))), own, none);
      chosen = Lanes::select(Lanes::less(passed, chosen), passed, chosen);
      last = Lanes::select(positive, own, last);
    }
    const std::uint32_t row = Lanes::get(Lanes::select(Lanes::less(chosen, none), chosen, last), choice.lane);
    if (row == numerics::no_slot) return no_step();
    return step_along(aligned_direction(input.sphere, numerics::lane_count * row + choice.lane, ahead));
  }
};

// On amplitudes of `directions` directions, on half a sphere.
template <std::uint32_t directions>
struct ProbOnAmplitudes {
  static constexpr std::uint32_t rows = numerics::row_count(directions);
  // The stopping value stands in the last row, too.
  static_assert(directions % numerics::lane_count != 0u);
  template <class Lanes>
  using Held = HeldAmplitudes<Lanes, rows, HeldVertices<Lanes, rows>>;

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab&, numerics::Vec3 position, Held<Lanes>& held) {
    const Corners corners = corners_at(input.field, input.plan.size, position);
    typename Lanes::Float raw[rows];
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t at = numerics::lane_count * row;
      raw[row] = Lanes::multiply(Lanes::broadcast(corners.weight[0]), Lanes::load(corners.record[0] + at));
      CGL_UNROLL
      for (int corner = 1; corner < 8; ++corner) {
        raw[row] = Lanes::add(raw[row], Lanes::multiply(Lanes::broadcast(corners.weight[corner]),
                                                        Lanes::load(corners.record[corner] + at)));
      }
    }
    held.take(raw);
    return Lanes::get(raw[rows - 1u], directions % numerics::lane_count);
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab&, const Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3, numerics::Vec3 ahead) {
    return held.step(input, counter, ahead);
  }
};

// From a series on a mirror-symmetric sphere of 4 * `groups` rows. A coefficient is read once for all groups.
template <int degree, std::uint32_t groups>
struct ProbOnMirroredSeries {
  static constexpr std::uint32_t count = static_cast<std::uint32_t>(numerics::coefficient_count(degree, false));
  static constexpr std::uint32_t rows = 4u * groups;
  template <class Lanes>
  using Held = HeldAmplitudes<Lanes, rows, HeldOrbits<Lanes, groups>>;

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    using Float = typename Lanes::Float;
    const float stop_value = read_record<Lanes>(input, slab, position);
    if (!(stop_value > input.plan.stop_threshold)) return stop_value;
    constexpr numerics::MirrorClassSizes sizes = numerics::mirror_class_sizes(degree);
    Float classes[groups][4];
    std::uint32_t j = 0;
    CGL_UNROLL
    for (std::uint32_t of_class = 0; of_class < 4u; ++of_class) {
      CGL_UNROLL
      for (std::uint32_t i = 0; i < sizes.of_class[of_class]; ++i, ++j) {
        const Float coefficient = Lanes::broadcast(slab.record[j]);
        CGL_UNROLL
        for (std::uint32_t group = 0; group < groups; ++group) {
          const float* const entry = input.harmonics.matrix + std::size_t{numerics::lane_count} * (count * group + j);
          const Float term = Lanes::multiply(coefficient, Lanes::load(entry));
          classes[group][of_class] = i == 0u ? term : Lanes::add(classes[group][of_class], term);
        }
      }
    }
    Float raw[rows];
    CGL_UNROLL
    for (std::uint32_t group = 0; group < groups; ++group) {
      const numerics::MirrorMembers<Lanes> members = numerics::mirror_members<Lanes>(classes[group]);
      CGL_UNROLL
      for (std::uint32_t q = 0; q < 4u; ++q) raw[4u * group + q] = members.member[q];
    }
    held.take(raw);
    return stop_value;
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab&, const Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3, numerics::Vec3 ahead) {
    return held.step(input, counter, ahead);
  }
};

}  // namespace cingulum::kernel
