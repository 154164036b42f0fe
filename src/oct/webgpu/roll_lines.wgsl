// Mirrors src/oct/kernel/roll_line.hpp: a thread moves a piece of an A-line.

struct RollScalars {
  negative_zero: f32,
  in_skip: u32,
  by_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  circular: u32,
  fill: f32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> by: array<f32>;
@group(0) @binding(2) var<storage, read_write> moved: array<f32>;
@group(0) @binding(3) var<uniform> scalars: RollScalars;

fn line_value(line: u32, plane: u32, at: i32) -> f32 {
  let depth = i32(scalars.z);
  if (scalars.circular != 0u) {
    return volume[line + u32(select(at - depth, at, at < depth)) * plane];
  }
  if (at >= 0 && at < depth) {
    return volume[line + u32(at) * plane];
  }
  return scalars.fill;
}

@compute @workgroup_size(64, 1, 1)
fn roll_lines(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let line = id.y * scalars.x + id.x;
  let depth = i32(scalars.z);
  let amount = by[scalars.by_skip + line];
  let below = floor(amount);
  let fraction = amount - below;
  var whole = float_to_int32(below);
  if (scalars.circular != 0u) {
    whole = modulo(whole, depth);
  } else {
    whole = clamp(whole, -(depth + 1), depth + 1);
  }
  let rest = 1.0 - fraction;
  let first = id.z * roll_depth_per_thread;
  let end = min(first + roll_depth_per_thread, scalars.z);
  var at = i32(first) + whole;
  if (scalars.circular != 0u && at >= depth) {
    at -= depth;
  }
  var low = line_value(scalars.in_skip + line, plane, at);
  for (var z = first; z < end; z++) {
    let high = line_value(scalars.in_skip + line, plane, at + 1);
    moved[scalars.out_skip + z * plane + line] = mul(rest, low) + mul(fraction, high);
    low = high;
    at++;
    if (scalars.circular != 0u && at >= depth) {
      at -= depth;
    }
  }
}
