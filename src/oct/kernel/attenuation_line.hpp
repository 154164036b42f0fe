// Attenuation of an A-line (Vermeer and others 2014): what a sample scatters over what is left below it; and values
// with the loss made up for. Mirrored by webgpu/attenuation_lines.wgsl and webgpu/compensate_lines.wgsl.
#pragma once

#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"

namespace cingulum::oct {

// `below` is the sum of the samples below, with what lies deeper than the last.
CGL_HD inline float attenuation_of(float value, float below, float scale) {
  if (!(value > 0.0f) || !(below > 0.0f)) return 0.0f;
  return numerics::logarithm(1.0f + value / below) * scale;
}

CGL_HD inline float compensated(float value, float depth, float strength, float least) {
  const float left = numerics::exponential(strength * depth);
  return value / (left > least ? left : least);
}

}  // namespace cingulum::oct
