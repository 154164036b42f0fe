// Mirrors fill_amplitudes and apply_threshold of src/tract/kernel/amplitudes.hpp. Where the raw amplitudes come from is said
// by prepare_amplitudes() and raw_amplitude(): amplitudes_sf.wgsl or amplitudes_sh.wgsl.

// Every lane writes its own slots, and may read those without a barrier.
fn fill_amplitudes(corners: ptr<function, Corners>, travelling: bool, ahead: vec3<f32>) -> f32 {
  prepare_amplitudes(corners);
  var best = 0.0;
  let weighted = travelling && plan.angular_weight != 0.0;
  for (var row = 0u; row < sphere_rows(); row++) {
    let raw = raw_amplitude(corners, row);
    var value = select(0.0, raw, is_occupied(row) && raw > 0.0);
    if (weighted) {
      value = mul(value, angular_factor(row, ahead));
    }
    best = select(best, value, value > best);
    values[32u * row + lane_index] = value;
  }
  let relative = mul(plan.relative_threshold, fold_greatest(best));
  return select(plan.absolute_threshold, relative, relative > plan.absolute_threshold);
}

fn apply_threshold(threshold: f32) {
  for (var row = 0u; row < sphere_rows(); row++) {
    let value = values[32u * row + lane_index];
    values[32u * row + lane_index] = select(0.0, value, value >= threshold);
  }
}
