// Mirrors amplitudes_along of src/tract/kernel/ptt.hpp on a field of spherical harmonics: the interpolated series at the
// tangent. Each coefficient is needed once, and interpolated when it is.

fn series_coefficient(corners: ptr<function, Corners>, i: u32) -> f32 {
  return interpolate_channel(corners, tables[plan.at_record_index + i]);
}

fn amplitude_along(position: vec3<f32>, tangent: vec3<f32>) -> f32 {
  if (is_outside(position, grid_size())) {
    return 0.0;
  }
  var corners = corners_at(position);
  let value = series_at(tangent.x, tangent.y, tangent.z, &corners);
  return select(0.0, value, value > 0.0);
}
