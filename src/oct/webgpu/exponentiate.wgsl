// Mirrors exponentiate of src/oct/cpu/simulated_rows.cpp: exp(factor v), in place.

struct ExponentiateScalars {
  negative_zero: f32,
  skip: u32,
  z: u32,
  y: u32,
  x: u32,
  factor: f32,
}

@group(0) @binding(0) var<storage, read_write> values: array<f32>;
@group(0) @binding(1) var<uniform> scalars: ExponentiateScalars;

@compute @workgroup_size(64, 4, 1)
fn exponentiate(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let i = scalars.skip + (id.z * scalars.y + id.y) * scalars.x + id.x;
  values[i] = exponential(mul(scalars.factor, values[i]));
}
