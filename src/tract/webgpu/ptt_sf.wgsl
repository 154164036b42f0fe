// Mirrors amplitudes_along of src/tract/kernel/ptt.hpp on a field of amplitudes: that of the nearest direction.

// The quotient need not be exact: the lists of cells have room for directions that rounding puts next door (1e-4 of a
// cell; three units of a quotient are a tenth of that).
fn nearest_cell(minor: f32, major: f32) -> u32 {
  let scaled = mul(pin(minor / major) + 1.0, mul(0.5, f32(plan.nearest_cells)));
  let last = f32(plan.nearest_cells - 1u);
  let above = select(0.0, scaled, scaled > 0.0);
  return u32(i32(select(last, above, above < last)));
}

fn cosine_with(slot: u32, v: vec3<f32>) -> f32 {
  let cosine = dot_vec3(slot_direction(slot), v);
  return select(cosine, absolute(cosine), sphere_is_hemisphere());
}

// The slot whose direction is nearest to the unit vector v.
fn nearest_slot(v: vec3<f32>) -> u32 {
  let size = abs(v);
  let along_x = size.x >= size.y && size.x >= size.z;
  let along_y = size.y >= size.z;
  let major = select(select(v.z, v.y, along_y), v.x, along_x);
  let first = select(v.x, v.y, along_x);
  let second = select(select(v.y, v.z, along_y), v.z, along_x);
  var face = select(select(2u, 1u, along_y), 0u, along_x);
  if (!sphere_is_hemisphere() && 0.0 > major) {
    face += 3u;
  }
  let row = face * plan.nearest_cells + nearest_cell(second, major);
  let at = plan.at_nearest + (row * plan.nearest_cells + nearest_cell(first, major)) * plan.nearest_capacity;
  // Slots ascend, and the first stands again where there are no more. Most cells have one, few more than three; those
  // three are read at once, so that the field waits for two reads and no more.
  let last = plan.nearest_capacity - 1u;
  let first_slot = tables[at];
  let second_slot = tables[at + min(1u, last)];
  let third_slot = tables[at + min(2u, last)];
  if (second_slot == first_slot) {
    return first_slot;
  }
  var best = first_slot;
  var best_cosine = cosine_with(first_slot, v);
  let second_cosine = cosine_with(second_slot, v);
  let third_cosine = cosine_with(third_slot, v);
  if (second_cosine > best_cosine) {
    best = second_slot;
    best_cosine = second_cosine;
  }
  if (third_cosine > best_cosine) {
    best = third_slot;
    best_cosine = third_cosine;
  }
  for (var n = 3u; n < plan.nearest_capacity; n++) {
    let slot = tables[at + n];
    if (slot == first_slot) {
      break;
    }
    let cosine = cosine_with(slot, v);
    if (cosine > best_cosine) {
      best = slot;
      best_cosine = cosine;
    }
  }
  return best;
}

fn amplitude_along(position: vec3<f32>, tangent: vec3<f32>) -> f32 {
  if (is_outside(position, grid_size())) {
    return 0.0;
  }
  var corners = corners_at(position);
  let sum = interpolate_channel(&corners, nearest_slot(tangent));
  return select(0.0, sum, sum > 0.0);
}
