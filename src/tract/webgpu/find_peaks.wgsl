// Mirrors src/tract/kernel/find_peaks.hpp: the peaks of the values at the slots.

const most_initial_directions = 32u;

struct Peaks {
  count: u32,
  slot: array<u32, 32>,
}

fn is_local_maximum(slot: u32) -> bool {
  let own = values[slot];
  var above_one = false;
  for (var column = 0u; column < neighbour_columns(); column++) {
    let other = values[tables[plan.at_neighbours + 32u * sphere_rows() * column + slot]];
    if (other > own) {
      return false;
    }
    above_one = above_one || own > other;
  }
  return above_one;
}

fn is_near_a_peak(peaks: ptr<function, Peaks>, slot: u32) -> bool {
  let direction = slot_direction(slot);
  for (var i = 0u; i < (*peaks).count; i++) {
    let cosine = dot_vec3(direction, slot_direction((*peaks).slot[i]));
    if (select(cosine, absolute(cosine), sphere_is_half()) > plan.cos_min_separation) {
      return true;
    }
  }
  return false;
}

// The greatest of this lane's survivors, whose rows are the bits of `rows`.
fn greatest_survivor(rows: vec2<u32>) -> SlotMaximum {
  var best = SlotMaximum(empty_slot_value, no_slot);
  for (var word = 0u; word < 2u; word++) {
    for (var bits = rows[word]; bits != 0u; bits &= bits - 1u) {
      let slot = 32u * (32u * word + firstTrailingBit(bits)) + lane_index;
      if (values[slot] > best.value) {
        best = SlotMaximum(values[slot], slot);
      }
    }
  }
  return best;
}

// At most `limit` peaks, by descending value, then slot. All lanes' values are written.
fn find_peaks(limit: u32, peaks: ptr<function, Peaks>) {
  (*peaks).count = 0u;
  lanes_barrier();
  var greatest = empty_slot_value;
  var least = -empty_slot_value;
  for (var row = 0u; row < sphere_rows(); row++) {
    if (is_occupied(row)) {
      let value = values[32u * row + lane_index];
      greatest = select(greatest, value, value > greatest);
      least = select(least, value, value < least);
    }
  }
  let top = fold_greatest(greatest);
  if (!(top >= 0.0)) {
    return;
  }
  let bottom = fold_least(least);
  let base = select(0.0, bottom, bottom > 0.0);
  let needed = mul(plan.relative_peak_threshold, pin(top - base));
  var survivors = vec2<u32>(0u, 0u);
  for (var row = 0u; row < sphere_rows(); row++) {
    let slot = 32u * row + lane_index;
    if (is_occupied(row) && pin(values[slot] - base) >= needed) {
      if (is_local_maximum(slot)) {
        survivors[row / 32u] |= 1u << (row % 32u);
      }
    }
  }
  var own = greatest_survivor(survivors);
  while ((*peaks).count < limit) {
    let best = fold_maximum(own);
    if (best.slot == no_slot) {
      break;
    }
    if (own.slot == best.slot) {
      let row = best.slot / 32u;
      survivors[row / 32u] &= ~(1u << (row % 32u));
      own = greatest_survivor(survivors);
    }
    if (!is_near_a_peak(peaks, best.slot)) {
      (*peaks).slot[(*peaks).count] = best.slot;
      (*peaks).count += 1u;
    }
  }
}
