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

fn attenuation_of(value: f32, below: f32) -> f32 {
  if (!(value > 0.0) || !(below > 0.0)) {
    return 0.0;
  }
  return mul(logarithm(1.0 + pin(div(value, below))), scalars.scale);
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
    let value = volume[scalars.in_skip + (z - 1u) * plane + line];
    attenuation[scalars.out_skip + (z - 1u) * plane + line] = attenuation_of(value, below);
    below = below + value;
  }
}
