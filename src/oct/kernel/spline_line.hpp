// Values of a line to coefficients of the cubic B-spline through them (Unser, Aldroubi and Eden 1993): a causal and an
// anticausal recursion, in sequence. `Number` is float, or a Pack of neighbouring lines. Mirrored by
// webgpu/spline_axis.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::oct {

inline constexpr float spline_pole = -0x1.126146p-2f;  // sqrt(3) - 2
inline constexpr float spline_gain = 6.0f;
inline constexpr std::uint32_t spline_horizon = 13;  // pole^13 < 2^-24
// pole / (pole^2 - 1) and pole / (pole - 1): where the anticausal recursion starts, about the last sample and half of
// one behind it.
inline constexpr float spline_mirror_start = 0x1.279a74p-2f;
inline constexpr float spline_reflect_start = 0x1.b0cb18p-3f;

CGL_HD inline std::uint32_t spline_extended(std::uint32_t index, std::uint32_t count, bool half_sample) {
  const std::uint32_t period = half_sample ? 2u * count : 2u * count - 2u;
  const std::uint32_t within = index % period;
  return within < count ? within : period - (half_sample ? 1u : 0u) - within;
}

// load(i) and store(i, value) are of a line of `count` samples; a line of one sample is its own coefficient.
CGL_HD_GENERIC
template <class Number, class Load, class Store>
CGL_HD inline void spline_coefficients(std::uint32_t count, bool half_sample, Load&& load, Store&& store) {
  if (count < 2) return;
  const Number pole = Number(spline_pole);
  // What the samples before the line would have left: with half a sample the line before begins with sample 0 again.
  Number sum = load(0u);
  Number power = pole;
  for (std::uint32_t k = 1; k <= spline_horizon; ++k) {
    const std::uint32_t mirrored =
        half_sample ? spline_extended(k - 1u, count, true) : spline_extended(k, count, false);
    sum = sum + power * load(mirrored);
    power = power * pole;
  }
  Number before = Number(spline_gain) * sum;
  store(0u, before);
  for (std::uint32_t i = 1; i < count; ++i) {
    const Number value = Number(spline_gain) * load(i) + pole * before;
    store(i, value);
    before = value;
  }
  const Number last = load(count - 1u);
  Number after;
  if (half_sample) {
    after = Number(spline_reflect_start) * last;
  } else {
    after = Number(spline_mirror_start) * (pole * load(count - 2u) + last);
  }
  store(count - 1u, after);
  for (std::uint32_t i = count - 1u; i > 0u; --i) {
    after = pole * (after - load(i - 1u));
    store(i - 1u, after);
  }
}

}  // namespace cingulum::oct
