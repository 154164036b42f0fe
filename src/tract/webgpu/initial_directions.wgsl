// Mirrors find_initial_directions of src/tract/kernel/track.hpp on spherical functions, and src/tract/kernel/drawn_start.hpp:
// the peaks, or one direction drawn by the amplitudes, as the lanes' directions.

// Takes amplitudes in own_values that are thresholded; returns how many directions there are.
fn keep_initial_directions(seed: u32) -> u32 {
  if (plan.draws_start == 0u) {
    let count = find_peaks(initial_limit());
    keep_initial_peaks(count);
    return count;
  }
  let counter = DrawCounter(seed, draw_purpose_initial_direction, 0u, 0u, 0u, 0u);
  let u = uniform_from_word(random_word(vec2<u32>(plan.key_low, plan.key_high), counter, start_draw));
  var sum = own_values[0];
  for (var row = 1u; row < sphere_rows(); row++) {
    sum = sum + own_values[row];
  }
  let slot = choose_own(sum, u);
  if (slot == no_slot) {
    return 0u;
  }
  if (lane_index == 0u) {
    initial_direction = slot_direction(slot);
  }
  return 1u;
}

fn initial_directions(ask: Ask) -> Answer {
  return Answer(keep_initial_directions(ask.seed), ask.position, ask.frame);
}
