// boot: the peaks of an ODF fitted to a bootstrap sample of the signal, and of these the nearest to the direction of
// travel (residual bootstrap: Berman et al., NeuroImage 39, 2008; the tracker: Haroon et al., IEEE TMI 28, 2009).
//
// The record holds, per voxel, the coefficients c of the least-squares fit, the mean of the b0 signals and the
// leveraged, centred residuals r; all are linear in the signal, so that interpolating them is interpolating it. One
// attempt: h = B c + r[picks], raised to the smallest signal, s = h / b0; OPDT (Tristan-Vega et al., NeuroImage 47,
// 2009): c_j = sum over gradients of (F invB) u_l, u_l = 4 g + l(l + 1) s, g = -ln s (1.5 + ln s) s (both matrices of
// the paper in one); CSA (Aganj et al., Magn. Reson. Med. 64, 2010): c_j = fit ln(-ln s), c_0 = 1 / (2 sqrt(pi)). Then
// the series on the sphere, its peaks and the nearest.
//
// At the seed the signal is not resampled. It comes back from the record: with q_i = sqrt(1 - h_ii) and m the mean that
// centring took away, the residual of the fit is q_i (r_i + m); these sum to zero over the gradients, since the basis
// holds the constant, hence m = -(sum q r) / (sum q).
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lane_elementary.hpp"
#include "numerics/lane_sum.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/amplitudes.hpp"
#include "tract/kernel/closest.hpp"
#include "tract/kernel/find_peaks.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Which residuals the gradients of row `row` take; `blocks` serve rows 5k to 5k + 4.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Word picks_of_row(const numerics::LaneBlocks<Lanes>& blocks, std::uint32_t row,
                                                std::uint32_t gradients) {
  using Word = typename Lanes::Word;
  const std::uint32_t i = row % numerics::bootstrap_picks_per_block;
  const Word high = Lanes::broadcast(0xffffff00u);
  const Word low = Lanes::broadcast(0xffu);
  if (i == 0u) return Lanes::high_product_with(Lanes::bits_and(blocks.word[0], high), gradients);
  if (i == 1u) return Lanes::high_product_with(Lanes::bits_and(blocks.word[1], high), gradients);
  if (i == 2u) return Lanes::high_product_with(Lanes::bits_and(blocks.word[2], high), gradients);
  if (i == 3u) return Lanes::high_product_with(Lanes::bits_and(blocks.word[3], high), gradients);
  const Word joined =
      Lanes::bits_or(Lanes::bits_or(Lanes::template shift_left<24>(Lanes::bits_and(blocks.word[0], low)),
                                    Lanes::template shift_left<16>(Lanes::bits_and(blocks.word[1], low))),
                     Lanes::bits_or(Lanes::template shift_left<8>(Lanes::bits_and(blocks.word[2], low)),
                                    Lanes::bits_and(blocks.word[3], low)));
  return Lanes::high_product_with(joined, gradients);
}

// The coefficients of the ODF, into slab.coefficients in the order of the sphere's matrix. `resample`: a bootstrap
// sample drawn with `counter`; else the signal itself.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline void fit_odf(const TrackingInput& input, const Slab& slab, const numerics::DrawCounter& counter,
                           bool resample) {
  using Float = typename Lanes::Float;
  const BootstrapView& boot = input.bootstrap;
  const std::uint32_t coefficients = input.harmonics.coefficients;
  const float* residuals = slab.record + coefficients + 1u;
  const float least = input.plan.boot_min_signal;
  const float stored_b0 = slab.record[coefficients];
  const Float b0 = Lanes::broadcast(stored_b0 > least ? stored_b0 : least);
  const Float zero = Lanes::broadcast(0.0f);
  const typename Lanes::Word end = Lanes::broadcast(boot.gradients);
  float centre = 0.0f;
  if (!resample) {
    const float sum = numerics::lane_sum<Lanes>(boot.gradients, [&](std::uint32_t row) {
      return Lanes::multiply(Lanes::load(boot.residual_scale + numerics::lane_count * row),
                             Lanes::load_row(residuals, row, boot.gradients));
    });
    centre = -(sum * boot.inverse_scale_sum);
  }
  numerics::LaneBlocks<Lanes> blocks{};
  const std::uint32_t levels = input.harmonics.degree / 2u + 1u;
  const std::uint32_t level_size = numerics::lane_count * boot.rows;
  Lanes::barrier();
  for (std::uint32_t row = 0; row < boot.rows; ++row) {
    const float* basis = boot.basis + std::size_t{numerics::lane_count} * coefficients * row;
    Float signal = Lanes::multiply(Lanes::broadcast(slab.record[0]), Lanes::load(basis));
    for (std::uint32_t j = 1; j < coefficients; ++j) {
      signal = Lanes::add(signal, Lanes::multiply(Lanes::broadcast(slab.record[j]),
                                                  Lanes::load(basis + std::size_t{numerics::lane_count} * j)));
    }
    if (resample) {
      if (row % numerics::bootstrap_picks_per_block == 0u) {
        const numerics::PhiloxBlock words = numerics::counter_words(counter, 0u);
        const std::uint32_t first = numerics::lane_count * (row / numerics::bootstrap_picks_per_block);
        blocks = numerics::lane_philox4x32_10<Lanes>(
            {{Lanes::broadcast(words.word[0]), Lanes::broadcast(words.word[1]), Lanes::broadcast(words.word[2]),
              Lanes::add(Lanes::broadcast(words.word[3] + first), Lanes::slots_of_row(0u))}},
            input.plan.key.low, input.plan.key.high);
      }
      signal = Lanes::add(signal, Lanes::gather(residuals, picks_of_row<Lanes>(blocks, row, boot.gradients)));
    } else {
      const Float residual = Lanes::add(Lanes::load_row(residuals, row, boot.gradients), Lanes::broadcast(centre));
      signal =
          Lanes::add(signal, Lanes::multiply(Lanes::load(boot.residual_scale + numerics::lane_count * row), residual));
    }
    const Float s = Lanes::divide(Lanes::greater_of(signal, Lanes::broadcast(least)), b0);
    const typename Lanes::Mask exists = Lanes::less(Lanes::slots_of_row(row), end);
    float* store = slab.signal + numerics::lane_count * row;
    if (boot.csa != 0u) {
      const Float limited = Lanes::lesser_of(Lanes::greater_of(s, Lanes::broadcast(0.001f)), Lanes::broadcast(0.999f));
      const Float inner = numerics::lane_logarithm<Lanes>(limited);
      Lanes::store(store, Lanes::select(exists, numerics::lane_logarithm<Lanes>(Lanes::subtract(zero, inner)), zero));
      continue;
    }
    const Float log = numerics::lane_logarithm<Lanes>(s);
    const Float g =
        Lanes::multiply(Lanes::multiply(Lanes::subtract(zero, log), Lanes::add(Lanes::broadcast(1.5f), log)), s);
    const Float four_g = Lanes::multiply(Lanes::broadcast(4.0f), g);
    for (std::uint32_t level = 0; level < levels; ++level) {
      const Float factor = Lanes::broadcast(static_cast<float>(2u * level * (2u * level + 1u)));
      Lanes::store(store + level_size * level,
                   Lanes::select(exists, Lanes::add(four_g, Lanes::multiply(factor, s)), zero));
    }
  }
  Lanes::barrier();
  for (std::uint32_t j = 0; j < coefficients; ++j) {
    const float* fit = boot.fit + std::size_t{level_size} * j;
    const float* u = slab.signal + (boot.csa != 0u ? 0u : level_size * boot.level[j]);
    slab.coefficients[j] = numerics::lane_sum<Lanes>(boot.gradients, [&](std::uint32_t row) {
      return Lanes::multiply(Lanes::load(fit + numerics::lane_count * row),
                             Lanes::load(u + numerics::lane_count * row));
    });
  }
  if (boot.csa != 0u) slab.coefficients[0] = 0x1.20dd76p-2f;  // 1 / (2 sqrt(pi))
  Lanes::barrier();
}

// The peaks of a sample's ODF at the point whose record lies in the slab; their number.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline std::uint32_t sample_peaks(const TrackingInput& input, const Slab& slab,
                                         const numerics::DrawCounter& counter, bool resample,
                                         const numerics::Vec3* ahead, std::uint32_t limit) {
  fit_odf<Lanes>(input, slab, counter, resample);
  const bool weighted = ahead != nullptr && input.plan.angular_weight != 0.0f;
  sample_series<Lanes>(
      input.harmonics, input.sphere.rows, slab.coefficients, [&](std::uint32_t row, typename Lanes::Float value) {
        if (weighted) {
          const typename Lanes::Float cosine = Lanes::magnitude(row_cosines<Lanes>(input.sphere, row, *ahead));
          value =
              Lanes::multiply(value, Lanes::add(Lanes::broadcast(1.0f - input.plan.angular_weight),
                                                Lanes::multiply(Lanes::broadcast(input.plan.angular_weight), cosine)));
        }
        Lanes::store(slab.values + numerics::lane_count * row, value);
      });
  Lanes::barrier();
  return find_peaks<Lanes>(input, slab, limit);
}

// Samples until one has a peak, at most boot_attempts; then the angle decides, or asks for another sample where the
// plan says so.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step boot_step(const TrackingInput& input, const Slab& slab, numerics::DrawCounter counter,
                             numerics::Vec3 ahead) {
  for (std::uint32_t attempt = 0; attempt < input.plan.boot_attempts; ++attempt) {
    counter.attempt = attempt;
    const std::uint32_t count = sample_peaks<Lanes>(input, slab, counter, true, &ahead, most_initial_directions);
    if (count == 0u) continue;
    const numerics::Vec3 nearest = nearest_peak(input.sphere, slab.peaks, count, ahead);
    if (numerics::dot(nearest, ahead) >= input.plan.cos_max_angle) return step_along(nearest);
    if (input.plan.boot_retry_angle == 0u) break;
  }
  return no_step();
}

}  // namespace cingulum::kernel
