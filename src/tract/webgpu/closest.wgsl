// Mirrors closest_step of src/tract/kernel/closest.hpp on spherical functions: the peak nearest to the direction of travel.

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  apply_threshold(fill_amplitudes(!ask.initial, ahead));
  if (ask.initial) {
    return initial_directions(ask);
  }
  let count = find_peaks(most_initial_directions);
  if (count == 0u) {
    return no_step(ask);
  }
  let nearest = nearest_peak(count, ahead);
  if (!(dot_vec3(nearest, ahead) >= plan.cos_max_angle)) {
    return no_step(ask);
  }
  return step_along(ask, nearest);
}
