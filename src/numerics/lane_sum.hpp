// The lane sum of the contract, section 2: slot i belongs to lane i mod 32, each lane adds its slots in ascending
// order, a tree of five levels adds the lanes. Called for whatever is spread over directions, gradients or triangles.
// `Lanes` is PortableLanes, Avx2Lanes or WarpLanes; the result is the same bits on each. Mirrored by
// wgsl/lane_sum.wgsl.
#pragma once

#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

// Each lane's own sum; the tree is Lanes::fold_sum. `row_term(row)` gives the terms of slots 32 row to 32 row + 31,
// +0.0 past the last slot. These zeros are added like any other term.
CGL_HD_GENERIC
template <class Lanes, class RowTerm>
CGL_HD inline typename Lanes::Float sum_rows(std::uint32_t slots, RowTerm&& row_term) {
  if (slots == 0u) return Lanes::broadcast(0.0f);
  typename Lanes::Float partial = row_term(0u);
  for (std::uint32_t row = 1; row < row_count(slots); ++row) partial = Lanes::add(partial, row_term(row));
  return partial;
}

CGL_HD_GENERIC
template <class Lanes, class RowTerm>
CGL_HD inline float lane_sum(std::uint32_t slots, RowTerm&& row_term) {
  return Lanes::fold_sum(sum_rows<Lanes>(slots, row_term));
}

}  // namespace cingulum::numerics
