// OPDT, CSA and GFA of one voxel, or of one voxel per lane: the arithmetic that every backend keeps. Sums are
// sequential in the order of volumes or coefficients. `Number` is a pack on the host and `double` on CUDA; the arrays
// of a voxel are pointers, or what a device needs to find a number of its voxel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmri/models/voxel_lanes.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"

namespace cingulum {

enum class QBallModelKind : std::uint32_t { opdt = 0, csa = 1 };

struct QBallView {
  QBallModelKind kind;
  std::size_t count;       // coefficients
  std::size_t directions;  // diffusion-weighted volumes
  std::size_t b0_count;
  double min_signal;
  const std::uint32_t* volumes;
  const std::uint32_t* b0_volumes;
  const double* linear;
  const double* quadratic;
};

// Signals of the diffusion-weighted volumes over the mean b0; values below min_signal count as min_signal.
template <class Number, class Signal, class Numbers>
CGL_HD CGL_INLINE void normalise_signal(const QBallView& view, const Signal& signal, const Numbers& normalised) {
  const Number least(view.min_signal);
  const auto clipped = [&](std::uint32_t volume) {
    const Number value = signal[volume];
    return numerics::select(value > least, value, least);
  };
  Number sum = clipped(view.b0_volumes[0]);
  for (std::size_t i = 1; i < view.b0_count; ++i) sum = sum + clipped(view.b0_volumes[i]);
  const Number b0 = sum / Number(static_cast<double>(view.b0_count));
  for (std::size_t g = 0; g < view.directions; ++g) normalised[g] = clipped(view.volumes[g]) / b0;
}

// The coefficients from normalised signals; `work` has space for `directions` + `count` numbers.
template <class Number, class Numbers>
CGL_HD CGL_INLINE void fit_q_ball_voxel(const QBallView& view, const Numbers& normalised, const Numbers& work,
                                        const Numbers& coefficients) {
  using numerics::logarithm;
  if (view.kind == QBallModelKind::opdt) {
    for (std::size_t g = 0; g < view.directions; ++g) {
      const Number s = normalised[g];
      const Number minus_log = -logarithm(s);
      work[g] = (minus_log * (Number(1.5) - minus_log)) * s;
    }
    const Numbers linear_part = work + view.directions;
    multiply<Number>(view.quadratic, view.count, view.directions, work, coefficients);
    multiply<Number>(view.linear, view.count, view.directions, normalised, linear_part);
    for (std::size_t i = 0; i < view.count; ++i) coefficients[i] = coefficients[i] - linear_part[i];
    return;
  }
  for (std::size_t g = 0; g < view.directions; ++g) {
    const Number low(0.001);
    const Number high(0.999);
    Number s = normalised[g];
    s = numerics::select(s > low, s, low);
    s = numerics::select(s < high, s, high);
    work[g] = logarithm(-logarithm(s));
  }
  multiply<Number>(view.linear, view.count, view.directions, work, coefficients);
  coefficients[0] = Number(0x1.20dd750429b6dp-2);  // 1 / (2 sqrt(pi)): the integral over the sphere is 1
}

// sqrt(1 - c_0^2 / sum of c^2); 0 where all coefficients are 0.
template <class Number, class Numbers>
CGL_HD CGL_INLINE Number generalised_fractional_anisotropy(const Numbers& coefficients, std::size_t count) {
  const Number first = coefficients[0] * coefficients[0];
  Number sum = first;
  for (std::size_t i = 1; i < count; ++i) sum = sum + coefficients[i] * coefficients[i];
  const Number zero(0.0);
  const Number one(1.0);
  const auto some = sum > zero;
  const Number squared = one - numerics::select(some, first, one) / numerics::select(some, sum, one);
  return numerics::root(numerics::select(squared > zero, squared, zero));
}

}  // namespace cingulum
