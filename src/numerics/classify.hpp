// Kinds of float32 told apart by integer tests on the bits, and the conversions that need such a test first. Called
// wherever input enters and by kernels before a conversion; compilers and drivers may assume that NaN does not exist
// (on lavapipe x != x is false for NaN), but not about integers. Mirrored by wgsl/classify.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::numerics {

inline constexpr std::uint32_t sign_bit = 0x80000000u;
inline constexpr std::uint32_t infinity_bits = 0x7f800000u;
inline constexpr std::uint32_t smallest_normal_bits = 0x00800000u;
inline constexpr std::uint32_t largest_finite_bits = 0x7f7fffffu;

// The bits without the sign. Magnitudes are ordered as integers, NaN above infinity.
CGL_HD constexpr std::uint32_t magnitude_bits(float value) {
  return float_bits(value) & ~sign_bit;
}
CGL_HD constexpr bool is_negative(float value) {
  return (float_bits(value) & sign_bit) != 0u;
}
CGL_HD constexpr bool is_nan(float value) {
  return magnitude_bits(value) > infinity_bits;
}
CGL_HD constexpr bool is_infinite(float value) {
  return magnitude_bits(value) == infinity_bits;
}
CGL_HD constexpr bool is_finite(float value) {
  return magnitude_bits(value) < infinity_bits;
}
CGL_HD constexpr bool is_subnormal(float value) {
  // Zero wraps around to the largest integer.
  return magnitude_bits(value) - 1u < smallest_normal_bits - 1u;
}

CGL_HD constexpr float absolute(float value) {
  return bits_float(magnitude_bits(value));
}

// The value, or `limit` with its sign where the magnitude is greater; NaN counts as greater than everything.
// `limit` is positive.
CGL_HD constexpr float clamp_magnitude(float value, float limit) {
  const std::uint32_t magnitude = magnitude_bits(value);
  const std::uint32_t limit_bits = float_bits(limit);
  return magnitude > limit_bits ? bits_float((float_bits(value) & sign_bit) | limit_bits) : value;
}

// Rounds towards zero. What lies outside of int32 becomes the nearest int32; NaN becomes 0.
CGL_HD constexpr std::int32_t float_to_int32(float value) {
  constexpr std::uint32_t two_to_31 = 0x4f000000u;
  const std::uint32_t magnitude = magnitude_bits(value);
  if (magnitude < two_to_31) return static_cast<std::int32_t>(value);
  if (magnitude > infinity_bits) return 0;
  return is_negative(value) ? INT32_MIN : INT32_MAX;
}

// Rounds towards zero. Negative values become 0, those of 2^32 and above the largest uint32; NaN becomes 0.
CGL_HD constexpr std::uint32_t float_to_uint32(float value) {
  constexpr std::uint32_t two_to_32 = 0x4f800000u;
  const std::uint32_t magnitude = magnitude_bits(value);
  if (magnitude > infinity_bits || is_negative(value)) return 0u;
  return magnitude < two_to_32 ? static_cast<std::uint32_t>(value) : UINT32_MAX;
}

// +0.0 in the place of a value below 2^-40 of the field's unit, so that no later product is subnormal (contract,
// section 1). `unit` is at least 2^-86. NaN and infinity stay: preparation counts and replaces them itself.
CGL_HD constexpr float flush_tiny(float value, float unit) {
  return magnitude_bits(value) < float_bits(unit * 0x1p-40f) ? 0.0f : value;
}

}  // namespace cingulum::numerics
