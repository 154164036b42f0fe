// Mirrors det_step of src/tract/kernel/det.hpp: the largest amplitude in the cone. refined() is in det_vertex.wgsl or
// det_refined.wgsl.

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  let threshold = fill_amplitudes(!ask.initial, ahead);
  if (ask.initial) {
    apply_threshold(threshold);
    return initial_directions(ask);
  }
  var own = SlotMaximum(empty_slot_value, no_slot);
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let slot = 32u * row + lane_index;
    let value = select(0.0, own_values[row], row_cosine(row, ahead) >= plan.cos_max_angle);
    if (value > own.value) {
      own = SlotMaximum(value, slot);
    }
  }
  let best = fold_maximum(own);
  if (!(best.value > 0.0 && best.value >= threshold)) {
    return no_step(ask);
  }
  return step_along(ask, refined(corners, aligned_direction(best.slot, ahead), ahead));
}
