// 1 / root(x) as written, a root rounded and a division rounded, without either where x is near one: there both are
// integer arithmetic on the bits. Called where a vector is normalised that is a unit vector but for rounding, by
// kernels for which exact roots and divisions are long. Held by:
// InverseRoot.has_the_bits_of_a_root_and_a_division_around_one and
// InverseRoot.has_the_bits_of_a_root_and_a_division_elsewhere.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::numerics {

// x = 1 + i / 2^23 for i >= 0 and 1 + i / 2^24 below. Half of that rounds to even steps of the root, the correction of
// second order always rounding ties down; and so once more for the quotient, where it rounds ties up. Holds while the
// second order is below a quarter of a step: |i| <= 1024 (inverse_root.test.cpp tries all).
CGL_HD inline float inverse_root(float x) {
  constexpr std::uint32_t one = 0x3f800000u;
  constexpr std::uint32_t near = 1024u;
  const std::uint32_t i = float_bits(x) - one;
  if (i + near <= 2u * near) {
    const std::uint32_t above = one - (i & ~1u);
    const std::uint32_t below = one + ((3u - i) >> 2u);
    return bits_float(static_cast<std::int32_t>(i) >= 0 ? above : below);
  }
  return 1.0f / root(x);
}

}  // namespace cingulum::numerics
