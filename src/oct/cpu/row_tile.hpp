// Transposes rows so that each lane of a pack has one of them: kernels that run along x then read and write whole
// packs. Host only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/pack.hpp"

namespace cingulum::oct {

// Rows [first, first + lanes) of `rows` with `length` values each; lanes past the last row repeat it.
template <class Number>
CGL_INLINE void load_rows(const float* from, std::uint64_t first, std::uint64_t rows, std::uint32_t length,
                          float* tile) {
  for (int lane = 0; lane < Number::width; ++lane) {
    const float* const row = from + std::min(first + static_cast<std::uint64_t>(lane), rows - 1) * length;
    for (std::uint32_t i = 0; i < length; ++i)
      tile[i * static_cast<std::size_t>(Number::width) + static_cast<std::size_t>(lane)] = row[i];
  }
}
template <class Number>
CGL_INLINE void store_rows(const float* tile, std::uint64_t first, std::uint64_t rows, std::uint32_t length,
                           float* to) {
  for (int lane = 0; lane < Number::width && first + static_cast<std::uint64_t>(lane) < rows; ++lane) {
    float* const row = to + (first + static_cast<std::uint64_t>(lane)) * length;
    for (std::uint32_t i = 0; i < length; ++i)
      row[i] = tile[i * static_cast<std::size_t>(Number::width) + static_cast<std::size_t>(lane)];
  }
}

}  // namespace cingulum::oct
