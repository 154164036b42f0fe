// The logarithm, sine and cosine of elementary.hpp and the blocks of philox.hpp, a number per lane: the same operations
// in the same order, so every lane has the bits of the scalar function (lanes_test_body.hpp). Called by the getters
// that work on all gradients (boot) or all candidates (ptt) at once.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float lane_logarithm(const typename Lanes::Float& x) {
  using Float = typename Lanes::Float;
  using Word = typename Lanes::Word;
  constexpr std::uint32_t root_half_bits = 0x3f3504f3u;
  const auto number = [](float value) { return Lanes::broadcast(value); };
  const auto word = [](std::uint32_t value) { return Lanes::broadcast(value); };
  Word bits = Lanes::bits_of(x);
  const Word replaced =
      Lanes::select(Lanes::less(word(sign_bit - 1u), bits), word(smallest_normal_bits), word(largest_finite_bits));
  bits = Lanes::select(Lanes::less(word(infinity_bits - 1u), bits), replaced, bits);
  bits = Lanes::select(Lanes::less(bits, word(smallest_normal_bits)), word(smallest_normal_bits), bits);
  const Word shifted = Lanes::add(bits, word(0x3f800000u - root_half_bits));
  const Float k = Lanes::float_of_integer(Lanes::subtract(Lanes::template shift_right<23>(shifted), word(127u)));
  const Float f = Lanes::subtract(
      Lanes::float_of_bits(Lanes::add(Lanes::bits_and(shifted, word(0x7fffffu)), word(root_half_bits))), number(1.0f));
  const Float z = Lanes::multiply(f, f);
  Float p = number(0x1.1457a4p-4f);
  const auto next = [&](float coefficient) { p = Lanes::add(Lanes::multiply(p, f), number(coefficient)); };
  next(-0x1.de3c1p-4f);
  next(0x1.e6f06ap-4f);
  next(-0x1.fc2208p-4f);
  next(0x1.233768p-3f);
  next(-0x1.555c4ep-3f);
  next(0x1.99a4b6p-3f);
  next(-0x1.000006p-2f);
  next(0x1.555548p-2f);
  const Float curve = Lanes::subtract(Lanes::multiply(Lanes::multiply(f, z), p), Lanes::multiply(number(0.5f), z));
  const Float whole = Lanes::multiply(k, number(0x1.62e4p-1f));
  const Float head = Lanes::add(whole, f);
  const Float rest = Lanes::subtract(f, Lanes::subtract(head, whole));
  return Lanes::add(head, Lanes::add(rest, Lanes::add(curve, Lanes::multiply(k, number(0x1.7f7d1cp-20f)))));
}

// A block per lane.
template <class Lanes>
struct LaneBlocks {
  typename Lanes::Word word[4];
};

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneBlocks<Lanes> lane_philox4x32_10(LaneBlocks<Lanes> counter, std::uint32_t key_low,
                                                   std::uint32_t key_high) {
  constexpr std::uint32_t multiplier_0 = 0xd2511f53u;
  constexpr std::uint32_t multiplier_1 = 0xcd9e8d57u;
  for (int round = 0; round < 10; ++round) {
    const typename Lanes::Word high_0 = Lanes::high_product_with(counter.word[0], multiplier_0);
    const typename Lanes::Word low_0 = Lanes::multiply(counter.word[0], Lanes::broadcast(multiplier_0));
    const typename Lanes::Word high_1 = Lanes::high_product_with(counter.word[2], multiplier_1);
    const typename Lanes::Word low_1 = Lanes::multiply(counter.word[2], Lanes::broadcast(multiplier_1));
    counter = {{Lanes::bits_xor(Lanes::bits_xor(high_1, counter.word[1]), Lanes::broadcast(key_low)), low_1,
                Lanes::bits_xor(Lanes::bits_xor(high_0, counter.word[3]), Lanes::broadcast(key_high)), low_0}};
    key_low += 0x9e3779b9u;
    key_high += 0xbb67ae85u;
  }
  return counter;
}

template <class Lanes>
struct LaneSineCosine {
  typename Lanes::Float sine;
  typename Lanes::Float cosine;
};

// Sine and cosine of arguments whose magnitude is at most 256; beyond, and for NaN, those of 256 with the sign of x.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneSineCosine<Lanes> lane_sine_cosine(const typename Lanes::Float& x) {
  using Float = typename Lanes::Float;
  using Word = typename Lanes::Word;
  const auto number = [](float value) { return Lanes::broadcast(value); };
  const auto word = [](std::uint32_t value) { return Lanes::broadcast(value); };
  const Word bits = Lanes::bits_of(x);
  const Word magnitude = Lanes::bits_and(bits, word(~sign_bit));
  const Word limit_bits = word(float_bits(largest_angle));
  const Float limited = Lanes::float_of_bits(Lanes::select(
      Lanes::less(limit_bits, magnitude), Lanes::bits_or(Lanes::bits_and(bits, word(sign_bit)), limit_bits), bits));
  const Float k = Lanes::floor_of_lanes(Lanes::add(Lanes::multiply(limited, number(0x1.45f306p-1f)), number(0.5f)));
  const Float coarse = Lanes::subtract(limited, Lanes::multiply(k, number(0x1.921ep+0f)));
  const Float correction = Lanes::multiply(k, number(0x1.b544p-16f));
  const Float remainder = Lanes::subtract(coarse, correction);
  const Float tail = Lanes::subtract(Lanes::subtract(Lanes::subtract(coarse, remainder), correction),
                                     Lanes::multiply(k, number(0x1.0b4612p-34f)));
  const Word quadrant = Lanes::integer_of_float(k);
  const Float z = Lanes::multiply(remainder, remainder);
  Float p = number(0x1.6cd16ep-19f);
  p = Lanes::add(Lanes::multiply(p, z), number(-0x1.a00f7cp-13f));
  p = Lanes::add(Lanes::multiply(p, z), number(0x1.111108p-7f));
  p = Lanes::add(Lanes::multiply(p, z), number(-0x1.555556p-3f));
  const Float s = Lanes::add(remainder, Lanes::add(tail, Lanes::multiply(Lanes::multiply(remainder, z), p)));
  Float q = number(0x1.99eaf8p-16f);
  q = Lanes::add(Lanes::multiply(q, z), number(-0x1.6c0c32p-10f));
  q = Lanes::add(Lanes::multiply(q, z), number(0x1.55554ap-5f));
  const Float half_z = Lanes::multiply(number(0.5f), z);
  const Float head = Lanes::subtract(number(1.0f), half_z);
  const Float c = Lanes::add(
      head, Lanes::add(Lanes::subtract(Lanes::subtract(number(1.0f), head), half_z),
                       Lanes::subtract(Lanes::multiply(Lanes::multiply(z, z), q), Lanes::multiply(remainder, tail))));
  const typename Lanes::Mask swapped = Lanes::less(word(0u), Lanes::bits_and(quadrant, word(1u)));
  // Bit 1 of the quadrant, and of the quadrant plus one, moved to the place of the sign.
  const Word sine_sign = Lanes::template shift_left<30>(Lanes::bits_and(quadrant, word(2u)));
  const Word cosine_sign = Lanes::template shift_left<30>(Lanes::bits_and(Lanes::add(quadrant, word(1u)), word(2u)));
  const Float sine_value =
      Lanes::float_of_bits(Lanes::bits_xor(Lanes::bits_of(Lanes::select(swapped, c, s)), sine_sign));
  const Float cosine_value =
      Lanes::float_of_bits(Lanes::bits_xor(Lanes::bits_of(Lanes::select(swapped, s, c)), cosine_sign));
  return {Lanes::select(Lanes::less(magnitude, word(0x39800000u)), x, sine_value), cosine_value};
}

}  // namespace cingulum::numerics
