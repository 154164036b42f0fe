// Logarithm and exponential in every lane of a pack of float64, and the logarithm of float32, without a branch: each
// lane gets the bits that the scalar function of elementary64.hpp or elementary.hpp gives (tested). Called by the
// models, one voxel per lane, and by the OCT kernels. Host only.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"

namespace cingulum::numerics {

// Adding it to a number below 2^51 in magnitude leaves the nearest integer in the low bits.
inline constexpr double integer_shift = 0x1.8p52;
inline constexpr std::int64_t integer_shift_bits = 0x4338000000000000;

template <int Width>
CGL_INLINE Pack<double, Width> logarithm(Pack<double, Width> x) {
  using Number = Pack<double, Width>;
  using Integers = typename Number::IntegerVector;
  using Numbers = typename Number::Vector;
  constexpr double ln2_high = 0x1.62e42fefa2p-1;
  constexpr double ln2_low = 0x1.9ef35793c7673p-41;
  constexpr std::int64_t one_bits = 0x3ff0000000000000;
  constexpr std::int64_t root_half_bits = 0x3fe6a09e667f3bcd;
  constexpr auto smallest = static_cast<std::int64_t>(smallest_normal_bits64);
  constexpr auto largest = static_cast<std::int64_t>(largest_finite_bits64);
  // As signed integers all negative arguments lie below the smallest normal number.
  Integers bits = (Integers)x.lanes;
  bits = bits > largest ? Integers{} + largest : bits;
  bits = bits < smallest ? Integers{} + smallest : bits;
  const Integers shifted = bits + (one_bits - root_half_bits);
  const Integers k_bits = (shifted >> 52) + (integer_shift_bits - 1023);
  const Number k = Number::of((Numbers)k_bits - integer_shift);
  const Number f = Number::of((Numbers)((shifted & 0xfffffffffffff) + root_half_bits) - 1.0);
  const Number s = f / (Number(2.0) + f);
  const Number z = s * s;
  Number p = Number(0x1.2f02e516ae773p-3);
  p = p * z + Number(0x1.39a1fba4983cbp-3);
  p = p * z + Number(0x1.74663c537c871p-3);
  p = p * z + Number(0x1.c71c52164b1a7p-3);
  p = p * z + Number(0x1.24924941e0c5dp-2);
  p = p * z + Number(0x1.999999997fee9p-2);
  p = p * z + Number(0x1.5555555555592p-1);
  const Number half_square = Number(0.5) * f * f;
  const Number curve = s * (half_square + z * p) - half_square;
  const Number whole = k * Number(ln2_high);
  const Number head = whole + f;
  const Number rest = f - (head - whole);
  return head + (rest + (curve + k * Number(ln2_low)));
}

template <int Width>
CGL_INLINE Pack<float, Width> logarithm(Pack<float, Width> x) {
  using Number = Pack<float, Width>;
  using Integers = typename Number::IntegerVector;
  using Numbers = typename Number::Vector;
  constexpr float ln2_high = 0x1.62e4p-1f;
  constexpr float ln2_low = 0x1.7f7d1cp-20f;
  constexpr std::int32_t root_half_bits = 0x3f3504f3;
  constexpr float whole_shift = 0x1.8p23f;
  constexpr std::int32_t whole_shift_bits = 0x4b400000;
  constexpr auto smallest = static_cast<std::int32_t>(smallest_normal_bits);
  constexpr auto largest = static_cast<std::int32_t>(largest_finite_bits);
  // As signed integers all negative arguments lie below the smallest normal number.
  Integers bits = (Integers)x.lanes;
  bits = bits > largest ? Integers{} + largest : bits;
  bits = bits < smallest ? Integers{} + smallest : bits;
  const Integers shifted = bits + (0x3f800000 - root_half_bits);
  const Integers k_bits = (shifted >> 23) + (whole_shift_bits - 127);
  const Number k = Number::of((Numbers)k_bits - whole_shift);
  const Number f = Number::of((Numbers)((shifted & 0x7fffff) + root_half_bits) - 1.0f);
  const Number z = f * f;
  Number p = Number(0x1.1457a4p-4f);
  p = p * f + Number(-0x1.de3c1p-4f);
  p = p * f + Number(0x1.e6f06ap-4f);
  p = p * f + Number(-0x1.fc2208p-4f);
  p = p * f + Number(0x1.233768p-3f);
  p = p * f + Number(-0x1.555c4ep-3f);
  p = p * f + Number(0x1.99a4b6p-3f);
  p = p * f + Number(-0x1.000006p-2f);
  p = p * f + Number(0x1.555548p-2f);
  const Number curve = (f * z) * p - Number(0.5f) * z;
  const Number whole = k * Number(ln2_high);
  const Number head = whole + f;
  const Number rest = f - (head - whole);
  return head + (rest + (curve + k * Number(ln2_low)));
}

template <int Width>
CGL_INLINE Pack<double, Width> exponential(Pack<double, Width> x) {
  using Number = Pack<double, Width>;
  using Integers = typename Number::IntegerVector;
  typedef std::uint64_t Unsigned __attribute__((vector_size(Width * sizeof(double))));
  using Numbers = typename Number::Vector;
  constexpr double one_over_ln2 = 0x1.71547652b82fep+0;
  constexpr double ln2_high = 0x1.62e42fefa2p-1;
  constexpr double ln2_low = 0x1.9ef35793c7673p-41;
  constexpr std::int64_t magnitude_mask = INT64_MAX;
  constexpr std::int64_t limit_bits = 0x4090000000000000;  // 1024
  const Integers x_bits = (Integers)x.lanes;
  const Integers limited = (x_bits & ~magnitude_mask) | limit_bits;
  const Number clamped = Number::of((Numbers)((x_bits & magnitude_mask) > limit_bits ? limited : x_bits));
  // floor: to the nearest integer, then one less where that is above.
  const Number scaled = clamped * Number(one_over_ln2) + Number(0.5);
  const Number nearest = (scaled + Number(integer_shift)) - Number(integer_shift);
  const Number k = select(nearest > scaled, nearest - Number(1.0), nearest);
  const Number coarse = clamped - k * Number(ln2_high);
  const Number correction = k * Number(ln2_low);
  const Number r = coarse - correction;
  const Number tail = (coarse - r) - correction;
  Number p = Number(0x1.1e3d21ffd8ed8p-29);
  p = p * r + Number(0x1.af6bf567db94dp-26);
  p = p * r + Number(0x1.27e5b45a9ebf4p-22);
  p = p * r + Number(0x1.71ddf01932e49p-19);
  p = p * r + Number(0x1.a01a01367e86cp-16);
  p = p * r + Number(0x1.a01a01b381330p-13);
  p = p * r + Number(0x1.6c16c16c304e3p-10);
  p = p * r + Number(0x1.111111110ec56p-7);
  p = p * r + Number(0x1.5555555555503p-5);
  p = p * r + Number(0x1.555555555555bp-3);
  p = p * r + Number(0.5);
  const Integers bits = (Integers)(Number(1.0) + (r + (tail + (r * r) * p))).lanes;
  const Integers power = (Integers)(k + Number(integer_shift)).lanes - integer_shift_bits;
  const Integers exponent = (bits >> 52) + power;
  // Unsigned, since lanes that the next two lines replace may pass the signed range.
  Integers result = (Integers)((Unsigned)bits + ((Unsigned)power << 52));
  result = exponent > 2046 ? Integers{} + static_cast<std::int64_t>(largest_finite_bits64) : result;
  result = exponent < 1 ? Integers{} : result;
  return Number::of((Numbers)result);
}

}  // namespace cingulum::numerics
