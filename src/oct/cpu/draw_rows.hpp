// Blocks of random words for many counters at once: the bits of numerics::random_block, with the registers of this
// machine. Called by simulated_rows.cpp. Host only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/pack.hpp"
#include "numerics/random.hpp"

namespace cingulum::oct {

inline constexpr std::size_t draws_at_once = 64;

struct DrawnWords {
  std::uint32_t word[4][draws_at_once];
};

// Draws for draws_at_once counters: `index` has their first words, `others` the further ones.
void draw_blocks(numerics::PhiloxKey key, const std::uint32_t* index, const numerics::DrawCounter& others,
                 std::uint32_t block, DrawnWords& words, numerics::SimdLevel level);

}  // namespace cingulum::oct
