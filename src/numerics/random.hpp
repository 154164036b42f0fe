// The draws of the contract, section 4: which Philox counter serves which draw, and how a word becomes a uniform, an
// integer, a normal variate or a bootstrap pick. Called by seeding, the direction getters, the phantom and the score.
// A draw is a function of what it is for, never of how many draws came before it: there is nothing to advance or save.
// Mirrored by wgsl/random.wgsl.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/philox.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

enum class DrawPurpose : std::uint32_t {
  seed_position = 0,
  initial_direction = 1,
  step = 2,
  phantom_noise = 3,
  score = 4,
  shuffle = 5,
  oct_texture = 6,    // of the sample that `oct simulate` makes: a point of its lattice
  oct_speckle = 7,    // of a voxel of a tile
  oct_placement = 8,  // places, depths, turns and gains of tiles and slices
  first_free = 128,   // this and above are free for users' kernels
};

// Everything that tells one group of draws from another. The plan refuses runs that pass these widths.
struct DrawCounter {
  std::uint32_t index;              // global seed index; for noise the voxel index
  DrawPurpose purpose;              // 8 bits
  std::uint32_t initial_direction;  // 23 bits: which of the seed's initial directions
  std::uint32_t half;               // 1 bit: which of the streamline's two halves
  std::uint32_t step;               // for ptt the internal step, for noise the volume
  std::uint32_t attempt;            // 16 bits
};

// `block` has 16 bits and tells the blocks of one group apart.
CGL_HD constexpr PhiloxBlock counter_words(const DrawCounter& counter, std::uint32_t block) {
  return {{counter.index,
           (static_cast<std::uint32_t>(counter.purpose) << 24) | (counter.initial_direction << 1) | counter.half,
           counter.step, (counter.attempt << 16) | block}};
}

CGL_HD constexpr PhiloxBlock random_block(PhiloxKey key, const DrawCounter& counter, std::uint32_t block) {
  return philox4x32_10(counter_words(counter, block), key);
}

// Draw d of a group. Kernels that need several take whole blocks instead.
CGL_HD constexpr std::uint32_t random_word(PhiloxKey key, const DrawCounter& counter, std::uint32_t draw) {
  return random_block(key, counter, draw / 4u).word[draw % 4u];
}

// A uniform number in [0, 1), a multiple of 2^-24; exact.
CGL_HD constexpr float uniform_from_word(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
CGL_HD constexpr double uniform64_from_word(std::uint32_t word) {
  return static_cast<double>(word >> 8) * 0x1p-24;
}

// A whole number in [0, n), n > 0.
CGL_HD constexpr std::uint32_t integer_from_word(std::uint32_t word, std::uint32_t n) {
  return high_product(word, n);
}

template <class Real>
struct NormalPair {
  Real first;
  Real second;
};

// Box and Muller 1958, eq. 1 and 2. The words are draws 2i and 2i + 1; the pair, in this order (cosine first), is the
// normal variates 2i and 2i + 1. The radius is at most sqrt(48 ln 2) = 5.77 because u1 has 24 bits.
CGL_HD inline NormalPair<float> normals_from_words(std::uint32_t radius_word, std::uint32_t angle_word) {
  constexpr float two_pi = 0x1.921fb6p+2f;
  const float u1 = static_cast<float>((radius_word >> 8) + 1u) * 0x1p-24f;
  const float radius = root(-2.0f * logarithm(u1));
  const SineCosine<float> angle = sine_cosine(two_pi * uniform_from_word(angle_word));
  return {radius * angle.cosine, radius * angle.sine};
}

// The same in float64, for the phantom and the seeds; the same words, so equal to the float32 pair up to rounding.
CGL_HD inline NormalPair<double> normals64_from_words(std::uint32_t radius_word, std::uint32_t angle_word) {
  constexpr double two_pi = 0x1.921fb54442d18p+2;
  const double u1 = static_cast<double>((radius_word >> 8) + 1u) * 0x1p-24;
  const double radius = root(-2.0 * logarithm(u1));
  const SineCosine<double> angle = sine_cosine(two_pi * uniform64_from_word(angle_word));
  return {radius * angle.cosine, radius * angle.sine};
}

inline constexpr std::uint32_t bootstrap_picks_per_block = 5;

// Which of `count` residuals the gradient j = lane + 32 (5k + i) takes, from block lane + 32k and i = 0..4. Four picks
// use the upper 24 bits of a word each, ((x >> 8) count) >> 24, written as a high word so that any count fits; the
// fifth uses the low bytes that they left, x_0's byte highest, as one whole word.
CGL_HD constexpr std::uint32_t bootstrap_pick(const PhiloxBlock& block, std::uint32_t i, std::uint32_t count) {
  if (i < 4u) return high_product(block.word[i] & 0xffffff00u, count);
  const std::uint32_t joined = ((block.word[0] & 0xffu) << 24) | ((block.word[1] & 0xffu) << 16) |
                               ((block.word[2] & 0xffu) << 8) | (block.word[3] & 0xffu);
  return high_product(joined, count);
}

// The same for one gradient alone; a warp takes all five picks of a block at once instead.
CGL_HD constexpr std::uint32_t bootstrap_pick_of_gradient(PhiloxKey key, const DrawCounter& counter,
                                                          std::uint32_t gradient, std::uint32_t count) {
  const std::uint32_t lane = gradient % 32u;
  const std::uint32_t row = gradient / 32u;
  const PhiloxBlock block = random_block(key, counter, lane + 32u * (row / bootstrap_picks_per_block));
  return bootstrap_pick(block, row % bootstrap_picks_per_block, count);
}

}  // namespace cingulum::numerics
