// Mirrors choose_stored of src/tract/kernel/prob.hpp: the choice by weight among own_values.

// Every lane searches its own slots; the answer of the chosen lane counts.
fn choose_own(lane_sum: f32, u: f32) -> u32 {
  let choice = choose_lane(lane_sum, u);
  if (!choice.found) {
    return no_slot;
  }
  var search = SlotSearch(choice.reached, no_slot, no_slot);
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    search = consider_slot(search, 32u * row + lane_index, own_values[row], choice.threshold);
  }
  return lanes_get_word(select(search.last, search.chosen, search.chosen != no_slot), choice.lane);
}
