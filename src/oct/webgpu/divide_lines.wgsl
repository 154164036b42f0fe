// Mirrors divide_lines of src/oct/cpu/line_rows.cpp: each voxel over the map's value of its A-line.

struct DivideScalars {
  negative_zero: f32,
  in_skip: u32,
  map_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> map: array<f32>;
@group(0) @binding(2) var<storage, read_write> divided: array<f32>;
@group(0) @binding(3) var<uniform> scalars: DivideScalars;

@compute @workgroup_size(64, 4, 1)
fn divide_lines(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let pixel = id.y * scalars.x + id.x;
  let i = id.z * scalars.y * scalars.x + pixel;
  divided[scalars.out_skip + i] = div(volume[scalars.in_skip + i], map[scalars.map_skip + pixel]);
}
