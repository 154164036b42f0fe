// An A-line moved by a number of voxels, linear between neighbours; mirrored by webgpu/roll_lines.wgsl.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"
#include "oct/kernel/line_index.hpp"

namespace cingulum::oct {

struct LineShift {
  std::int32_t whole;  // within the line if circular, else at most one line and one voxel beyond it
  float fraction;
};

CGL_HD inline LineShift line_shift(float by, std::int32_t depth, bool circular) {
  const float below = numerics::floor_of(by);
  const std::int32_t whole = numerics::float_to_int32(below);
  if (circular) return {modulo(whole, depth), by - below};
  const std::int32_t most = depth + 1;
  return {whole < -most ? -most : (whole > most ? most : whole), by - below};
}

// Between the sample at the shifted place and the one behind it.
CGL_HD inline float rolled(float fraction, float low, float high) {
  return (1.0f - fraction) * low + fraction * high;
}

}  // namespace cingulum::oct
