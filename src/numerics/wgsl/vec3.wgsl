// Mirrors src/numerics/vec3.hpp on vec3<f32>. dot, cross and length carry a suffix here because WGSL has built-ins of
// those names, which round as the driver likes; scale_vec3 is the product with a number.

fn scale_vec3(a: vec3<f32>, s: f32) -> vec3<f32> {
  return vec3<f32>(mul(a.x, s), mul(a.y, s), mul(a.z, s));
}

fn dot_vec3(a: vec3<f32>, b: vec3<f32>) -> f32 {
  return (mul(a.x, b.x) + mul(a.y, b.y)) + mul(a.z, b.z);
}

fn cross_vec3(a: vec3<f32>, b: vec3<f32>) -> vec3<f32> {
  return vec3<f32>(mul(a.y, b.z) - mul(a.z, b.y), mul(a.z, b.x) - mul(a.x, b.z), mul(a.x, b.y) - mul(a.y, b.x));
}

fn length_vec3(a: vec3<f32>) -> f32 {
  return root(dot_vec3(a, a));
}

fn normalise(a: vec3<f32>) -> vec3<f32> {
  let square = pin(dot_vec3(a, a));
  if (!(square >= 0x1p-120f)) {
    return vec3<f32>(positive_zero());
  }
  return scale_vec3(a, div(1.0, root(square)));
}

fn combine(x: vec3<f32>, a: f32, y: vec3<f32>, b: f32, z: vec3<f32>, c: f32) -> vec3<f32> {
  return (scale_vec3(x, a) + scale_vec3(y, b)) + scale_vec3(z, c);
}
