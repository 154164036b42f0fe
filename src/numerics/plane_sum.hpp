// The plane sum of the contract, section 2: the lane sum of each row of an image, then the lane sum of the rows'
// results. This is the form in plain C++, for the host; the OCT kernels (oct/kernel/product_terms.hpp) have it for
// every device.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/lane_sum.hpp"

namespace cingulum::numerics {

// term(row, column) gives the terms of the image.
template <class Term>
[[nodiscard]] float plane_sum(std::uint32_t rows, std::uint32_t columns, Term&& term) {
  const auto sum_of = [](std::uint32_t slots, auto&& value) {
    return lane_sum<PortableLanes>(slots, [&](std::uint32_t row) {
      PortableLanes::Float lanes;
      for (std::uint32_t l = 0; l < lane_count; ++l) {
        const std::uint32_t slot = lane_count * row + l;
        lanes.lane[l] = slot < slots ? value(slot) : 0.0f;
      }
      return lanes;
    });
  };
  std::vector<float> sums(rows);
  for (std::uint32_t row = 0; row < rows; ++row) {
    sums[row] = sum_of(columns, [&](std::uint32_t column) { return term(row, column); });
  }
  return sum_of(rows, [&](std::uint32_t row) { return sums[row]; });
}

}  // namespace cingulum::numerics
