// Mirrors src/oct/kernel/filter_item.hpp: outputs of a filter along an axis. A thread makes several along z or y.

struct FilterScalars {
  negative_zero: f32,
  in_skip: u32,
  table_skip: u32,
  out_skip: u32,
  axis: u32,
  out_first_z: u32,
  out_z: u32,
  out_y: u32,
  out_x: u32,
  in_first_z: u32,
  in_y: u32,
  in_x: u32,
  outputs: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> filtered: array<f32>;
@group(0) @binding(3) var<uniform> scalars: FilterScalars;

// `line` is where sample 0 stands, modulo 2^32.
fn filtered_sample(output: u32, line: u32, stride: u32) -> f32 {
  let outputs = scalars.outputs;
  let entry = scalars.table_skip + output;
  let first = table[entry];
  let count = table[entry + outputs];
  let weights = scalars.table_skip + 4u * outputs + table[entry + 2u * outputs];
  var sum = bitcast<f32>(table[entry + 3u * outputs]);
  var at = line + first * stride;
  for (var k = 0u; k < count; k++) {
    sum = sum + mul(bitcast<f32>(table[weights + k]), volume[at]);
    at += stride;
  }
  return sum;
}

@compute @workgroup_size(64, 4, 1)
fn filter_axis(@builtin(global_invocation_id) id: vec3<u32>) {
  let x = id.x;
  if (x >= scalars.out_x) {
    return;
  }
  let in_plane = scalars.in_y * scalars.in_x;
  let out_plane = scalars.out_y * scalars.out_x;
  if (scalars.axis == 0u) {
    let y = id.y;
    if (y >= scalars.out_y) {
      return;
    }
    let line = scalars.in_skip + y * scalars.in_x + x - scalars.in_first_z * in_plane;
    let end = min((id.z + 1u) * filter_outputs_per_thread, scalars.out_z);
    for (var o = id.z * filter_outputs_per_thread; o < end; o++) {
      filtered[scalars.out_skip + o * out_plane + y * scalars.out_x + x] =
          filtered_sample(scalars.out_first_z + o, line, in_plane);
    }
    return;
  }
  let z = id.z;
  if (z >= scalars.out_z) {
    return;
  }
  let plane_in = scalars.in_skip + (scalars.out_first_z + z - scalars.in_first_z) * in_plane;
  let plane_out = scalars.out_skip + z * out_plane;
  if (scalars.axis == 1u) {
    let end = min((id.y + 1u) * filter_outputs_per_thread, scalars.out_y);
    for (var o = id.y * filter_outputs_per_thread; o < end; o++) {
      filtered[plane_out + o * scalars.out_x + x] = filtered_sample(o, plane_in + x, scalars.in_x);
    }
    return;
  }
  let y = id.y;
  if (y < scalars.out_y) {
    filtered[plane_out + y * scalars.out_x + x] = filtered_sample(x, plane_in + y * scalars.in_x, 1u);
  }
}
