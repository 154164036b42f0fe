// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2,
// 3 (SC 2011). A block of four words is a function of a key and a counter: no state, no streams. random.hpp says which
// counter serves which draw; nothing else calls this. Mirrored by wgsl/philox.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::numerics {

struct PhiloxBlock {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t low;
  std::uint32_t high;
};

CGL_HD constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

CGL_HD constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
  constexpr std::uint32_t multiplier_0 = 0xd2511f53u;
  constexpr std::uint32_t multiplier_1 = 0xcd9e8d57u;
  constexpr std::uint32_t weyl_0 = 0x9e3779b9u;  // golden ratio
  constexpr std::uint32_t weyl_1 = 0xbb67ae85u;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t high_0 = high_product(multiplier_0, counter.word[0]);
    const std::uint32_t low_0 = multiplier_0 * counter.word[0];
    const std::uint32_t high_1 = high_product(multiplier_1, counter.word[2]);
    const std::uint32_t low_1 = multiplier_1 * counter.word[2];
    counter = {{high_1 ^ counter.word[1] ^ key.low, low_1, high_0 ^ counter.word[3] ^ key.high, low_0}};
    key.low += weyl_0;
    key.high += weyl_1;
  }
  return counter;
}

}  // namespace cingulum::numerics
