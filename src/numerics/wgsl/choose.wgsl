// Mirrors src/numerics/choose.hpp: the slot of the greatest value, and a slot drawn in proportion to its weight.

struct SlotMaximum {
  value: f32,
  slot: u32,
}

fn greater_of(best: SlotMaximum, other: SlotMaximum) -> SlotMaximum {
  let better = other.value > best.value || (other.value == best.value && other.slot < best.slot);
  return SlotMaximum(select(best.value, other.value, better), select(best.slot, other.slot, better));
}

fn exchange_maximum(best: SlotMaximum, distance: u32) -> SlotMaximum {
  return SlotMaximum(lanes_exchange(best.value, distance), lanes_exchange_word(best.slot, distance));
}

// The greatest of the lanes' own maxima, the same in all lanes.
fn fold_maximum(own: SlotMaximum) -> SlotMaximum {
  var best = own;
  for (var distance = 16u; distance != 0u; distance = distance / 2u) {
    best = greater_of(best, exchange_maximum(best, distance));
  }
  return SlotMaximum(lanes_get(best.value, 0u), lanes_get_word(best.slot, 0u));
}

fn maximum(slots: u32, rows: ptr<function, LaneRows>) -> SlotMaximum {
  var best = SlotMaximum(empty_slot_value, no_slot);
  for (var row = 0u; row < row_count(slots); row++) {
    let value = (*rows)[row];
    let slot = 32u * row + lane_index;
    if (value > best.value && slot < slots) {
      best = SlotMaximum(value, slot);
    }
  }
  return fold_maximum(best);
}

struct LaneChoice {
  found: bool,
  lane: u32,
  threshold: f32,
  reached: f32,
}

fn choose_lane(lane_weight: f32, u: f32) -> LaneChoice {
  var scan = lane_weight;
  scan = lanes_add_from_below(scan, 1u);
  scan = lanes_add_from_below(scan, 2u);
  scan = lanes_add_from_below(scan, 4u);
  scan = lanes_add_from_below(scan, 8u);
  scan = lanes_add_from_below(scan, 16u);
  let total = lanes_get(scan, 31u);
  if (!(total > 0.0)) {
    return LaneChoice(false, 0u, 0.0, 0.0);
  }
  let threshold = mul(u, total);
  let positive = lanes_ballot(lane_weight > 0.0);
  let above = lanes_ballot(scan > threshold) & positive;
  let lane = select(firstLeadingBit(positive), firstTrailingBit(above), above != 0u);
  let before = lanes_get(scan, (lane - 1u) & 31u);
  return LaneChoice(true, lane, threshold, select(before, 0.0, lane == 0u));
}

struct SlotSearch {
  reached: f32,
  chosen: u32,
  last: u32,
}

fn consider_slot(search: SlotSearch, slot: u32, weight: f32, threshold: f32) -> SlotSearch {
  var next = search;
  next.reached = search.reached + weight;
  if (weight > 0.0) {
    next.last = slot;
    if (search.chosen == no_slot && next.reached > threshold) {
      next.chosen = slot;
    }
  }
  return next;
}

// Every lane searches its own slots; the answer of the chosen lane counts.
fn choose_by_weight(slots: u32, u: f32, rows: ptr<function, LaneRows>) -> u32 {
  let choice = choose_lane(sum_rows(slots, rows), u);
  if (!choice.found) {
    return no_slot;
  }
  var search = SlotSearch(choice.reached, no_slot, no_slot);
  for (var row = 0u; row < row_count(slots); row++) {
    search = consider_slot(search, 32u * row + lane_index, (*rows)[row], choice.threshold);
  }
  return lanes_get_word(select(search.last, search.chosen, search.chosen != no_slot), choice.lane);
}
