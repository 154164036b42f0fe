// Mirrors src/tract/kernel/tensor.hpp: the principal eigenvector of the interpolated tensor, Euler or Runge-Kutta steps.

struct SymmetricMatrix {
  xx: f32,
  yy: f32,
  zz: f32,
  xy: f32,
  xz: f32,
  yz: f32,
}

struct JacobiRotation {
  cosine: f32,
  sine: f32,
  tangent: f32,
}

fn jacobi_rotation(p: f32, q: f32, off: f32) -> JacobiRotation {
  if (!(absolute(off) >= 0x1p-40f)) {
    return JacobiRotation(1.0, positive_zero(), positive_zero());
  }
  let theta = div(q - p, mul(2.0, off));
  let size = absolute(theta);
  // Beyond 2^30 theta^2 is all that counts, and 1 / (2 theta) the tangent.
  var t = 0.0;
  if (size > 0x1p30f) {
    t = div(0.5, size);
  } else {
    t = div(1.0, size + root(pin(mul(theta, theta)) + 1.0));
  }
  let tangent = select(t, -t, theta < 0.0);
  let cosine = div(1.0, root(pin(mul(tangent, tangent)) + 1.0));
  return JacobiRotation(cosine, mul(tangent, cosine), tangent);
}

// A symmetric matrix seen from two of its axes p and q, r the third, and the vectors of both.
struct Plane {
  pp: f32,
  qq: f32,
  pq: f32,
  pr: f32,
  qr: f32,
  p_vector: vec3<f32>,
  q_vector: vec3<f32>,
}

// Turns the plane so that the number between its axes becomes zero.
fn rotate_plane(plane: Plane) -> Plane {
  let r = jacobi_rotation(plane.pp, plane.qq, plane.pq);
  var turned: Plane;
  turned.pp = plane.pp - mul(r.tangent, plane.pq);
  turned.qq = plane.qq + mul(r.tangent, plane.pq);
  turned.pq = positive_zero();
  turned.pr = mul(r.cosine, plane.pr) - mul(r.sine, plane.qr);
  turned.qr = mul(r.sine, plane.pr) + mul(r.cosine, plane.qr);
  turned.p_vector = scale_vec3(plane.p_vector, r.cosine) - scale_vec3(plane.q_vector, r.sine);
  turned.q_vector = scale_vec3(plane.p_vector, r.sine) + scale_vec3(plane.q_vector, r.cosine);
  return turned;
}

fn principal_eigenvector(matrix: SymmetricMatrix) -> vec3<f32> {
  var largest = absolute(matrix.xx);
  largest = select(largest, absolute(matrix.yy), absolute(matrix.yy) > largest);
  largest = select(largest, absolute(matrix.zz), absolute(matrix.zz) > largest);
  largest = select(largest, absolute(matrix.xy), absolute(matrix.xy) > largest);
  largest = select(largest, absolute(matrix.xz), absolute(matrix.xz) > largest);
  largest = select(largest, absolute(matrix.yz), absolute(matrix.yz) > largest);
  if (!(largest >= 0x1p-80f)) {
    return vec3<f32>(positive_zero());
  }
  let scale = div(1.0, largest);
  var m = SymmetricMatrix(mul(matrix.xx, scale), mul(matrix.yy, scale), mul(matrix.zz, scale), mul(matrix.xy, scale),
                          mul(matrix.xz, scale), mul(matrix.yz, scale));
  let zero = positive_zero();
  var v1 = vec3<f32>(1.0, zero, zero);
  var v2 = vec3<f32>(zero, 1.0, zero);
  var v3 = vec3<f32>(zero, zero, 1.0);
  // The planes xy, xz, yz by turns. One loop with one call, since drivers copy the call's text.
  for (var turn = 0; turn < 3 * jacobi_sweeps; turn++) {
    let axes = turn % 3;
    var plane = Plane(m.xx, m.yy, m.xy, m.xz, m.yz, v1, v2);
    if (axes == 1) {
      plane = Plane(m.xx, m.zz, m.xz, m.xy, m.yz, v1, v3);
    } else if (axes == 2) {
      plane = Plane(m.yy, m.zz, m.yz, m.xy, m.xz, v2, v3);
    }
    plane = rotate_plane(plane);
    if (axes == 0) {
      m = SymmetricMatrix(plane.pp, plane.qq, m.zz, plane.pq, plane.pr, plane.qr);
      v1 = plane.p_vector;
      v2 = plane.q_vector;
    } else if (axes == 1) {
      m = SymmetricMatrix(plane.pp, m.yy, plane.qq, plane.pr, plane.pq, plane.qr);
      v1 = plane.p_vector;
      v3 = plane.q_vector;
    } else {
      m = SymmetricMatrix(m.xx, plane.pp, plane.qq, plane.pr, plane.qr, plane.pq);
      v2 = plane.p_vector;
      v3 = plane.q_vector;
    }
  }
  var best = v1;
  var value = m.xx;
  if (m.yy > value) {
    best = v2;
    value = m.yy;
  }
  if (m.zz > value) {
    best = v3;
  }
  return normalise(best);
}

fn eigenvector_at(corners: ptr<function, Corners>) -> vec3<f32> {
  return principal_eigenvector(SymmetricMatrix(interpolate_channel(corners, 0u), interpolate_channel(corners, 1u),
                                               interpolate_channel(corners, 2u), interpolate_channel(corners, 3u),
                                               interpolate_channel(corners, 4u), interpolate_channel(corners, 5u)));
}

fn on_kept_hemisphere(v: vec3<f32>) -> vec3<f32> {
  let kept = v.z > 0.0 || (v.z == 0.0 && (v.y > 0.0 || (v.y == 0.0 && v.x > 0.0)));
  return select(-v, v, kept);
}

fn read_point(corners: ptr<function, Corners>) -> f32 {
  return lanes_same(interpolate_channel(corners, channels()));
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let trials = select(1u, 4u, plan.rk4 != 0u && !ask.initial);
  var k: array<vec3<f32>, 4>;
  var towards = ask.frame.tangent;
  for (var trial = 0u; trial < trials; trial++) {
    if (trial > 0u) {
      let share = select(0.5, 1.0, trial == 3u);
      let offset = vec3<f32>(mul(mul(towards.x, plan.step_in_voxels_x), share),
                             mul(mul(towards.y, plan.step_in_voxels_y), share),
                             mul(mul(towards.z, plan.step_in_voxels_z), share));
      *corners = corners_at(ask.position + offset);
    }
    let vector = eigenvector_at(corners);
    if (!(pin(dot_vec3(vector, vector)) > 0.0)) {
      return no_step(ask);
    }
    if (ask.initial) {
      keep_initial_direction(0u, on_kept_hemisphere(vector));
      return Answer(1u, ask.position, ask.frame);
    }
    towards = select(vector, -vector, pin(dot_vec3(vector, towards)) < 0.0);
    k[trial] = towards;
  }
  if (trials == 1u) {
    if (!(dot_vec3(towards, ask.frame.tangent) >= plan.cos_max_angle)) {
      return no_step(ask);
    }
    return step_along(ask, towards);
  }
  let sum = (k[0] + (k[1] + k[1])) + ((k[2] + k[2]) + k[3]);
  let mean = scale_vec3(sum, 0x1.555556p-3f);  // 1 / 6
  let direction = normalise(mean);
  if (!(dot_vec3(direction, ask.frame.tangent) >= plan.cos_max_angle)) {
    return no_step(ask);
  }
  return Answer(1u, moved_by(ask.position, mean), Frame(direction, ask.frame.normal, ask.frame.binormal));
}
