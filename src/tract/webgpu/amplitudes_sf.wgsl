// Mirrors the part of fill_amplitudes (src/tract/kernel/amplitudes.hpp) that reads a field of amplitudes: channel = slot.

// Slots past the last hold the stopping value.
fn read_point(corners: ptr<function, Corners>) -> f32 {
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    own_values[row] = interpolate_channel(corners, min(32u * row + lane_index, channels()));
  }
  if (channels() % 32u == 0u) {
    return lanes_same(interpolate_channel(corners, channels()));
  }
  return lanes_get(own_values[sphere_rows() - 1u], 31u);
}

fn sample_amplitudes() {}
