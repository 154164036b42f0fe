// Mirrors amplitudes_along of src/tract/kernel/ptt.hpp on a field of amplitudes: that of the nearest direction.

fn nearest_cell(minor: f32, major: f32) -> u32 {
  let scaled = mul(pin(div(minor, major)) + 1.0, mul(0.5, f32(plan.nearest_cells)));
  let last = f32(plan.nearest_cells - 1u);
  let above = select(0.0, scaled, scaled > 0.0);
  return u32(i32(select(last, above, above < last)));
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
  if (!sphere_is_half() && 0.0 > major) {
    face += 3u;
  }
  let row = face * plan.nearest_cells + nearest_cell(second, major);
  let at = plan.at_nearest + (row * plan.nearest_cells + nearest_cell(first, major)) * plan.nearest_capacity;
  var best = 0u;
  var best_cosine = -2.0;
  for (var n = 0u; n < plan.nearest_capacity; n++) {
    let slot = tables[at + n];
    var cosine = dot_vec3(slot_direction(slot), v);
    cosine = select(cosine, absolute(cosine), sphere_is_half());
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
