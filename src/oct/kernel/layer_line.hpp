// Which samples of an A-line lie just below its surface, and which lie clear above it; mirrored by
// webgpu/layer_sums.wgsl.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"

namespace cingulum::oct {

// Below the surface so many planes are left out, since it is known to about one and is not sharp; above it twice as
// many, since what lies above counts as free of tissue.
inline constexpr float surface_margin = 3.0f;
inline constexpr float water_margin = 6.0f;

inline constexpr std::uint32_t layer_planes = 8;

struct LineParts {
  std::int32_t first;  // sample of the tissue; the last one at most
  std::int32_t water;  // samples before this one lie clear above the surface; none where it is negative
};

CGL_HD inline LineParts line_parts(float surface, std::int32_t depth) {
  const float deepest = static_cast<float>(depth);
  const float within = surface < 0.0f ? 0.0f : (surface > deepest ? deepest : surface);
  const std::int32_t first = numerics::float_to_int32(numerics::floor_of(within + (surface_margin + 0.5f)));
  const std::int32_t water = numerics::float_to_int32(numerics::floor_of(within - (water_margin - 0.5f)));
  return {first < depth - 1 ? first : depth - 1, water};
}

}  // namespace cingulum::oct
