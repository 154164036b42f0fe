// Mirrors tests/parity/scalar_cases.hpp: the body of each case's `run`. The entry point comes from wgsl_entry().

fn vec3_from_words(a: array<u32, 16>) -> vec3<f32> {
  return vec3<f32>(bitcast<f32>(a[0]), bitcast<f32>(a[1]), bitcast<f32>(a[2]));
}

fn vec3_to_words(v: vec3<f32>, out: ptr<function, array<u32, 16>>, at: u32) {
  (*out)[at] = bitcast<u32>(v.x);
  (*out)[at + 1u] = bitcast<u32>(v.y);
  (*out)[at + 2u] = bitcast<u32>(v.z);
}

fn frame_to_words(frame: Frame, out: ptr<function, array<u32, 16>>, at: u32) {
  vec3_to_words(frame.tangent, out, at);
  vec3_to_words(frame.normal, out, at + 3u);
  vec3_to_words(frame.binormal, out, at + 6u);
}

fn counter_from_words(a: array<u32, 16>) -> DrawCounter {
  return DrawCounter(a[2], a[3], a[4], a[5], a[6], a[7]);
}

fn case_product_then_sum(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(mul(bitcast<f32>(a[0]), bitcast<f32>(a[1])) + bitcast<f32>(a[2]));
  return out;
}

fn case_quotient(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(div(bitcast<f32>(a[0]), bitcast<f32>(a[1])));
  return out;
}

fn case_root(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(root(bitcast<f32>(a[0])));
  return out;
}

fn case_high_product(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = high_product(a[0], a[1]);
  return out;
}

fn case_classify(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let x = bitcast<f32>(a[0]);
  out[0] = select(0u, 1u, is_nan(x)) | select(0u, 2u, is_infinite(x)) | select(0u, 4u, is_finite(x)) |
           select(0u, 8u, is_subnormal(x)) | select(0u, 16u, is_negative(x));
  out[1] = magnitude_bits(x);
  out[2] = bitcast<u32>(float_to_int32(x));
  out[3] = float_to_uint32(x);
  return out;
}

fn case_convert_to_integer(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(float_to_int32(bitcast<f32>(a[0])));
  out[1] = float_to_uint32(bitcast<f32>(a[0]));
  return out;
}

fn case_clamp_magnitude(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(clamp_magnitude(bitcast<f32>(a[0]), absolute(bitcast<f32>(a[1]))));
  out[1] = bitcast<u32>(absolute(bitcast<f32>(a[0])));
  return out;
}

fn case_flush_tiny(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(flush_tiny(bitcast<f32>(a[0]), absolute(bitcast<f32>(a[1]))));
  return out;
}

fn case_float16_to_float(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = float16_to_float_bits(a[0]);
  return out;
}

fn case_float_to_float16(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = float_bits_to_float16(a[0]);
  return out;
}

fn case_philox(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let block = philox4x32_10(vec4<u32>(a[0], a[1], a[2], a[3]), vec2<u32>(a[4], a[5]));
  out[0] = block.x;
  out[1] = block.y;
  out[2] = block.z;
  out[3] = block.w;
  return out;
}

fn case_draw(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let word = random_word(vec2<u32>(a[0], a[1]), counter_from_words(a), a[8]);
  out[0] = word;
  out[1] = bitcast<u32>(uniform_from_word(word));
  out[2] = integer_from_word(word, a[9]);
  return out;
}

fn case_normals(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let pair = normals_from_words(a[0], a[1]);
  out[0] = bitcast<u32>(pair.x);
  out[1] = bitcast<u32>(pair.y);
  return out;
}

fn case_bootstrap_pick(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bootstrap_pick_of_gradient(vec2<u32>(a[0], a[1]), counter_from_words(a), a[8], a[9]);
  return out;
}

fn case_sine(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(sine(bitcast<f32>(a[0])));
  return out;
}

fn case_cosine(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(cosine(bitcast<f32>(a[0])));
  return out;
}

fn case_sine_cosine(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let both = sine_cosine(bitcast<f32>(a[0]));
  out[0] = bitcast<u32>(both.sine);
  out[1] = bitcast<u32>(both.cosine);
  return out;
}

fn case_arc_cosine(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(arc_cosine(bitcast<f32>(a[0])));
  return out;
}

fn case_logarithm(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(logarithm(bitcast<f32>(a[0])));
  return out;
}

fn case_exponential(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(exponential(bitcast<f32>(a[0])));
  return out;
}

fn case_dot_and_cross(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let v = vec3_from_words(a);
  let w = vec3<f32>(bitcast<f32>(a[3]), bitcast<f32>(a[4]), bitcast<f32>(a[5]));
  out[0] = bitcast<u32>(dot_vec3(v, w));
  out[1] = bitcast<u32>(length_vec3(v));
  vec3_to_words(cross_vec3(v, w), &out, 2u);
  return out;
}

fn case_normalise(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  vec3_to_words(normalise(vec3_from_words(a)), &out, 0u);
  return out;
}

fn case_any_perpendicular(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  frame_to_words(frame_with_tangent(vec3_from_words(a)), &out, 0u);
  return out;
}

fn case_quaternion_rotation(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let axis = normalise(vec3_from_words(a));
  let v = vec3<f32>(bitcast<f32>(a[5]), bitcast<f32>(a[6]), bitcast<f32>(a[7]));
  let first = quaternion_about(axis, bitcast<f32>(a[3]));
  let second = quaternion_about(normalise(v), bitcast<f32>(a[4]));
  let both = multiply(second, first);
  out[0] = bitcast<u32>(first.w);
  out[1] = bitcast<u32>(first.x);
  out[2] = bitcast<u32>(first.y);
  out[3] = bitcast<u32>(first.z);
  out[4] = bitcast<u32>(both.w);
  out[5] = bitcast<u32>(both.x);
  out[6] = bitcast<u32>(both.y);
  out[7] = bitcast<u32>(both.z);
  vec3_to_words(rotate(both, v), &out, 8u);
  return out;
}

fn case_transport_frame(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let frame = frame_with_tangent(normalise(vec3_from_words(a)));
  let target_tangent = normalise(vec3<f32>(bitcast<f32>(a[3]), bitcast<f32>(a[4]), bitcast<f32>(a[5])));
  frame_to_words(transport_frame(frame, target_tangent), &out, 0u);
  return out;
}

fn case_propagate_frame(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let frame = frame_with_tangent(normalise(vec3_from_words(a)));
  let moved = propagate_frame(frame, bitcast<f32>(a[3]), bitcast<f32>(a[4]), bitcast<f32>(a[5]));
  vec3_to_words(moved.displacement, &out, 0u);
  frame_to_words(moved.frame, &out, 3u);
  return out;
}

fn case_inverse_root(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  out[0] = bitcast<u32>(inverse_root(bitcast<f32>(a[0])));
  return out;
}

fn case_lane_propagate(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let given = normalise(vec3_from_words(a));
  let zero = positive_zero();
  let tangent = select(vec3<f32>(zero, zero, 1.0), given, pin(dot_vec3(given, given)) > 0.5);
  let arc = lane_arc(bitcast<f32>(a[3]), bitcast<f32>(a[4]), bitcast<f32>(a[5]));
  let moved = lane_propagate(frame_with_tangent(tangent), arc);
  vec3_to_words(moved.displacement, &out, 0u);
  frame_to_words(moved.frame, &out, 3u);
  return out;
}

fn axis_cell_to_words(cell: AxisCell, out: ptr<function, array<u32, 16>>, at: u32) {
  (*out)[at] = cell.low;
  (*out)[at + 1u] = cell.high;
  (*out)[at + 2u] = bitcast<u32>(cell.low_weight);
  (*out)[at + 3u] = bitcast<u32>(cell.high_weight);
}

fn case_trilinear_cell(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let position = vec3_from_words(a);
  let size = vec3<u32>(a[3], a[4], a[5]);
  let cell = trilinear_cell(position, size);
  out[0] = select(0u, 1u, is_outside(position, size));
  axis_cell_to_words(cell.x, &out, 1u);
  axis_cell_to_words(cell.y, &out, 5u);
  axis_cell_to_words(cell.z, &out, 9u);
  out[13] = corner_voxel(cell, size, a[6]);
  out[14] = bitcast<u32>(corner_weight(cell, a[6]));
  return out;
}

fn case_trilinear_sample(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  var words = a;
  let size = vec3<u32>(2u, 2u, 2u);
  let cell = trilinear_cell(vec3_from_words(a), size);
  var weights: array<f32, 8>;
  var values: array<f32, 8>;
  for (var corner = 0u; corner < 8u; corner++) {
    weights[corner] = corner_weight(cell, corner);
    values[corner] = bitcast<f32>(words[3u + corner_voxel(cell, size, corner)]);
  }
  out[0] = bitcast<u32>(combine_corners(weights, values));
  return out;
}

fn case_spherical_harmonics(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let full = a[5] != 0u;
  let degree = i32(select(a[4] & 0xfffffffeu, a[4], full));
  var values: array<f32, 169>;
  evaluate_harmonics(HarmonicBasis(a[3], degree, full), normalise(vec3_from_words(a)), &values);
  let count = coefficient_count(degree, full);
  for (var i = 0; i < 16; i++) {
    let index = 16 * i32(a[6]) + i;
    if (index < count) {
      out[i] = bitcast<u32>(values[index]);
    }
  }
  return out;
}

fn case_harmonic_numbering(a: array<u32, 16>) -> array<u32, 16> {
  var out: array<u32, 16>;
  let full = a[2] != 0u;
  let at = harmonic_of_coefficient(i32(a[0]), full);
  out[0] = bitcast<u32>(at.l);
  out[1] = bitcast<u32>(at.m);
  out[2] = bitcast<u32>(coefficient_count(at.l, full));
  out[3] = bitcast<u32>(phase_sign(a[1], at.m));
  out[4] = mirror_class(a[1], at.m);
  return out;
}
