// The exponential in every lane of a pack of float32, without a branch: each lane gets the bits that exponential() of
// numerics/elementary.hpp gives (tested). It stands in the namespace of packs, where templates over numbers find it.
// Host only.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/pack.hpp"

namespace cingulum::numerics {

template <int Width>
CGL_INLINE Pack<float, Width> exponential(Pack<float, Width> x) {
  using Number = Pack<float, Width>;
  using Integers = typename Number::IntegerVector;
  using Numbers = typename Number::Vector;
  typedef std::uint32_t Unsigned __attribute__((vector_size(Width * sizeof(float))));
  // Adding it to a number below 2^22 in magnitude leaves the nearest integer in the low bits.
  constexpr float whole_shift = 0x1.8p23f;
  constexpr std::int32_t whole_shift_bits = 0x4b400000;
  constexpr std::int32_t magnitude_mask = INT32_MAX;
  constexpr std::int32_t limit_bits = 0x43000000;  // 128
  const Integers x_bits = (Integers)x.lanes;
  const Integers limited = (x_bits & ~magnitude_mask) | limit_bits;
  const Number clamped = Number::of((Numbers)((x_bits & magnitude_mask) > limit_bits ? limited : x_bits));
  // floor: to the nearest integer, then one less where that is above.
  const Number scaled = clamped * Number(0x1.715476p+0f) + Number(0.5f);
  const Number nearest = (scaled + Number(whole_shift)) - Number(whole_shift);
  const Number k = select(nearest > scaled, nearest - Number(1.0f), nearest);
  const Number r = (clamped - k * Number(0x1.62e4p-1f)) - k * Number(0x1.7f7d1cp-20f);
  Number p = Number(0x1.6a2438p-10f);
  p = p * r + Number(0x1.1239f2p-7f);
  p = p * r + Number(0x1.5558f2p-5f);
  p = p * r + Number(0x1.555492p-3f);
  p = p * r + Number(0x1.fffffcp-2f);
  const Integers bits = (Integers)(Number(1.0f) + (r + (r * r) * p)).lanes;
  const Integers power = (Integers)(k + Number(whole_shift)).lanes - whole_shift_bits;
  const Integers exponent = (bits >> 23) + power;
  // Unsigned, since lanes that the next two lines replace may pass the signed range.
  Integers result = (Integers)((Unsigned)bits + ((Unsigned)power << 23));
  result = exponent > 254 ? Integers{} + static_cast<std::int32_t>(largest_finite_bits) : result;
  result = exponent < 1 ? Integers{} : result;
  return Number::of((Numbers)result);
}

}  // namespace cingulum::numerics
