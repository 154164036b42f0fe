// Mirrors the part of fill_amplitudes (src/tract/kernel/amplitudes.hpp) that reads a field of amplitudes: channel = slot.

fn prepare_amplitudes(corners: ptr<function, Corners>) {
  lanes_barrier();
}

// Of this lane's slot of a row.
fn raw_amplitude(corners: ptr<function, Corners>, row: u32) -> f32 {
  let slot = 32u * row + lane_index;
  if (slot < channels()) {
    return interpolate_channel(corners, slot);
  }
  return 0.0;
}
