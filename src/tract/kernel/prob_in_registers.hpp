// prob for lanes that run together (a warp) when the rows of the sphere are known to the compiler, without angular
// weight: the amplitudes and the sphere stay in registers from the gather to the choice; in the slab lie the records
// around the point (kept_corners.hpp) or the coefficients of a series. Every product and every sum is that of
// sample.hpp, amplitudes.hpp and prob.hpp, and every comparison decides as theirs, so the bits are theirs, too. Called
// by cuda/amplitude_kernels.cu and cuda/series_kernels.cu.
//
// Equal to: prob_step of prob.hpp, as AnySteps takes it. Gain on an H200, in M points/s: 1067 on amplitudes (with kept
// corners) and 759 from series of degree 8, where the kernels for all shapes make 362 and 275. Held by:
// PagedTracker.gives_the_bits_of_the_cpu_on_random_plans (with the lanes of a host),
// DeviceTracking.default_shapes_have_the_bits_of_the_cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/choose.hpp"
#include "numerics/lane_elementary.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/kept_corners.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Directions of `count` rows of a sphere, of every `stride`th.
CGL_HD_GENERIC
template <class Lanes, class Held, std::uint32_t count, std::uint32_t stride>
CGL_HD inline Held held_directions(const SphereView& sphere) {
  Held held{};
  CGL_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = stride * numerics::lane_count * i;
    held.x[i] = Lanes::load(sphere.x + at);
    held.y[i] = Lanes::load(sphere.y + at);
    held.z[i] = Lanes::load(sphere.z + at);
  }
  return held;
}

// A hemisphere, and the sizes of the cosines between a direction and its slots.
template <class Lanes, std::uint32_t rows>
struct HeldVertices {
  using Float = typename Lanes::Float;
  Float x[rows], y[rows], z[rows];

  CGL_HD_GENERIC
  static CGL_HD HeldVertices begin(const SphereView& sphere) {
    return held_directions<Lanes, HeldVertices, rows, 1u>(sphere);
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

// The first members of the orbits of a mirror-symmetric sphere: the products of the others differ by signs alone, and
// those of a member that is stored as its opposite by the sign of the sum, which its magnitude does not have. Empty
// slots get the cosines of the members that would be there.
template <class Lanes, std::uint32_t groups>
struct HeldOrbits {
  using Float = typename Lanes::Float;
  Float x[groups], y[groups], z[groups];

  CGL_HD_GENERIC
  static CGL_HD HeldOrbits begin(const SphereView& sphere) {
    return held_directions<Lanes, HeldOrbits, groups, 4u>(sphere);
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

// The sphere, the amplitudes where the streamline stands, and the draws of 32 steps.
template <class Lanes, std::uint32_t rows, class Vertices>
struct HeldAmplitudes {
  using Float = typename Lanes::Float;
  using Word = typename Lanes::Word;
  Vertices vertices;
  Float value[rows];  // not cut at zero: below every threshold is below
  float greatest;     // but at least zero
  Word draws;         // lane l has the draw of step l after the last whole 32

  CGL_HD_GENERIC
  static CGL_HD HeldAmplitudes begin(const TrackingInput& input) {
    HeldAmplitudes held{};
    held.vertices = Vertices::begin(input.sphere);
    return held;
  }

  // Empty slots hold zero.
  CGL_HD_GENERIC
  CGL_HD void take(const Float (&values)[rows]) {
    Word best = Lanes::broadcast(0u);
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      value[row] = values[row];
      best = Lanes::greater_integer(best, Lanes::bits_of(values[row]));
    }
    greatest = numerics::bits_float(Lanes::greatest_integer(best));
  }

  CGL_HD_GENERIC
  CGL_HD float draw(numerics::PhiloxKey key, const numerics::DrawCounter& counter) {
    const std::uint32_t lane = counter.step % numerics::lane_count;
    if (lane == 0u) {
      const numerics::PhiloxBlock words = numerics::counter_words(counter, 0u);
      draws =
          numerics::lane_philox4x32_10<Lanes>(
              {{Lanes::broadcast(words.word[0]), Lanes::broadcast(words.word[1]),
                Lanes::add(Lanes::broadcast(words.word[2]), Lanes::slots_of_row(0u)), Lanes::broadcast(words.word[3])}},
              key.low, key.high)
              .word[0];
    }
    return numerics::uniform_from_word(Lanes::get(draws, lane));
  }

  // prob.hpp's prob_step from here on.
  CGL_HD_GENERIC
  CGL_HD Step step(const TrackingInput& input, const numerics::DrawCounter& counter, numerics::Vec3 ahead) {
    const float u = draw(input.plan.key, counter);
    const float relative = input.plan.relative_threshold * greatest;
    const float given = relative > input.plan.absolute_threshold ? relative : input.plan.absolute_threshold;
    // What is kept is above zero: amplitudes that are zero weigh nothing either way.
    constexpr float least_positive = 0x1p-149f;
    const Float threshold = Lanes::broadcast(given > least_positive ? given : least_positive);
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
    // Every lane searches its own rows from where the chosen lane begins; only what that one finds is asked for. A
    // difference below zero has passed, and so have those after it: the first row is the highest bit.
    Word passed_rows = Lanes::broadcast(0u);
    Float reached = Lanes::broadcast(choice.reached);
    CGL_UNROLL
    for (std::uint32_t row = 0; row < rows; ++row) {
      reached = Lanes::add(reached, weight[row]);
      passed_rows = Lanes::append_sign(passed_rows, Lanes::subtract(Lanes::broadcast(choice.threshold), reached));
    }
    const std::uint32_t passed = Lanes::get(passed_rows, choice.lane);
    std::uint32_t row = rows - 1u - numerics::highest_set_bit(passed | 1u);
    // The row that passed has a weight, or there was nothing to pass any more.
    if (passed == 0u || choice.reached > choice.threshold) {
      Word weighing_rows = Lanes::broadcast(0u);
      CGL_UNROLL
      for (std::uint32_t i = 0; i < rows; ++i) {
        weighing_rows = Lanes::append_sign(weighing_rows, Lanes::subtract(zero, weight[i]));
      }
      const std::uint32_t weighing = Lanes::get(weighing_rows, choice.lane);
      row = rows - 1u - (passed == 0u ? numerics::lowest_set_bit(weighing) : numerics::highest_set_bit(weighing));
    }
    return step_along(aligned_direction(input.sphere, numerics::lane_count * row + choice.lane, ahead));
  }
};

// Steps of prob on amplitudes of `directions` directions, on half a sphere, in records of `stride` numbers.
template <std::uint32_t directions, std::uint32_t stride>
struct ProbOnAmplitudes {
  static constexpr std::uint32_t rows = numerics::row_count(directions);
  // The stopping value stands in the last row, too.
  static_assert(directions % numerics::lane_count != 0u);
  template <class Lanes>
  struct Held : HeldAmplitudes<Lanes, rows, HeldVertices<Lanes, rows>> {
    KeptCorners<Lanes, stride> corners;

    CGL_HD_GENERIC
    static CGL_HD Held begin(const TrackingInput& input) {
      return {HeldAmplitudes<Lanes, rows, HeldVertices<Lanes, rows>>::begin(input),
              KeptCorners<Lanes, stride>::begin()};
    }
  };

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    typename Lanes::Float values[rows];
    held.corners.interpolate(input, position, slab.record, values);
    constexpr std::uint32_t of_last_row = directions % numerics::lane_count;
    const float stop_value = Lanes::get(values[rows - 1u], of_last_row);
    values[rows - 1u] =
        Lanes::select(Lanes::mask_of_bits((1u << of_last_row) - 1u), values[rows - 1u], Lanes::broadcast(0.0f));
    held.take(values);
    return stop_value;
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab&, Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3, numerics::Vec3 ahead) {
    return held.step(input, counter, ahead);
  }
};

// Steps of prob from a series, in records of `stride` numbers, on a mirror-symmetric sphere of 4 * `groups` rows. A
// coefficient is read once for all groups. The slab has the interpolated record and behind it the records around the
// point.
template <int degree, std::uint32_t groups, std::uint32_t stride>
struct ProbOnMirroredSeries {
  static constexpr std::uint32_t count = static_cast<std::uint32_t>(numerics::coefficient_count(degree, false));
  static constexpr std::uint32_t rows = 4u * groups;
  template <class Lanes>
  struct Held : HeldAmplitudes<Lanes, rows, HeldOrbits<Lanes, groups>> {
    KeptCorners<Lanes, stride> corners;
    typename Lanes::Mask occupied[rows];

    CGL_HD_GENERIC
    static CGL_HD Held begin(const TrackingInput& input) {
      Held held{HeldAmplitudes<Lanes, rows, HeldOrbits<Lanes, groups>>::begin(input),
                KeptCorners<Lanes, stride>::begin(),
                {}};
      CGL_UNROLL
      for (std::uint32_t row = 0; row < rows; ++row) {
        held.occupied[row] = Lanes::mask_of_bits(input.sphere.occupied[row]);
      }
      return held;
    }
  };

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    using Float = typename Lanes::Float;
    constexpr std::uint32_t record_rows = numerics::row_count(count + 1u);
    Float record[record_rows];
    held.corners.interpolate(input, position, slab.record + numerics::lane_count * record_rows, record);
    const float stop_value = Lanes::get(record[count / numerics::lane_count], count % numerics::lane_count);
    if (input.plan.stop_nearest == 0u && !(stop_value > input.plan.stop_threshold)) return stop_value;
    Lanes::barrier();
    CGL_UNROLL
    for (std::uint32_t row = 0; row < record_rows; ++row) {
      Lanes::store(slab.record + numerics::lane_count * row, record[row]);
    }
    Lanes::barrier();
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
    Float values[rows];
    CGL_UNROLL
    for (std::uint32_t group = 0; group < groups; ++group) {
      const numerics::MirrorMembers<Lanes> members = numerics::mirror_members<Lanes>(classes[group]);
      CGL_UNROLL
      for (std::uint32_t q = 0; q < 4u; ++q) {
        const std::uint32_t row = 4u * group + q;
        values[row] = Lanes::select(held.occupied[row], members.member[q], Lanes::broadcast(0.0f));
      }
    }
    held.take(values);
    return stop_value;
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab&, Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3, numerics::Vec3 ahead) {
    return held.step(input, counter, ahead);
  }
};

}  // namespace cingulum::kernel
