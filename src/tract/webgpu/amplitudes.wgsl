// Mirrors fill_amplitudes and apply_threshold of src/tract/kernel/amplitudes.hpp. Where the raw amplitudes come from is said
// by read_point() and sample_amplitudes(): amplitudes_sf.wgsl or amplitudes_sh.wgsl.

// Into own_values; returns the threshold. The point has been read.
fn fill_amplitudes(travelling: bool, ahead: vec3<f32>) -> f32 {
  sample_amplitudes();
  var best = 0.0;
  let weighted = travelling && plan.angular_weight != 0.0;
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let raw = own_values[row];
    var value = select(0.0, raw, is_occupied(row) && raw > 0.0);
    if (weighted) {
      value = mul(value, angular_factor(row, ahead));
    }
    best = greater_number(value, best);
    own_values[row] = value;
  }
  let relative = mul(plan.relative_threshold, fold_greatest(best));
  return select(plan.absolute_threshold, relative, relative > plan.absolute_threshold);
}

fn apply_threshold(threshold: f32) {
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    own_values[row] = select(0.0, own_values[row], own_values[row] >= threshold);
  }
}
