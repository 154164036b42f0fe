// Mirrors sample_series of src/tract/kernel/amplitudes.hpp: an even series at the slots of the sphere. The coefficients lie
// in workgroup memory, where sampled_coefficient() of the getter's own text finds them.

// The sum over `count` coefficients from `first` on, in sequence; `at` is where the matrix has the first of them.
fn sum_of_coefficients(at: u32, first: u32, count: u32) -> f32 {
  if (count == 0u) {
    return 0.0;
  }
  var sum = mul(sampled_coefficient(first), table_number(at + 32u * first));
  for (var j = first + 1u; j < first + count; j++) {
    sum = sum + mul(sampled_coefficient(j), table_number(at + 32u * j));
  }
  return sum;
}

// Writes this lane's raw values.
fn sample_series() {
  let block = 32u * coefficients();
  if (is_mirror()) {
    let sizes = mirror_class_sizes(harmonic_degree());
    for (var group = 0u; group < sphere_rows() / 4u; group++) {
      let at = plan.at_matrix + block * group + lane_index;
      let members = mirror_members(vec4<f32>(sum_of_coefficients(at, 0u, sizes.x),
                                             sum_of_coefficients(at, sizes.x, sizes.y),
                                             sum_of_coefficients(at, sizes.x + sizes.y, sizes.z),
                                             sum_of_coefficients(at, sizes.x + sizes.y + sizes.z, sizes.w)));
      let first = 128u * group + lane_index;
      values[first] = members.x;
      values[first + 32u] = members.y;
      values[first + 64u] = members.z;
      values[first + 96u] = members.w;
    }
    return;
  }
  for (var row = 0u; row < sphere_rows(); row++) {
    values[32u * row + lane_index] = sum_of_coefficients(plan.at_matrix + block * row + lane_index, 0u, coefficients());
  }
}
