// Mirrors the part of fill_amplitudes (src/tract/kernel/amplitudes.hpp) that samples a field of spherical harmonics.

fn sampled_coefficient(j: u32) -> f32 {
  return record[j];
}

fn prepare_amplitudes(corners: ptr<function, Corners>) {
  gather_record(corners);
  sample_series();
}

// Of this lane's slot of a row.
fn raw_amplitude(corners: ptr<function, Corners>, row: u32) -> f32 {
  return values[32u * row + lane_index];
}
