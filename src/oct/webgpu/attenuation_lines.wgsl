// Mirrors src/oct/kernel/attenuation_line.hpp: a thread goes up an A-line with the sum of what lies below.

struct AttenuationScalars {
  negative_zero: f32,
  in_skip: u32,
  tails_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  tail_factor: f32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> tails: array<f32>;
@group(0) @binding(2) var<storage, read_write> attenuation: array<f32>;
@group(0) @binding(3) var<uniform> scalars: AttenuationScalars;

fn log_one_plus(x: f32) -> f32 {
  if (x > 0.25) {
    return logarithm(1.0 + x);
  }
  let s = div(x, 2.0 + x);
  let q = mul(s, s);
  var p = horner(q, log_ninth, log_seventh);
  p = horner(p, q, log_fifth);
  p = horner(p, q, log_third);
  p = horner(p, q, 1.0);
  return mul(s + s, p);
}

fn attenuation_of(value: f32, deeper: f32) -> f32 {
  if (!(deeper > 0.0)) {
    return 0.0;
  }
  return mul(log_one_plus(pin(div(value, deeper))), scalars.scale);
}

@compute @workgroup_size(64, 1, 1)
fn attenuation_lines(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let line = id.y * scalars.x + id.x;
  var below = mul(scalars.tail_factor, tails[scalars.tails_skip + line]);
  for (var z = scalars.z; z > 0u; z--) {
    let sample = volume[scalars.in_skip + (z - 1u) * plane + line];
    let value = select(positive_zero(), sample, sample > 0.0);
    attenuation[scalars.out_skip + (z - 1u) * plane + line] = attenuation_of(value, below);
    below = below + value;
  }
}
