// Sums over the elements of a buffer by the lanes of an actor, in one order whatever the number of lanes: element i
// belongs to strand i mod 256, a strand adds its elements in ascending order, and strands are joined pairwise (0 + 128,
// 1 + 129,
// ..., then 0 + 64, ...). A CPU thread and a CUDA block of any size get the same bits. Bodies of the workloads use it.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::ring {

constexpr std::uint32_t strand_count = 256;

struct Add {
  CGL_HD double operator()(double a, double b) const { return a + b; }
};
struct Maximum {
  CGL_HD double operator()(double a, double b) const { return b > a ? b : a; }
};

// Strand 0 joined with 128, 1 with 129 and so on, then 0 with 64, ...: what all of them come to. By all lanes together,
// which share `strands`; all get the result. Ends with the strands free.
CGL_HD_GENERIC template <class Context, class Value, class Join>
CGL_HD Value join_strands(Context& context, Value* strands, const Join& join) {
  context.sync();
  for (std::uint32_t half = strand_count / 2; half > 0; half /= 2) {
    for (std::uint32_t s = context.lane(); s < half; s += context.lanes())
      strands[s] = join(strands[s], strands[s + half]);
    context.sync();
  }
  const Value result = strands[0];
  context.sync();
  return result;
}

// Calls tile(first, size) for `count` elements in tiles of one element a strand, the last of which may be smaller.
CGL_HD_GENERIC template <class Context, class Tile>
CGL_HD void for_each_tile(Context& context, std::uint32_t count, const Tile& tile) {
  for (std::uint32_t first = 0; first < count; first += strand_count) {
    if (first % 65536 == 0) context.heartbeat();  // a single lane may be at it for long
    tile(first, count - first < strand_count ? count - first : strand_count);
  }
}

// Joins term(0), ..., term(count - 1) with `join`, whose neutral element is 0 (sums; maxima of what is not negative).
// `strands`: 256 numbers that the lanes share. By all lanes together; all get the result. Ends with the strands free.
CGL_HD_GENERIC template <class Context, class Term, class Join>
CGL_HD double join_over_lanes(Context& context, double* strands, std::uint32_t count, const Term& term,
                              const Join& join) {
  if (context.lanes() == 1) {
    // The same additions in the order of memory.
    for (std::uint32_t s = 0; s < strand_count; ++s) strands[s] = 0;
    for_each_tile(context, count, [&](std::uint32_t first, std::uint32_t size) {
      for (std::uint32_t s = 0; s < size; ++s) strands[s] = join(strands[s], term(first + s));
    });
  } else {
    for (std::uint32_t s = context.lane(); s < strand_count; s += context.lanes()) {
      double sum = 0;
      for (std::uint32_t i = s; i < count; i += strand_count) sum = join(sum, term(i));
      strands[s] = sum;
    }
  }
  return join_strands(context, strands, join);
}

// The largest of what the lanes bring; none is negative. `strands`: strand_count + lanes_per_group numbers that the
// lanes share. By all lanes together; all get the result. Two barriers where a sum has ten: the order does not matter.
constexpr std::uint32_t lanes_per_group = 16;
CGL_HD_GENERIC template <class Context>
CGL_HD double largest_over_lanes(Context& context, double* strands, double mine) {
  const std::uint32_t lanes = context.lanes();
  if (lanes == 1) return mine;
  const std::uint32_t groups = (lanes + lanes_per_group - 1) / lanes_per_group;
  const std::uint32_t lane = context.lane();
  strands[lane] = mine;
  context.sync();
  if (lane < groups) {
    double largest = 0;
    for (std::uint32_t i = lane * lanes_per_group; i < (lane + 1) * lanes_per_group && i < lanes; ++i) {
      largest = Maximum{}(largest, strands[i]);
    }
    strands[strand_count + lane] = largest;
  }
  context.sync();
  double largest = 0;
  for (std::uint32_t group = 0; group < groups; ++group) largest = Maximum{}(largest, strands[strand_count + group]);
  return largest;
}

}  // namespace cingulum::ring
