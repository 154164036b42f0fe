// One output of a filter along an axis, as CPU and CUDA compute it; mirrored by webgpu/filter_axis.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"

namespace cingulum::oct {

// `samples` is where the line's sample 0 stands, `stride` from one to the next; both may lie before the range.
CGL_HD inline float filtered_sample(const std::uint32_t* table, std::uint32_t outputs, std::uint32_t output,
                                    const float* samples, std::ptrdiff_t stride) {
  const std::uint32_t first = table[output];
  const std::uint32_t count = table[outputs + output];
  const std::uint32_t* const weights = table + 4 * std::size_t{outputs} + table[2 * std::size_t{outputs} + output];
  float sum = numerics::bits_float(table[3 * std::size_t{outputs} + output]);
  const float* at = samples + static_cast<std::ptrdiff_t>(first) * stride;
  for (std::uint32_t k = 0; k < count; ++k, at += stride) sum = sum + numerics::bits_float(weights[k]) * *at;
  return sum;
}

}  // namespace cingulum::oct
