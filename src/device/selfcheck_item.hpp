// The computation that `cingulum selfcheck` runs on every device: random draws, normal variates, a direction, an angle,
// an exponential and a logarithm, one item per index. Compiled for host and CUDA; webgpu/selfcheck.wgsl mirrors it.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

inline constexpr std::uint32_t selfcheck_words = 4;  // of output per item

CGL_HD inline void selfcheck_item(std::uint32_t index, std::uint32_t* out) {
  using namespace numerics;
  const DrawCounter counter{index, DrawPurpose::first_free, 0, 0, 0, 0};
  const PhiloxBlock block = random_block(PhiloxKey{0x43696e67u, 0x756c756du}, counter, 0);
  const NormalPair<float> a = normals_from_words(block.word[0], block.word[1]);
  const NormalPair<float> b = normals_from_words(block.word[2], block.word[3]);
  const Vec3 direction = normalise(Vec3{a.first, a.second, b.first});
  const float angle = arc_cosine(direction.z);
  const float decay = exponential(-(angle * b.second));
  out[0] = float_bits(direction.x);
  out[1] = float_bits(angle);
  out[2] = float_bits(decay);
  out[3] = float_bits(logarithm(decay + 1.0f) / angle);
}

}  // namespace cingulum
