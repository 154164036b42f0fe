// sine, cosine, arc cosine, logarithm and exponential in float32, the only transcendentals that tracking may use: the
// library's differ between machines. Every input has a result, NaN included, since arguments are clamped on their
// bits; the domain of each is where its error is bounded (docs/numerics.md has the measured bounds). The names differ
// from libm's so that a call cannot fall through to it. Polynomials: tools/fit_polynomials.py prints them; the argument
// reductions follow Cody and Waite, Software Manual for the Elementary Functions (1980). Mirrored by
// wgsl/elementary.wgsl; elementary64.hpp is the float64 sibling.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

template <class Real>
struct SineCosine {
  Real sine;
  Real cosine;
};

// x = quadrant * pi/2 + remainder + tail, |remainder| <= pi/4 and a little; the tail is what rounding the remainder
// lost.
struct ReducedAngle {
  std::uint32_t quadrant;
  float remainder;
  float tail;
};

CGL_HD inline ReducedAngle reduce_angle(float x) {
  constexpr float two_over_pi = 0x1.45f306p-1f;
  // pi/2 in three pieces; the first two have 16 bits, so that products with k <= 163 are exact.
  constexpr float half_pi_1 = 0x1.921ep+0f;
  constexpr float half_pi_2 = 0x1.b544p-16f;
  constexpr float half_pi_3 = 0x1.0b4612p-34f;
  const float k = floor_of(x * two_over_pi + 0.5f);
  const float coarse = x - k * half_pi_1;  // exact: a multiple of 2^-24 below 1
  const float correction = k * half_pi_2;
  const float remainder = coarse - correction;
  const float tail = ((coarse - remainder) - correction) - k * half_pi_3;
  return {static_cast<std::uint32_t>(static_cast<std::int32_t>(k)) & 3u, remainder, tail};
}

CGL_HD inline float sine_of_reduced(float remainder, float tail) {
  const float z = remainder * remainder;
  float p = 0x1.6cd16ep-19f;
  p = p * z + -0x1.a00f7cp-13f;
  p = p * z + 0x1.111108p-7f;
  p = p * z + -0x1.555556p-3f;
  return remainder + (tail + (remainder * z) * p);
}

CGL_HD inline float cosine_of_reduced(float remainder, float tail) {
  const float z = remainder * remainder;
  float p = 0x1.99eaf8p-16f;
  p = p * z + -0x1.6c0c32p-10f;
  p = p * z + 0x1.55554ap-5f;
  const float half_z = 0.5f * z;
  const float head = 1.0f - half_z;
  return head + (((1.0f - head) - half_z) + ((z * z) * p - remainder * tail));
}

inline constexpr float largest_angle = 256.0f;

// |x| <= 256; beyond, and for NaN, the value at 256 with the sign of x.
CGL_HD inline float sine(float x) {
  if (magnitude_bits(x) < 0x39800000u) return x;  // |x| < 2^-12: x is nearest, and keeps the sign of zero
  const ReducedAngle angle = reduce_angle(clamp_magnitude(x, largest_angle));
  const float value = (angle.quadrant & 1u) != 0u ? cosine_of_reduced(angle.remainder, angle.tail)
                                                  : sine_of_reduced(angle.remainder, angle.tail);
  return (angle.quadrant & 2u) != 0u ? -value : value;
}

// |x| <= 256; beyond, and for NaN, the value at 256.
CGL_HD inline float cosine(float x) {
  const ReducedAngle angle = reduce_angle(clamp_magnitude(x, largest_angle));
  const float value = (angle.quadrant & 1u) != 0u ? sine_of_reduced(angle.remainder, angle.tail)
                                                  : cosine_of_reduced(angle.remainder, angle.tail);
  return ((angle.quadrant + 1u) & 2u) != 0u ? -value : value;
}

// Both, with one reduction; the bits of sine(x) and cosine(x).
CGL_HD inline SineCosine<float> sine_cosine(float x) {
  const ReducedAngle angle = reduce_angle(clamp_magnitude(x, largest_angle));
  const float s = sine_of_reduced(angle.remainder, angle.tail);
  const float c = cosine_of_reduced(angle.remainder, angle.tail);
  const bool swapped = (angle.quadrant & 1u) != 0u;
  float sine_value = swapped ? c : s;
  float cosine_value = swapped ? s : c;
  if ((angle.quadrant & 2u) != 0u) sine_value = -sine_value;
  if (((angle.quadrant + 1u) & 2u) != 0u) cosine_value = -cosine_value;
  if (magnitude_bits(x) < 0x39800000u) sine_value = x;
  return {sine_value, cosine_value};
}

// asin(s) = s + s z p(z) with z = s^2; returns z p(z) for z <= 1/4.
CGL_HD inline float arc_sine_excess(float z) {
  float p = 0x1.3355c6p-5f;
  p = p * z + 0x1.d91f8ap-7f;
  p = p * z + 0x1.0491a4p-5f;
  p = p * z + 0x1.6caed2p-5f;
  p = p * z + 0x1.33387cp-4f;
  p = p * z + 0x1.55554cp-3f;
  return z * p;
}

// [-1, 1], in radians; arguments of larger magnitude, and NaN, count as 1 with their sign.
CGL_HD inline float arc_cosine(float x) {
  constexpr float pi_rounded = 0x1.921fb6p+1f;
  constexpr float half_pi_high = 0x1.921fb6p+0f;
  constexpr float half_pi_low = -0x1.777a5cp-25f;
  const std::uint32_t magnitude = magnitude_bits(x);
  const bool negative = is_negative(x);
  if (magnitude >= 0x3f800000u) return negative ? pi_rounded : 0.0f;
  if (magnitude <= 0x3f000000u) {
    const float excess = x * arc_sine_excess(x * x);
    return half_pi_high - (x - (half_pi_low - excess));
  }
  // acos(x) = 2 asin(sqrt((1 - x) / 2)); the argument of the root is exact.
  const float z = (1.0f - absolute(x)) * 0.5f;
  const float s = root(z);
  const float excess = s * arc_sine_excess(z);
  if (negative) {
    const float sum = s + (excess - half_pi_low);
    return pi_rounded - (sum + sum);
  }
  // The upper 12 bits of the root have an exact square, which gives what rounding the root lost.
  const float upper = bits_float(float_bits(s) & 0xfffff000u);
  const float lower = (z - upper * upper) / (s + upper);
  const float sum = upper + (lower + excess);
  return sum + sum;
}

// Positive normal numbers. Zero, subnormal and negative arguments count as the smallest normal number (-87.3),
// infinity and NaN of positive sign as the largest (88.7).
CGL_HD inline float logarithm(float x) {
  constexpr float ln2_high = 0x1.62e4p-1f;  // 15 bits: products with the exponent are exact
  constexpr float ln2_low = 0x1.7f7d1cp-20f;
  constexpr std::uint32_t root_half_bits = 0x3f3504f3u;
  std::uint32_t bits = float_bits(x);
  if (bits > infinity_bits - 1u) bits = (bits & sign_bit) != 0u ? smallest_normal_bits : largest_finite_bits;
  if (bits < smallest_normal_bits) bits = smallest_normal_bits;
  // x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
  const std::uint32_t shifted = bits + (0x3f800000u - root_half_bits);
  const float k = static_cast<float>(static_cast<std::int32_t>(shifted >> 23) - 127);
  const float f = bits_float((shifted & 0x7fffffu) + root_half_bits) - 1.0f;
  const float z = f * f;
  float p = 0x1.1457a4p-4f;
  p = p * f + -0x1.de3c1p-4f;
  p = p * f + 0x1.e6f06ap-4f;
  p = p * f + -0x1.fc2208p-4f;
  p = p * f + 0x1.233768p-3f;
  p = p * f + -0x1.555c4ep-3f;
  p = p * f + 0x1.99a4b6p-3f;
  p = p * f + -0x1.000006p-2f;
  p = p * f + 0x1.555548p-2f;
  const float curve = (f * z) * p - 0.5f * z;
  const float whole = k * ln2_high;
  const float head = whole + f;
  const float rest = f - (head - whole);  // what rounding the head lost (Dekker 1971)
  return head + (rest + (curve + k * ln2_low));
}

// All arguments. Results above the largest finite number become that number, results below the smallest normal number
// become +0.0; NaN counts as infinity of its sign.
CGL_HD inline float exponential(float x) {
  constexpr float one_over_ln2 = 0x1.715476p+0f;
  constexpr float ln2_high = 0x1.62e4p-1f;
  constexpr float ln2_low = 0x1.7f7d1cp-20f;
  const float clamped = clamp_magnitude(x, 128.0f);
  const float k = floor_of(clamped * one_over_ln2 + 0.5f);
  const float r = (clamped - k * ln2_high) - k * ln2_low;
  float p = 0x1.6a2438p-10f;
  p = p * r + 0x1.1239f2p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  const std::uint32_t bits = float_bits(1.0f + (r + (r * r) * p));
  const std::int32_t power = static_cast<std::int32_t>(k);
  const std::int32_t exponent = static_cast<std::int32_t>(bits >> 23) + power;
  if (exponent < 1) return 0.0f;
  if (exponent > 254) return bits_float(largest_finite_bits);
  return bits_float(bits + (static_cast<std::uint32_t>(power) << 23));
}

}  // namespace cingulum::numerics
