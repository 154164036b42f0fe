// Mirrors src/tract/kernel/amplitudes.hpp, what any getter on a sphere needs: cosines, directions of slots, folds, and the
// values at the slots: of each lane its own, and, where lanes need each other's, all of them in workgroup memory.

var<private> own_values: array<f32, sphere_rows_size>;
// All lanes see own_values of all lanes in `values` after this.
fn publish_values() {
  values_barrier();
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    set_value(32u * row + lane_index, own_values[row]);
  }
  values_barrier();
}

fn slot_direction(slot: u32) -> vec3<f32> {
  return vec3<f32>(table_number(plan.at_x + slot), table_number(plan.at_y + slot), table_number(plan.at_z + slot));
}

fn is_occupied(row: u32) -> bool {
  return ((tables[plan.at_occupied + row] >> lane_index) & 1u) != 0u;
}

// Between a direction and this lane's slot of a row, without the sign on hemispheres.
fn row_cosine(row: u32, direction: vec3<f32>) -> f32 {
  let cosine = dot_vec3(slot_direction(32u * row + lane_index), direction);
  return select(cosine, absolute(cosine), sphere_is_hemisphere());
}

// The slot's direction, on hemispheres turned to the side of `ahead`.
fn aligned_direction(slot: u32, ahead: vec3<f32>) -> vec3<f32> {
  let direction = slot_direction(slot);
  return select(direction, -direction, sphere_is_hemisphere() && dot_vec3(direction, ahead) < 0.0);
}

fn greater_number(a: f32, b: f32) -> f32 {
  return select(b, a, a > b);
}

fn lesser_number(a: f32, b: f32) -> f32 {
  return select(b, a, a < b);
}

fn fold_greatest(value: f32) -> f32 {
  var a = value;
  for (var stage = 0u; stage < 5u; stage++) {  // unrolled
    a = greater_number(a, lanes_exchange(a, 16u >> stage));
  }
  return lanes_get(a, 0u);
}

fn fold_least(value: f32) -> f32 {
  var a = value;
  for (var stage = 0u; stage < 5u; stage++) {  // unrolled
    a = lesser_number(a, lanes_exchange(a, 16u >> stage));
  }
  return lanes_get(a, 0u);
}

// (1 - w) + w |cos| of this lane's slot.
fn angular_factor(row: u32, ahead: vec3<f32>) -> f32 {
  return pin(1.0 - plan.angular_weight) + mul(plan.angular_weight, absolute(row_cosine(row, ahead)));
}
