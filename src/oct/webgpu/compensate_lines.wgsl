// Mirrors src/oct/kernel/attenuation_line.hpp: a thread goes down an A-line and makes up for what was lost above.

struct CompensationScalars {
  negative_zero: f32,
  in_skip: u32,
  attenuation_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  step: f32,
  strength: f32,
  least: f32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> attenuation: array<f32>;
@group(0) @binding(2) var<storage, read_write> compensated: array<f32>;
@group(0) @binding(3) var<uniform> scalars: CompensationScalars;

@compute @workgroup_size(64, 1, 1)
fn compensate_lines(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let line = id.y * scalars.x + id.x;
  var depth = positive_zero();
  for (var z = 0u; z < scalars.z; z++) {
    let at = z * plane + line;
    let left = exponential(mul(scalars.strength, depth));
    let gain = select(scalars.least, left, left > scalars.least);
    compensated[scalars.out_skip + at] = div(volume[scalars.in_skip + at], gain);
    depth = depth + mul(attenuation[scalars.attenuation_skip + at], scalars.step);
  }
}
