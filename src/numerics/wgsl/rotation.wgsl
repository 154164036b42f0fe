// Mirrors src/numerics/rotation.hpp: perpendicular vectors, quaternions, transported frames.

fn any_perpendicular(v: vec3<f32>) -> vec3<f32> {
  let x = absolute(v.x);
  let y = absolute(v.y);
  let z = absolute(v.z);
  if (x <= y && x <= z) {
    return normalise(vec3<f32>(positive_zero(), v.z, -v.y));
  }
  if (y <= z) {
    return normalise(vec3<f32>(-v.z, positive_zero(), v.x));
  }
  return normalise(vec3<f32>(v.y, -v.x, positive_zero()));
}

struct Quaternion {
  w: f32,
  x: f32,
  y: f32,
  z: f32,
}

fn quaternion_about(axis: vec3<f32>, angle: f32) -> Quaternion {
  let half = sine_cosine(mul(0.5, angle));
  return Quaternion(half.cosine, mul(half.sine, axis.x), mul(half.sine, axis.y), mul(half.sine, axis.z));
}

fn multiply(a: Quaternion, b: Quaternion) -> Quaternion {
  return Quaternion(((mul(a.w, b.w) - mul(a.x, b.x)) - mul(a.y, b.y)) - mul(a.z, b.z),
                    ((mul(a.w, b.x) + mul(a.x, b.w)) + mul(a.y, b.z)) - mul(a.z, b.y),
                    ((mul(a.w, b.y) - mul(a.x, b.z)) + mul(a.y, b.w)) + mul(a.z, b.x),
                    ((mul(a.w, b.z) + mul(a.x, b.y)) - mul(a.y, b.x)) + mul(a.z, b.w));
}

fn rotate(q: Quaternion, v: vec3<f32>) -> vec3<f32> {
  let u = vec3<f32>(q.x, q.y, q.z);
  let half = cross_vec3(u, v);
  let t = half + half;
  return (v + scale_vec3(t, q.w)) + cross_vec3(u, t);
}

struct Frame {
  tangent: vec3<f32>,
  normal: vec3<f32>,
  binormal: vec3<f32>,
}

fn frame_with_tangent(tangent: vec3<f32>) -> Frame {
  let normal = any_perpendicular(tangent);
  return Frame(tangent, normal, cross_vec3(tangent, normal));
}

fn straighten(tangent: vec3<f32>, normal: vec3<f32>) -> Frame {
  let upright = normalise(normal - scale_vec3(tangent, dot_vec3(tangent, normal)));
  return Frame(tangent, upright, cross_vec3(tangent, upright));
}

fn transport_frame(frame: Frame, new_tangent: vec3<f32>) -> Frame {
  let scale = 1.0 + pin(dot_vec3(frame.tangent, new_tangent));
  if (!(pin(scale) > 0x1p-12f)) {
    return straighten(new_tangent, frame.normal);
  }
  let share = div(dot_vec3(new_tangent, frame.normal), scale);
  return straighten(new_tangent, frame.normal - scale_vec3(frame.tangent + new_tangent, share));
}

struct FrameStep {
  displacement: vec3<f32>,
  frame: Frame,
}

fn propagate_frame(frame: Frame, k1: f32, k2: f32, arc: f32) -> FrameStep {
  let k = root(mul(k1, k1) + mul(k2, k2));
  if (!(k >= smallest_curvature)) {
    return FrameStep(scale_vec3(frame.tangent, arc), frame);
  }
  let inverse = div(1.0, k);
  let u1 = mul(k1, inverse);
  let u2 = mul(k2, inverse);
  let half = sine_cosine(mul(0.5, mul(k, arc)));
  let sine_value = mul(2.0, mul(half.sine, half.cosine));
  let versine = pin(mul(2.0, mul(half.sine, half.sine)));
  let along = mul(sine_value, inverse);
  let aside = mul(versine, inverse);
  let displacement = combine(frame.tangent, along, frame.normal, mul(u1, aside), frame.binormal, mul(u2, aside));
  let tangent = normalise(combine(frame.tangent, 1.0 - versine, frame.normal, mul(u1, sine_value), frame.binormal,
                                  mul(u2, sine_value)));
  let normal = combine(frame.tangent, -mul(u1, sine_value), frame.normal, 1.0 - pin(mul(mul(u1, u1), versine)),
                       frame.binormal, -mul(mul(u1, u2), versine));
  return FrameStep(displacement, straighten(tangent, normal));
}
