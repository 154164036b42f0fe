// Mirrors closest_step of src/tract/kernel/closest.hpp and find_initial_directions of src/tract/kernel/track.hpp on a field of
// peaks, which are not interpolated.

fn stored_peak(address: RecordAddress, i: u32) -> vec3<f32> {
  return vec3<f32>(field_number(address, 3u * i), field_number(address, 3u * i + 1u), field_number(address, 3u * i + 2u));
}

// By descending amplitude: the next is the greatest among those after (in this order) the last one taken.
fn initial_stored_peaks(ask: Ask, address: RecordAddress) -> Answer {
  var count = 0u;
  var last = no_slot;
  var last_square = -empty_slot_value;
  while (count < initial_limit()) {
    var best = no_slot;
    var best_square = 0.0;
    for (var i = 0u; i < channels() / 3u; i++) {
      let peak = stored_peak(address, i);
      let square = pin(dot_vec3(peak, peak));
      let is_after = square < last_square || (square == last_square && last != no_slot && i > last);
      if (is_after && square > best_square) {
        best = i;
        best_square = square;
      }
    }
    if (best == no_slot) {
      break;
    }
    last = best;
    last_square = best_square;
    let unit = normalise(stored_peak(address, best));
    if (!(pin(dot_vec3(unit, unit)) > 0.0)) {
      break;
    }
    keep_initial_direction(count, unit);
    count++;
  }
  return Answer(count, ask.position, ask.frame);
}

fn read_point(corners: ptr<function, Corners>) -> f32 {
  return lanes_same(interpolate_channel(corners, channels()));
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let address = nearest_address(ask.position);
  if (ask.initial) {
    return initial_stored_peaks(ask, address);
  }
  let ahead = ask.frame.tangent;
  var nearest = vec3<f32>(0.0, 0.0, 0.0);
  var cosine = -2.0;
  for (var i = 0u; i < channels() / 3u; i++) {
    let unit = normalise(stored_peak(address, i));
    let signed_cosine = pin(dot_vec3(unit, ahead));
    if (pin(dot_vec3(unit, unit)) > 0.0 && absolute(signed_cosine) > cosine) {
      nearest = select(unit, -unit, signed_cosine < 0.0);
      cosine = absolute(signed_cosine);
    }
  }
  if (!(cosine >= plan.cos_max_angle)) {
    return no_step(ask);
  }
  return step_along(ask, nearest);
}
