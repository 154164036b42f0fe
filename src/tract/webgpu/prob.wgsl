// Mirrors src/tract/kernel/prob.hpp: a direction drawn in proportion to its amplitude (choose_own.wgsl).

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  let threshold = fill_amplitudes(!ask.initial, ahead);
  if (ask.initial) {
    apply_threshold(threshold);
    return initial_directions(ask);
  }
  var sum = 0.0;
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let value = own_values[row];
    let kept = row_cosine(row, ahead) >= plan.cos_max_angle && value >= threshold;
    let weight = select(0.0, value, kept);
    sum = select(sum + weight, weight, row == 0u);
    own_values[row] = weight;
  }
  let counter = DrawCounter(ask.seed, draw_purpose_step, ask.direction, ask.half, ask.step, 0u);
  let u = uniform_from_word(random_word(vec2<u32>(plan.key_low, plan.key_high), counter, 0u));
  let slot = choose_own(sum, u);
  if (slot == no_slot) {
    return no_step(ask);
  }
  return step_along(ask, aligned_direction(slot, ahead));
}
