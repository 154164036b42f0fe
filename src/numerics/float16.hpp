// float16 (IEEE 754 binary16, kept as uint16) to float32 and back, to nearest even, by integer operations alone, so
// that a compressed field has the same bits whoever wrote it and reads the same on devices with and without hardware
// conversion. Called when fields are packed and by the samplers of float16 fields. Mirrored by wgsl/float16.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::numerics {

CGL_HD constexpr std::uint32_t float16_to_float_bits(std::uint32_t float16) {
  const std::uint32_t sign = (float16 & 0x8000u) << 16;
  std::uint32_t exponent = (float16 >> 10) & 0x1fu;
  std::uint32_t fraction = float16 & 0x3ffu;
  if (exponent == 0x1fu) return sign | 0x7f800000u | (fraction << 13);
  if (exponent == 0u) {
    if (fraction == 0u) return sign;
    // A subnormal float16 is a normal float: move its highest bit to the hidden place.
    exponent = 1u;
    while ((fraction & 0x400u) == 0u) {
      fraction <<= 1;
      exponent -= 1u;  // may wrap below zero; the bias added next brings it back
    }
    fraction &= 0x3ffu;
  }
  return sign | ((exponent + (127u - 15u)) << 23) | (fraction << 13);
}

// Values of 65520 and above become infinity; a NaN stays a NaN (quiet, upper bits of its payload kept).
CGL_HD constexpr std::uint32_t float_bits_to_float16(std::uint32_t bits) {
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude >= 0x38800000u) {
    // Half of the last kept place less one, plus that place itself: exact halves go to the even neighbour. A carry
    // runs on into the exponent, as it should.
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return sign | ((rounded - 0x38000000u) >> 13);
  }
  if (magnitude < 0x33000000u) return sign;  // below 2^-25, half of the least subnormal
  const std::uint32_t shift = 126u - (magnitude >> 23);
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1u << shift) - 1u);
  const std::uint32_t halfway = 1u << (shift - 1u);
  const bool up = rest > halfway || (rest == halfway && (kept & 1u) != 0u);
  return sign | (kept + (up ? 1u : 0u));
}

// The float32 of a finite float16, without a loop; samplers use it. No operand or result is a subnormal float32, so
// devices that flush those give the same bits.
CGL_HD inline float finite_float16_to_float(std::uint32_t float16) {
  const std::uint32_t magnitude = float16 & 0x7fffu;
  const float size =
      magnitude < 0x400u ? static_cast<float>(magnitude) * 0x1p-24f : bits_float((magnitude << 13) + 0x38000000u);
  return bits_float(float_bits(size) | ((float16 & 0x8000u) << 16));
}

CGL_HD constexpr float float16_to_float(std::uint16_t float16) {
  return bits_float(float16_to_float_bits(float16));
}
CGL_HD constexpr std::uint16_t float_to_float16(float value) {
  return static_cast<std::uint16_t>(float_bits_to_float16(float_bits(value)));
}

}  // namespace cingulum::numerics
