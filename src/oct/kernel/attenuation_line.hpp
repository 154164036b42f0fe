// Attenuation along one A-line, in float32 of the bit contract, sums from the deepest plane up. Vermeer et al. 2014
// (Biomed Opt Express 5:322): mu_i = ln(1 + I_i / (sum of I_j deeper + C)) / 2, per plane. C is the light that goes on
// below the line: 0 (vermeer), I_N / 2 mu_E (smith), I_N / (exp(2 mu_E) - 1) (liu), I_N and mu_E by an exponential
// through the last planes. attenuation_of and compensated are the kernels', too: webgpu/attenuation_lines.wgsl and
// webgpu/compensate_lines.wgsl mirror them.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"

namespace cingulum::oct {

// ln(1 + x) = 2 (s + s^3/3 + ...), s = x / (2 + x).
inline constexpr float log_series[] = {1.0f / 9.0f, 1.0f / 7.0f, 0.2f, 1.0f / 3.0f};

// ln(1 + x) for x >= 0 without losing small x.
CGL_HD inline float log_one_plus(float x) {
  constexpr float ninth = log_series[0], seventh = log_series[1], fifth = log_series[2], third = log_series[3];
  if (x > 0.25f) return numerics::logarithm(1.0f + x);
  const float s = x / (2.0f + x);
  const float q = s * s;
  float p = q * ninth + seventh;
  p = p * q + fifth;
  p = p * q + third;
  p = p * q + 1.0f;
  return (s + s) * p;
}

// `value` is not negative; `deeper` is the sum of the samples below, with what lies deeper than the last.
CGL_HD inline float attenuation_of(float value, float deeper, float scale) {
  return deeper > 0.0f ? log_one_plus(value / deeper) * scale : 0.0f;
}

// `strength` is minus twice the share that is made up for.
CGL_HD inline float compensated(float value, float depth, float strength, float least) {
  const float left = numerics::exponential(strength * depth);
  return value / (left > least ? left : least);
}

enum class AttenuationEnd : std::uint32_t { vermeer, smith, liu };

// The decay at the end of a line: by how much the logarithm of the intensity falls from plane to plane, by a line
// through the last `count` of `end` planes, which are at least two. `at(i)` is the intensity.
CGL_HD_GENERIC
template <class At>
CGL_HD inline float end_decay(const At& at, std::uint32_t end, std::uint32_t count) {
  constexpr float least = 1e-20f;  // of an intensity whose logarithm is fitted
  const float middle = 0.5f * static_cast<float>(count - 1u);
  float product = 0.0f;
  float squares = 0.0f;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float value = at(end - count + i);
    const float x = static_cast<float>(i) - middle;
    product = product + x * numerics::logarithm(value > least ? value : least);
    squares = squares + x * x;
  }
  return -(product / squares);  // 2 mu_E
}

// What goes on below plane `end` - 1 of the line, by an exponential of this decay through the last `count` planes.
CGL_HD_GENERIC
template <class At>
CGL_HD inline float light_below(const At& at, std::uint32_t end, std::uint32_t count, AttenuationEnd how, float decay) {
  if (how == AttenuationEnd::vermeer) return 0.0f;
  // A line that does not fall has no end: light without end goes on below it, and nothing was attenuated.
  constexpr float least_decay = 1e-6f;
  constexpr float without_end = 1e30f;
  if (!(decay > least_decay)) return without_end;
  float last = 0.0f;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float distance = static_cast<float>(count - 1u - i);
    last = last + at(end - count + i) * numerics::exponential(-(decay * distance));
  }
  last = last / static_cast<float>(count);
  if (how == AttenuationEnd::smith) return last / decay;
  // exp(d) - 1 = exp(d/2) * 2 sinh(d/2); for the decays of tissue the series is exact to float32.
  const float d = decay;
  const float growth = d * (1.0f + d * (0.5f + d * ((1.0f / 6.0f) + d * (1.0f / 24.0f))));
  return last / growth;
}

// The same with the decay of the line itself.
CGL_HD_GENERIC
template <class At>
CGL_HD inline float light_below(const At& at, std::uint32_t end, std::uint32_t count, AttenuationEnd how) {
  if (how == AttenuationEnd::vermeer || count < 2u || end < count) return 0.0f;
  return light_below(at, end, count, how, end_decay(at, end, count));
}

// Calls put(i, mu_i) for the planes end - 1 down to 0; negative intensities count as 0.
CGL_HD_GENERIC
template <class At, class Put>
CGL_HD inline void attenuation_along(const At& at, std::uint32_t end, float below, const Put& put) {
  float deeper = below;
  for (std::uint32_t i = end; i-- > 0u;) {
    const float value = at(i) > 0.0f ? at(i) : 0.0f;
    put(i, attenuation_of(value, deeper, 0.5f));
    deeper = deeper + value;
  }
}

}  // namespace cingulum::oct
