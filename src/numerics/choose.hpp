// The two choices of the contract, section 3: the slot of the greatest value, and a slot drawn in proportion to its
// weight. Called by peak finding and by the probabilistic getters. `Lanes` is PortableLanes, Avx2Lanes or WarpLanes.
// Mirrored by wgsl/choose.wgsl.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/lane_sum.hpp"
#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

inline constexpr std::uint32_t no_slot = 0xffffffffu;

// A slot that holds this, the lowest finite number, counts as empty where a maximum is sought.
inline constexpr float empty_slot_value = -0x1.fffffep127f;

struct SlotMaximum {
  float value;
  std::uint32_t slot;
};

// The greatest value of slots 0 .. slots - 1; among equals (+0.0 and -0.0 are equal) the lowest slot. If there are no
// slots, or all are empty, {empty_slot_value, no_slot}.
CGL_HD_GENERIC
template <class Lanes, class RowValue>
CGL_HD inline SlotMaximum maximum(std::uint32_t slots, RowValue&& row_value) {
  typename Lanes::Float best = Lanes::broadcast(empty_slot_value);
  typename Lanes::Word best_slot = Lanes::broadcast(no_slot);
  const typename Lanes::Word end = Lanes::broadcast(slots);
  for (std::uint32_t row = 0; row < row_count(slots); ++row) {
    const typename Lanes::Float value = row_value(row);
    const typename Lanes::Word slot = Lanes::slots_of_row(row);
    const typename Lanes::Mask better = Lanes::both(Lanes::greater(value, best), Lanes::less(slot, end));
    best = Lanes::select(better, value, best);
    best_slot = Lanes::select(better, slot, best_slot);
  }
  const auto fold = [&](const typename Lanes::Float& other, const typename Lanes::Word& other_slot) {
    const typename Lanes::Mask better = Lanes::either(
        Lanes::greater(other, best), Lanes::both(Lanes::equal(other, best), Lanes::less(other_slot, best_slot)));
    best = Lanes::select(better, other, best);
    best_slot = Lanes::select(better, other_slot, best_slot);
  };
  fold(Lanes::template exchange<16>(best), Lanes::template exchange<16>(best_slot));
  fold(Lanes::template exchange<8>(best), Lanes::template exchange<8>(best_slot));
  fold(Lanes::template exchange<4>(best), Lanes::template exchange<4>(best_slot));
  fold(Lanes::template exchange<2>(best), Lanes::template exchange<2>(best_slot));
  fold(Lanes::template exchange<1>(best), Lanes::template exchange<1>(best_slot));
  return {Lanes::get(best, 0u), Lanes::get(best_slot, 0u)};
}

// The lane that holds the chosen slot, and where the running sum stands before it.
struct LaneChoice {
  bool found;  // false: the total is not above zero, there is no choice
  std::uint32_t lane;
  float threshold;
  float reached;
};

// `lane_weights` are the sums of each lane's weights (sum_rows). A parallel scan is not monotone in floating point: a
// lane of weight zero may pass the threshold, or none may. Hence the tests for t > 0 and the rule for the last lane.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneChoice choose_lane(const typename Lanes::Float& lane_weights, float u) {
  typename Lanes::Float scan = lane_weights;
  scan = Lanes::template add_from_below<1>(scan);
  scan = Lanes::template add_from_below<2>(scan);
  scan = Lanes::template add_from_below<4>(scan);
  scan = Lanes::template add_from_below<8>(scan);
  scan = Lanes::template add_from_below<16>(scan);
  const float total = Lanes::get(scan, 31u);
  if (!(total > 0.0f)) return {false, 0u, 0.0f, 0.0f};
  const float threshold = u * total;
  const std::uint32_t positive = Lanes::ballot(Lanes::greater(lane_weights, Lanes::broadcast(0.0f)));
  const std::uint32_t above = Lanes::ballot(Lanes::greater(scan, Lanes::broadcast(threshold))) & positive;
  const std::uint32_t lane = above != 0u ? lowest_set_bit(above) : highest_set_bit(positive);
  return {true, lane, threshold, lane == 0u ? 0.0f : Lanes::get(scan, lane - 1u)};
}

// The search within the chosen lane, slot after slot.
struct SlotSearch {
  float reached;
  std::uint32_t chosen;
  std::uint32_t last;
};

// Without branches: whether a weight is zero cannot be guessed.
CGL_HD constexpr SlotSearch consider_slot(SlotSearch search, std::uint32_t slot, float weight, float threshold) {
  const float reached = search.reached + weight;
  const bool positive = weight > 0.0f;
  const bool passed = static_cast<bool>(static_cast<unsigned>(positive) & static_cast<unsigned>(reached > threshold) &
                                        static_cast<unsigned>(search.chosen == no_slot));
  return {reached, passed ? slot : search.chosen, positive ? slot : search.last};
}

// Weights are not negative; u is in [0, 1). A slot of weight zero is never chosen; no_slot where the total is zero.
CGL_HD_GENERIC
template <class Lanes, class RowWeight>
CGL_HD inline std::uint32_t choose_by_weight(std::uint32_t slots, float u, RowWeight&& row_weight) {
  const LaneChoice choice = choose_lane<Lanes>(sum_rows<Lanes>(slots, row_weight), u);
  if (!choice.found) return no_slot;
  SlotSearch search{choice.reached, no_slot, no_slot};
  for (std::uint32_t row = 0; row < row_count(slots); ++row) {
    const float weight = Lanes::get(row_weight(row), choice.lane);
    search = consider_slot(search, lane_count * row + choice.lane, weight, choice.threshold);
  }
  return search.chosen != no_slot ? search.chosen : search.last;
}

}  // namespace cingulum::numerics
