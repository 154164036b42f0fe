// Mirrors nearest_peak of src/tract/kernel/closest.hpp: each lane looks at its own. There is at least one peak.

fn nearest_peak(count: u32, ahead: vec3<f32>) -> vec3<f32> {
  var direction = vec3<f32>(0.0, 0.0, 0.0);
  var own = SlotMaximum(empty_slot_value, lane_index);
  if (lane_index < count) {
    direction = aligned_direction(peak_slot, ahead);
    own.value = dot_vec3(direction, ahead);
  }
  // Among equals the first, as when one looks at them in order.
  let best = fold_maximum(own);
  return vec3<f32>(lanes_get(direction.x, best.slot), lanes_get(direction.y, best.slot),
                   lanes_get(direction.z, best.slot));
}
