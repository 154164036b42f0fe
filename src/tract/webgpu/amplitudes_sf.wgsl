// Mirrors the part of fill_amplitudes (src/tract/kernel/amplitudes.hpp) that reads a field of amplitudes: channel = slot.

fn fill_raw_values(corners: ptr<function, Corners>) {
  lanes_barrier();
  for (var row = 0u; row < sphere_rows(); row++) {
    let slot = 32u * row + lane_index;
    values[slot] = 0.0;
    if (slot < channels()) {
      values[slot] = interpolate_channel(corners, slot);
    }
  }
}
