// Mirrors closest_step of src/tract/kernel/closest.hpp on spherical functions: the peak nearest to the direction of travel.

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  apply_threshold(fill_amplitudes(corners, !ask.initial, ahead));
  var peaks: Peaks;
  find_peaks(select(most_initial_directions, initial_limit(), ask.initial), &peaks);
  if (ask.initial) {
    for (var i = 0u; i < peaks.count; i++) {
      keep_initial_direction(i, slot_direction(peaks.slot[i]));
    }
    return Answer(peaks.count, ask.position, ask.frame);
  }
  if (peaks.count == 0u) {
    return no_step(ask);
  }
  let nearest = nearest_peak(&peaks, ahead);
  if (!(dot_vec3(nearest, ahead) >= plan.cos_max_angle)) {
    return no_step(ask);
  }
  return step_along(ask, nearest);
}
