// boot for lanes that run together (a warp) when the degree is known to the compiler and the sphere is
// mirror-symmetric: the coefficients, the signal and the sums of the fit stay in registers, and one transposing
// butterfly adds up all sums where each by itself would take five exchanges. Every product and every pair of additions
// is that of boot.hpp, so the bits are, too. Called by cuda/boot_kernels.cu. At the seed boot.hpp does the work.
//
// Equal to: boot_step of boot.hpp, as AnySteps takes it. Gain on an H200, in M points/s: 299, where the kernel for all
// shapes makes 103 (CINGULUM_TEST_TRACK_KERNELS=any). Held by: PagedTracker.gives_the_bits_of_the_cpu_on_random_plans
// (with the lanes of a host), DeviceTracking.default_shapes_have_the_bits_of_the_cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lane_elementary.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "tract/kernel/boot.hpp"
#include "tract/kernel/steps.hpp"
#include "tract/kernel/unroll.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// l / 2 of the coefficients in the order of the mirror classes.
template <std::uint32_t count>
struct MirrorLevels {
  std::uint32_t of[count];
};

template <int degree>
CGL_HD constexpr auto mirror_levels() {
  constexpr int count = numerics::coefficient_count(degree, false);
  MirrorLevels<static_cast<std::uint32_t>(count)> levels{};
  int sorted = 0;
  for (std::uint32_t of_class = 0; of_class < 4u; ++of_class) {
    for (int index = 0; index < count; ++index) {
      const numerics::HarmonicIndex harmonic = numerics::harmonic_of_coefficient(index, false);
      const numerics::MirrorClass is =
          numerics::mirror_class(numerics::HarmonicConvention::descoteaux07_legacy, harmonic.m);
      if (static_cast<std::uint32_t>(is) == of_class) levels.of[sorted++] = static_cast<std::uint32_t>(harmonic.l / 2);
    }
  }
  return levels;
}

// The sums over the lanes of 16 numbers: lane l ends with the sum of number l / 2.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float sums_of_16(typename Lanes::Float (&numbers)[16]) {
  using Float = typename Lanes::Float;
  const auto halve = [](const typename Lanes::Mask& upper, Float& low, const Float& high, auto&& exchange) {
    const Float given = Lanes::select(upper, low, high);
    low = Lanes::add(Lanes::select(upper, high, low), exchange(given));
  };
  const typename Lanes::Mask of_16 = Lanes::mask_of_bits(0xffff0000u);
  CGL_UNROLL
  for (int i = 0; i < 8; ++i) {
    halve(of_16, numbers[i], numbers[i + 8], [](const Float& a) { return Lanes::template exchange<16>(a); });
  }
  const typename Lanes::Mask of_8 = Lanes::mask_of_bits(0xff00ff00u);
  CGL_UNROLL
  for (int i = 0; i < 4; ++i) {
    halve(of_8, numbers[i], numbers[i + 4], [](const Float& a) { return Lanes::template exchange<8>(a); });
  }
  const typename Lanes::Mask of_4 = Lanes::mask_of_bits(0xf0f0f0f0u);
  CGL_UNROLL
  for (int i = 0; i < 2; ++i) {
    halve(of_4, numbers[i], numbers[i + 2], [](const Float& a) { return Lanes::template exchange<4>(a); });
  }
  halve(Lanes::mask_of_bits(0xccccccccu), numbers[0], numbers[1],
        [](const Float& a) { return Lanes::template exchange<2>(a); });
  return Lanes::add(numbers[0], Lanes::template exchange<1>(numbers[0]));
}

template <int degree>
struct BootInRegisters : ReadingSteps {
  static constexpr std::uint32_t count = static_cast<std::uint32_t>(numerics::coefficient_count(degree, false));
  static constexpr std::uint32_t levels = static_cast<std::uint32_t>(degree / 2 + 1);
  static_assert(count <= 16u);

  // boot.hpp's fit_odf of a bootstrap sample.
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void fit_sample(const TrackingInput& input, const Slab& slab, const numerics::DrawCounter& counter) {
    using Float = typename Lanes::Float;
    constexpr auto level_of = mirror_levels<degree>();
    const BootstrapView& boot = input.bootstrap;
    const float* const residuals = slab.record + count + 1u;
    const float least = input.plan.boot_min_signal;
    const float stored_b0 = slab.record[count];
    const Float b0 = Lanes::broadcast(stored_b0 > least ? stored_b0 : least);
    const Float zero = Lanes::broadcast(0.0f);
    const typename Lanes::Word end = Lanes::broadcast(boot.gradients);
    const std::uint32_t level_size = numerics::lane_count * boot.rows;
    const bool csa = boot.csa != 0u;
    Float coefficients[count];
    Float sums[16];
    CGL_UNROLL
    for (std::uint32_t j = 0; j < count; ++j) coefficients[j] = Lanes::broadcast(slab.record[j]);
    CGL_UNROLL
    for (std::uint32_t j = 0; j < 16u; ++j) sums[j] = zero;
    numerics::LaneBlocks<Lanes> blocks{};
    for (std::uint32_t row = 0; row < boot.rows; ++row) {
      const float* const basis = boot.basis + std::size_t{numerics::lane_count} * count * row;
      Float signal = Lanes::multiply(coefficients[0], Lanes::load(basis));
      CGL_UNROLL
      for (std::uint32_t j = 1; j < count; ++j) {
        signal = Lanes::add(
            signal, Lanes::multiply(coefficients[j], Lanes::load(basis + std::size_t{numerics::lane_count} * j)));
      }
      if (row % numerics::bootstrap_picks_per_block == 0u) {
        const numerics::PhiloxBlock words = numerics::counter_words(counter, 0u);
        const std::uint32_t first = numerics::lane_count * (row / numerics::bootstrap_picks_per_block);
        blocks = numerics::lane_philox4x32_10<Lanes>(
            {{Lanes::broadcast(words.word[0]), Lanes::broadcast(words.word[1]), Lanes::broadcast(words.word[2]),
              Lanes::add(Lanes::broadcast(words.word[3] + first), Lanes::slots_of_row(0u))}},
            input.plan.key.low, input.plan.key.high);
      }
      signal = Lanes::add(signal, Lanes::gather(residuals, picks_of_row<Lanes>(blocks, row, boot.gradients)));
      const Float s = Lanes::divide(Lanes::greater_of(signal, Lanes::broadcast(least)), b0);
      const typename Lanes::Mask exists = Lanes::less(Lanes::slots_of_row(row), end);
      Float u[levels];
      if (csa) {
        const Float limited =
            Lanes::lesser_of(Lanes::greater_of(s, Lanes::broadcast(0.001f)), Lanes::broadcast(0.999f));
        const Float inner = numerics::lane_logarithm<Lanes>(limited);
        const Float outer = Lanes::select(exists, numerics::lane_logarithm<Lanes>(Lanes::subtract(zero, inner)), zero);
        CGL_UNROLL
        for (std::uint32_t level = 0; level < levels; ++level) u[level] = outer;
      } else {
        const Float log = numerics::lane_logarithm<Lanes>(s);
        const Float g =
            Lanes::multiply(Lanes::multiply(Lanes::subtract(zero, log), Lanes::add(Lanes::broadcast(1.5f), log)), s);
        const Float four_g = Lanes::multiply(Lanes::broadcast(4.0f), g);
        CGL_UNROLL
        for (std::uint32_t level = 0; level < levels; ++level) {
          const Float factor = Lanes::broadcast(static_cast<float>(2u * level * (2u * level + 1u)));
          u[level] = Lanes::select(exists, Lanes::add(four_g, Lanes::multiply(factor, s)), zero);
        }
      }
      const float* const fit = boot.fit + numerics::lane_count * row;
      CGL_UNROLL
      for (std::uint32_t j = 0; j < count; ++j) {
        const Float term = Lanes::multiply(Lanes::load(fit + std::size_t{level_size} * j), u[level_of.of[j]]);
        sums[j] = row == 0u ? term : Lanes::add(sums[j], term);
      }
    }
    const Float all = sums_of_16<Lanes>(sums);
    // Brings the sums from two lanes each to one lane after the other; the place of the signal is free.
    Lanes::barrier();
    Lanes::store(slab.signal, all);
    Lanes::barrier();
    const typename Lanes::Word from = Lanes::bits_and(Lanes::template shift_left<1>(Lanes::slots_of_row(0u)),
                                                      Lanes::broadcast(numerics::lane_count - 1u));
    Lanes::store(slab.coefficients, Lanes::gather(slab.signal, from));
    Lanes::barrier();
    if (csa) {
      slab.coefficients[0] = 0x1.20dd76p-2f;  // 1 / (2 sqrt(pi))
      Lanes::barrier();
    }
  }

  // The series of slab.coefficients on the sphere, into slab.values.
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD void sample(const TrackingInput& input, const Slab& slab) {
    using Float = typename Lanes::Float;
    constexpr numerics::MirrorClassSizes sizes = numerics::mirror_class_sizes(degree);
    Float coefficients[count];
    CGL_UNROLL
    for (std::uint32_t j = 0; j < count; ++j) coefficients[j] = Lanes::broadcast(slab.coefficients[j]);
    for (std::uint32_t group = 0; group < input.sphere.rows / 4u; ++group) {
      const float* const matrix = input.harmonics.matrix + std::size_t{numerics::lane_count} * count * group;
      Float classes[4];
      std::uint32_t j = 0;
      CGL_UNROLL
      for (std::uint32_t of_class = 0; of_class < 4u; ++of_class) {
        Float sum = Lanes::broadcast(0.0f);
        CGL_UNROLL
        for (std::uint32_t i = 0; i < sizes.of_class[of_class]; ++i, ++j) {
          const Float term =
              Lanes::multiply(coefficients[j], Lanes::load(matrix + std::size_t{numerics::lane_count} * j));
          sum = i == 0u ? term : Lanes::add(sum, term);
        }
        classes[of_class] = sum;
      }
      const numerics::MirrorMembers<Lanes> members = numerics::mirror_members<Lanes>(classes);
      CGL_UNROLL
      for (std::uint32_t q = 0; q < 4u; ++q) {
        Lanes::store(slab.values + numerics::lane_count * (4u * group + q), members.member[q]);
      }
    }
    Lanes::barrier();
  }

  // boot.hpp's boot_step without angular weight.
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD Step step(const TrackingInput& input, const Slab& slab, const Held<Lanes>&,
                          numerics::DrawCounter counter, numerics::Vec3, numerics::Vec3 ahead) {
    for (std::uint32_t attempt = 0; attempt < input.plan.boot_attempts; ++attempt) {
      counter.attempt = attempt;
      fit_sample<Lanes>(input, slab, counter);
      sample<Lanes>(input, slab);
      const std::uint32_t found = find_peaks<Lanes>(input, slab, most_initial_directions);
      if (found == 0u) continue;
      const numerics::Vec3 nearest = nearest_peak(input.sphere, slab.peaks, found, ahead);
      if (numerics::dot(nearest, ahead) >= input.plan.cos_max_angle) return step_along(nearest);
      if (input.plan.boot_retry_angle == 0u) break;
    }
    return no_step();
  }
};

}  // namespace cingulum::kernel
