// A float32 as an integer of the same order, so that ranks are counts; mirrored by webgpu/oct_index.wgsl.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::oct {

CGL_HD constexpr std::uint32_t ordered_key(float value) {
  const std::uint32_t bits = numerics::float_bits(value);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

CGL_HD constexpr float value_of_key(std::uint32_t key) {
  return numerics::bits_float((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

}  // namespace cingulum::oct
