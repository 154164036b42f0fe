// Mirrors src/tract/kernel/find_peaks.hpp: the peaks of the values at the slots.

// The slots of the peaks found last: lane i has that of peak i.
var<private> peak_slot: u32;

// The greatest of this lane's survivors, whose rows are the bits of `rows`.
fn greatest_survivor(rows: vec2<u32>) -> SlotMaximum {
  var best = SlotMaximum(empty_slot_value, no_slot);
  for (var word = 0u; word < 2u; word++) {  // unrolled
    for (var bits = rows[word]; bits != 0u; bits &= bits - 1u) {
      let slot = 32u * (32u * word + firstTrailingBit(bits)) + lane_index;
      if (value_at(slot) > best.value) {
        best = SlotMaximum(value_at(slot), slot);
      }
    }
  }
  return best;
}

// At most `limit` peaks of own_values, by descending value, then slot; returns their number.
fn find_peaks(limit: u32) -> u32 {
  publish_values();
  var greatest = empty_slot_value;
  var least = -empty_slot_value;
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let occupied = is_occupied(row);
    let value = value_at(32u * row + lane_index);
    greatest = greater_number(select(empty_slot_value, value, occupied), greatest);
    least = lesser_number(select(-empty_slot_value, value, occupied), least);
  }
  let top = fold_greatest(greatest);
  if (!(top >= 0.0)) {
    return 0u;
  }
  let bottom = fold_least(least);
  let base = select(0.0, bottom, bottom > 0.0);
  let needed = mul(plan.relative_peak_threshold, pin(top - base));
  var survivors = vec2<u32>(0u, 0u);
  var own = SlotMaximum(empty_slot_value, no_slot);
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let slot = 32u * row + lane_index;
    let value = value_at(slot);
    // Without branches, so that no read waits for another.
    var above_one = false;
    var below_one = false;
    for (var column = 0u; column < neighbour_columns(); column++) {  // unrolled
      let other = value_at(tables[plan.at_neighbours + 32u * sphere_rows() * column + slot]);
      above_one = above_one | (value > other);
      below_one = below_one | (other > value);
    }
    if (is_occupied(row) && pin(value - base) >= needed && above_one && !below_one) {
      survivors[row / 32u] |= 1u << (row % 32u);
      if (value > own.value) {
        own = SlotMaximum(value, slot);
      }
    }
  }
  var peak_direction = vec3<f32>(0.0, 0.0, 0.0);  // lane i has that of peak i
  var count = 0u;
  while (count < limit) {
    let best = fold_maximum(own);
    if (best.slot == no_slot) {
      break;
    }
    if (own.slot == best.slot) {
      let row = best.slot / 32u;
      survivors[row / 32u] &= ~(1u << (row % 32u));
      own = greatest_survivor(survivors);
    }
    let direction = slot_direction(best.slot);
    let cosine = dot_vec3(direction, peak_direction);
    let distance = select(cosine, absolute(cosine), sphere_is_hemisphere());
    if (lanes_ballot(lane_index < count && distance > plan.cos_min_separation) == 0u) {
      if (lane_index == count) {
        peak_slot = best.slot;
        peak_direction = direction;
      }
      count += 1u;
    }
  }
  return count;
}

// As the lanes' initial directions.
fn keep_initial_peaks(count: u32) {
  if (lane_index < count) {
    initial_direction = slot_direction(peak_slot);
  }
}
