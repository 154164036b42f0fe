// Samples beyond the ends of a line, by whole numbers; mirrored by webgpu/oct_index.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "oct/boundary.hpp"

namespace cingulum::oct {

// Samples d c b a | a b c d | d c b a, for lines of any length.
CGL_HD inline std::int32_t reflected(std::int32_t index, std::int32_t count) {
  while (index < 0 || index >= count) index = index < 0 ? -1 - index : 2 * count - 1 - index;
  return index;
}

CGL_HD inline std::int32_t modulo(std::int32_t index, std::int32_t count) {
  const std::int32_t remainder = index % count;
  return remainder < 0 ? remainder + count : remainder;
}

// The sample that a tap reads. Boundary::constant mirrors: whoever asks lies inside, its neighbours may not.
CGL_HD inline std::int32_t tap_index(std::int32_t index, std::int32_t count, Boundary boundary) {
  if (index >= 0 && index < count) return index;
  if (boundary == Boundary::nearest) return index < 0 ? 0 : count - 1;
  if (boundary == Boundary::wrap) return modulo(index, count);
  if (boundary == Boundary::reflect) {
    const std::int32_t within = modulo(index, 2 * count);
    return within < count ? within : 2 * count - 1 - within;
  }
  if (count == 1) return 0;
  const std::int32_t within = modulo(index, 2 * count - 2);
  return within < count ? within : 2 * count - 2 - within;
}

}  // namespace cingulum::oct
