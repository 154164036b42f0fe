// Mirrors the part of fill_amplitudes (src/tract/kernel/amplitudes.hpp) that samples a field of spherical harmonics.

fn sampled_coefficient(j: u32) -> f32 {
  return record[j];
}

fn sample_amplitudes() {
  sample_series();
}
