// Mirrors src/oct/kernel/layer_line.hpp and layer_sums of src/oct/cpu/line_rows.cpp: a thread sums along an A-line.

struct LayerScalars {
  negative_zero: f32,
  in_skip: u32,
  surface_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  layers: u32,
  depth: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> surface: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@group(0) @binding(3) var<uniform> scalars: LayerScalars;

fn sum_between(line: u32, plane: u32, first: i32, end: i32) -> f32 {
  var sum = positive_zero();
  for (var z = first; z < end; z++) {
    sum = sum + volume[line + u32(z) * plane];
  }
  return sum;
}

@compute @workgroup_size(64, 1, 1)
fn layer_sums(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let index = id.y * scalars.x + id.x;
  let line = scalars.in_skip + index;
  let to = scalars.out_skip + index;
  let end = i32(scalars.z);
  let within = clamp(surface[scalars.surface_skip + index], 0.0, f32(end));
  let first = min(float_to_int32(floor(within + (surface_margin + 0.5))), end - 1);
  let water = float_to_int32(floor(within - (water_margin - 0.5)));
  for (var k = 0u; k < scalars.layers; k++) {
    let begin = first + i32(k * layer_planes);
    sums[to + k * plane] = sum_between(line, plane, begin, min(begin + i32(layer_planes), end));
  }
  sums[to + scalars.layers * plane] = sum_between(line, plane, first, min(first + i32(scalars.depth), end));
  sums[to + (scalars.layers + 1u) * plane] = sum_between(line, plane, 0, water);
}
