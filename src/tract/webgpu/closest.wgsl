// Mirrors closest_step of src/tract/kernel/closest.hpp on spherical functions: the peak nearest to the direction of travel.

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  apply_threshold(fill_amplitudes(!ask.initial, ahead));
  if (ask.initial && plan.draws_start != 0u) {
    return Answer(keep_drawn_direction(ask.seed), ask.position, ask.frame);
  }
  let count = find_peaks(select(most_initial_directions, initial_limit(), ask.initial));
  if (ask.initial) {
    keep_initial_peaks(count);
    return Answer(count, ask.position, ask.frame);
  }
  if (count == 0u) {
    return no_step(ask);
  }
  let nearest = nearest_peak(count, ahead);
  if (!(dot_vec3(nearest, ahead) >= plan.cos_max_angle)) {
    return no_step(ask);
  }
  return step_along(ask, nearest);
}
