// sine, cosine, arc cosine, logarithm and exponential in float64, for set-up, phantom and seeds: files that must not
// depend on which libm is installed (glibc's results differ between CPUs with and without FMA). The same reductions as
// elementary.hpp with longer polynomials from tools/fit_polynomials.py. No WGSL mirror: WebGPU has no float64.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

inline constexpr std::uint64_t sign_bit64 = 0x8000000000000000u;
inline constexpr std::uint64_t infinity_bits64 = 0x7ff0000000000000u;
inline constexpr std::uint64_t smallest_normal_bits64 = 0x0010000000000000u;
inline constexpr std::uint64_t largest_finite_bits64 = 0x7fefffffffffffffu;

CGL_HD constexpr std::uint64_t magnitude_bits(double value) {
  return float_bits(value) & ~sign_bit64;
}
CGL_HD constexpr bool is_negative(double value) {
  return (float_bits(value) & sign_bit64) != 0u;
}
CGL_HD constexpr bool is_finite(double value) {
  return magnitude_bits(value) < infinity_bits64;
}
CGL_HD constexpr double absolute(double value) {
  return bits_float(magnitude_bits(value));
}

CGL_HD constexpr double clamp_magnitude(double value, double limit) {
  const std::uint64_t limit_bits = float_bits(limit);
  return magnitude_bits(value) > limit_bits ? bits_float((float_bits(value) & sign_bit64) | limit_bits) : value;
}

struct ReducedAngle64 {
  std::uint32_t quadrant;
  double remainder;
  double tail;
};

CGL_HD inline ReducedAngle64 reduce_angle(double x) {
  constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
  constexpr double half_pi_1 = 0x1.921fb54442p+0;  // 40 bits each of the first two
  constexpr double half_pi_2 = 0x1.a308d31318p-41;
  constexpr double half_pi_3 = 0x1.8a2e03707344ap-81;
  const double k = floor_of(x * two_over_pi + 0.5);
  const double coarse = x - k * half_pi_1;
  const double correction = k * half_pi_2;
  const double remainder = coarse - correction;
  const double tail = ((coarse - remainder) - correction) - k * half_pi_3;
  return {static_cast<std::uint32_t>(static_cast<std::int32_t>(k)) & 3u, remainder, tail};
}

CGL_HD inline double sine_of_reduced(double remainder, double tail) {
  const double z = remainder * remainder;
  double p = -0x1.aaa1e144adecap-41;
  p = p * z + 0x1.61208b7d501f3p-33;
  p = p * z + -0x1.ae64528c4521ep-26;
  p = p * z + 0x1.71de3a532f9ebp-19;
  p = p * z + -0x1.a01a01a018a61p-13;
  p = p * z + 0x1.111111111110bp-7;
  p = p * z + -0x1.5555555555555p-3;
  return remainder + (tail + (remainder * z) * p);
}

CGL_HD inline double cosine_of_reduced(double remainder, double tail) {
  const double z = remainder * remainder;
  double p = 0x1.aabcb59286095p-45;
  p = p * z + -0x1.93932343d1bc3p-37;
  p = p * z + 0x1.1eed8c900a770p-29;
  p = p * z + -0x1.27e4fb75eae15p-22;
  p = p * z + 0x1.a01a01a018cc0p-16;
  p = p * z + -0x1.6c16c16c16c0fp-10;
  p = p * z + 0x1.5555555555555p-5;
  const double half_z = 0.5 * z;
  const double head = 1.0 - half_z;
  return head + (((1.0 - head) - half_z) + ((z * z) * p - remainder * tail));
}

// |x| <= 256; beyond, and for NaN, the values at 256 with the sign of x.
CGL_HD inline SineCosine<double> sine_cosine(double x) {
  const ReducedAngle64 angle = reduce_angle(clamp_magnitude(x, 256.0));
  const double s = sine_of_reduced(angle.remainder, angle.tail);
  const double c = cosine_of_reduced(angle.remainder, angle.tail);
  const bool swapped = (angle.quadrant & 1u) != 0u;
  double sine_value = swapped ? c : s;
  double cosine_value = swapped ? s : c;
  if ((angle.quadrant & 2u) != 0u) sine_value = -sine_value;
  if (((angle.quadrant + 1u) & 2u) != 0u) cosine_value = -cosine_value;
  if (magnitude_bits(x) < 0x3e40000000000000u) sine_value = x;  // |x| < 2^-27
  return {sine_value, cosine_value};
}

CGL_HD inline double sine(double x) {
  return sine_cosine(x).sine;
}
CGL_HD inline double cosine(double x) {
  return sine_cosine(x).cosine;
}

CGL_HD inline double arc_sine_excess(double z) {
  double p = 0x1.0b4b5735907a0p-5;
  p = p * z + -0x1.580cfc1c59fd3p-6;
  p = p * z + 0x1.63a809a5641c7p-6;
  p = p * z + 0x1.e5ccfadb7427ep-9;
  p = p * z + 0x1.613f6c31d5253p-7;
  p = p * z + 0x1.7584fbfd9e245p-7;
  p = p * z + 0x1.ca1fa04ee61f1p-7;
  p = p * z + 0x1.1c49ef7e7e733p-6;
  p = p * z + 0x1.6e8bdeee23ea7p-6;
  p = p * z + 0x1.f1c71a94620f0p-6;
  p = p * z + 0x1.6db6db7214328p-5;
  p = p * z + 0x1.333333332e101p-4;
  p = p * z + 0x1.5555555555577p-3;
  return z * p;
}

// [-1, 1], in radians; arguments of larger magnitude, and NaN, count as 1 with their sign.
CGL_HD inline double arc_cosine(double x) {
  constexpr double pi_rounded = 0x1.921fb54442d18p+1;
  constexpr double half_pi_high = 0x1.921fb54442d18p+0;
  constexpr double half_pi_low = 0x1.1a62633145c07p-54;
  const std::uint64_t magnitude = magnitude_bits(x);
  const bool negative = is_negative(x);
  if (magnitude >= 0x3ff0000000000000u) return negative ? pi_rounded : 0.0;
  if (magnitude <= 0x3fe0000000000000u) {
    const double excess = x * arc_sine_excess(x * x);
    return half_pi_high - (x - (half_pi_low - excess));
  }
  const double z = (1.0 - absolute(x)) * 0.5;
  const double s = root(z);
  const double excess = s * arc_sine_excess(z);
  if (negative) {
    const double sum = s + (excess - half_pi_low);
    return pi_rounded - (sum + sum);
  }
  const double upper = bits_float(float_bits(s) & 0xffffffff00000000u);
  const double lower = (z - upper * upper) / (s + upper);
  const double sum = upper + (lower + excess);
  return sum + sum;
}

// Positive normal numbers. Zero, subnormal and negative arguments count as the smallest normal number, infinity and NaN
// of positive sign as the largest.
CGL_HD inline double logarithm(double x) {
  constexpr double ln2_high = 0x1.62e42fefa2p-1;  // 40 bits
  constexpr double ln2_low = 0x1.9ef35793c7673p-41;
  constexpr std::uint64_t one_bits = 0x3ff0000000000000u;
  constexpr std::uint64_t root_half_bits = 0x3fe6a09e667f3bcdu;
  std::uint64_t bits = float_bits(x);
  if (bits > infinity_bits64 - 1u) bits = (bits & sign_bit64) != 0u ? smallest_normal_bits64 : largest_finite_bits64;
  if (bits < smallest_normal_bits64) bits = smallest_normal_bits64;
  const std::uint64_t shifted = bits + (one_bits - root_half_bits);
  const double k = static_cast<double>(static_cast<std::int32_t>(shifted >> 52) - 1023);
  const double f = bits_float((shifted & 0xfffffffffffffu) + root_half_bits) - 1.0;
  // log(1 + f) = 2s + s z p(z) with s = f / (2 + f); 2s = f - s f, and s f = f^2/2 - s f^2/2, so only small terms are
  // rounded.
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 0x1.2f02e516ae773p-3;
  p = p * z + 0x1.39a1fba4983cbp-3;
  p = p * z + 0x1.74663c537c871p-3;
  p = p * z + 0x1.c71c52164b1a7p-3;
  p = p * z + 0x1.24924941e0c5dp-2;
  p = p * z + 0x1.999999997fee9p-2;
  p = p * z + 0x1.5555555555592p-1;
  const double half_square = 0.5 * f * f;
  const double curve = s * (half_square + z * p) - half_square;
  const double whole = k * ln2_high;
  const double head = whole + f;
  const double rest = f - (head - whole);
  return head + (rest + (curve + k * ln2_low));
}

// All arguments. Results above the largest finite number become that number, results below the smallest normal number
// become +0.0; NaN counts as infinity of its sign.
CGL_HD inline double exponential(double x) {
  constexpr double one_over_ln2 = 0x1.71547652b82fep+0;
  constexpr double ln2_high = 0x1.62e42fefa2p-1;
  constexpr double ln2_low = 0x1.9ef35793c7673p-41;
  const double clamped = clamp_magnitude(x, 1024.0);
  const double k = floor_of(clamped * one_over_ln2 + 0.5);
  const double coarse = clamped - k * ln2_high;
  const double correction = k * ln2_low;
  const double r = coarse - correction;
  const double tail = (coarse - r) - correction;
  double p = 0x1.1e3d21ffd8ed8p-29;
  p = p * r + 0x1.af6bf567db94dp-26;
  p = p * r + 0x1.27e5b45a9ebf4p-22;
  p = p * r + 0x1.71ddf01932e49p-19;
  p = p * r + 0x1.a01a01367e86cp-16;
  p = p * r + 0x1.a01a01b381330p-13;
  p = p * r + 0x1.6c16c16c304e3p-10;
  p = p * r + 0x1.111111110ec56p-7;
  p = p * r + 0x1.5555555555503p-5;
  p = p * r + 0x1.555555555555bp-3;
  p = p * r + 0.5;
  const std::uint64_t bits = float_bits(1.0 + (r + (tail + (r * r) * p)));
  const std::int64_t power = static_cast<std::int64_t>(k);
  const std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) + power;
  if (exponent < 1) return 0.0;
  if (exponent > 2046) return bits_float(largest_finite_bits64);
  return bits_float(bits + (static_cast<std::uint64_t>(power) << 52));
}

}  // namespace cingulum::numerics
