// Mirrors sample_series of src/tract/kernel/amplitudes.hpp: an even series at the slots of the sphere. The coefficients lie
// in workgroup memory, where sampled_coefficient() of the getter's own text finds them.

// The coefficients of a mirror class: [begin, end).
fn mirror_begin(of_class: u32) -> u32 {
  let sizes = mirror_class_sizes(harmonic_degree());
  return select(0u, sizes.x, of_class > 0u) + select(0u, sizes.y, of_class > 1u) + select(0u, sizes.z, of_class > 2u);
}

fn mirror_end(of_class: u32) -> u32 {
  return mirror_begin(of_class) + mirror_class_sizes(harmonic_degree())[of_class];
}

// Writes this lane's raw values to own_values. A coefficient is read once for all slots.
fn sample_series() {
  let at = plan.at_matrix + lane_index;
  if (is_mirror()) {
    // The four classes of each group of rows, in the place of its members.
    for (var of_class = 0u; of_class < 4u; of_class++) {  // unrolled
      for (var group = 0u; group < sphere_groups(); group++) {  // unrolled
        own_values[4u * group + of_class] = 0.0;
      }
      for (var j = mirror_begin(of_class); j < mirror_end(of_class); j++) {  // unrolled
        let coefficient = sampled_coefficient(j);
        for (var group = 0u; group < sphere_groups(); group++) {  // unrolled
          let term = mul(coefficient, table_number(at + 32u * (coefficients() * group + j)));
          own_values[4u * group + of_class] =
              select(own_values[4u * group + of_class] + term, term, j == mirror_begin(of_class));
        }
      }
    }
    for (var group = 0u; group < sphere_groups(); group++) {  // unrolled
      let members = mirror_members(vec4<f32>(own_values[4u * group], own_values[4u * group + 1u],
                                             own_values[4u * group + 2u], own_values[4u * group + 3u]));
      own_values[4u * group] = members.x;
      own_values[4u * group + 1u] = members.y;
      own_values[4u * group + 2u] = members.z;
      own_values[4u * group + 3u] = members.w;
    }
    return;
  }
  for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
    let of_row = at + 32u * coefficients() * row;
    var sum = mul(sampled_coefficient(0u), table_number(of_row));
    for (var j = 1u; j < coefficients(); j++) {
      sum = sum + mul(sampled_coefficient(j), table_number(of_row + 32u * j));
    }
    own_values[row] = sum;
  }
}
