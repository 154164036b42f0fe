// Mirrors src/numerics/lane_rotation.hpp: a frame per invocation, carried along an arc whose factors are made once.

// 1 / sqrt(a), both exactly rounded, of a number near one. Of 1 + k units (of 2^-23 above one, of 2^-24 below) with a
// small k the root is 1 + k / 2 units less something tiny, and its inverse is 1 - k / 2 units and something tiny; what is
// tiny decides where a half would be. Holds up to |k| = 2897.
fn inverse_root_near_one(a: f32) -> f32 {
  let k = bitcast<i32>(a) - 0x3f800000;
  let units_of_root = (1 - k) >> 1u;  // below one
  return bitcast<f32>(0x3f800000 + select((units_of_root + 1) >> 1u, -(k & -2), k >= 0));
}

// One over the root of any number.
fn inverse_root(a: f32) -> f32 {
  let k = bitcast<i32>(a) - 0x3f800000;
  if (k < -2048 || k > 2048) {
    return div(1.0, root(a));
  }
  return inverse_root_near_one(a);
}

// Takes vectors that are not near zero (normalise gives the zero vector there, this does not). Most are nearly of unit
// length.
fn lane_normalise(a: vec3<f32>) -> vec3<f32> {
  return scale_vec3(a, inverse_root(pin(dot_vec3(a, a))));
}

// What propagate_frame multiplies a frame with, for one pair of curvatures and one arc.
struct LaneArc {
  bent: bool,
  length: f32,
  along: f32,
  aside_1: f32,
  aside_2: f32,
  keep: f32,
  turn_1: f32,
  turn_2: f32,
  minus_turn_1: f32,
  normal_normal: f32,
  normal_binormal: f32,
}

fn lane_arc(k1: f32, k2: f32, arc: f32) -> LaneArc {
  let curvature = root(mul(k1, k1) + mul(k2, k2));
  let bent = curvature >= smallest_curvature;
  let k = select(1.0, curvature, bent);
  let inverse = div(1.0, k);
  let u1 = mul(k1, inverse);
  let u2 = mul(k2, inverse);
  let half = sine_cosine(mul(0.5, mul(k, arc)));
  let sine_value = mul(2.0, mul(half.sine, half.cosine));
  let versine = pin(mul(2.0, mul(half.sine, half.sine)));
  let aside = mul(versine, inverse);
  let turn_1 = mul(u1, sine_value);
  return LaneArc(bent, arc, mul(sine_value, inverse), mul(u1, aside), mul(u2, aside), 1.0 - versine, turn_1,
                 mul(u2, sine_value), -turn_1, 1.0 - pin(mul(mul(u1, u1), versine)), -mul(mul(u1, u2), versine));
}

fn lane_propagate(frame: Frame, arc: LaneArc) -> FrameStep {
  if (!arc.bent) {
    return FrameStep(scale_vec3(frame.tangent, arc.length), frame);
  }
  let displacement = combine(frame.tangent, arc.along, frame.normal, arc.aside_1, frame.binormal, arc.aside_2);
  let tangent =
      lane_normalise(combine(frame.tangent, arc.keep, frame.normal, arc.turn_1, frame.binormal, arc.turn_2));
  let leaning = combine(frame.tangent, arc.minus_turn_1, frame.normal, arc.normal_normal, frame.binormal,
                        arc.normal_binormal);
  let normal = lane_normalise(leaning - scale_vec3(tangent, dot_vec3(tangent, leaning)));
  return FrameStep(displacement, Frame(tangent, normal, cross_vec3(tangent, normal)));
}
