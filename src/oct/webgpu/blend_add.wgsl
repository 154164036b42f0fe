// Mirrors blend_add of src/oct/cpu/count_rows.cpp: a box of a tile into accumulators.

struct BlendScalars {
  negative_zero: f32,
  tile_skip: u32,
  weights_skip: u32,
  sum_skip: u32,
  weight_sum_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  tile_first_y: u32,
  tile_first_x: u32,
  tile_y: u32,
  tile_x: u32,
  sum_first_y: u32,
  sum_first_x: u32,
  sum_y: u32,
  sum_x: u32,
}

@group(0) @binding(0) var<storage, read> tile: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;
@group(0) @binding(3) var<storage, read_write> weight_sum: array<f32>;
@group(0) @binding(4) var<uniform> scalars: BlendScalars;

@compute @workgroup_size(64, 4, 1)
fn blend_add(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let pixel = (scalars.tile_first_y + id.y) * scalars.tile_x + scalars.tile_first_x + id.x;
  let place = (id.z * scalars.sum_y + scalars.sum_first_y + id.y) * scalars.sum_x + scalars.sum_first_x + id.x;
  let weight = weights[scalars.weights_skip + pixel];
  let value = tile[scalars.tile_skip + id.z * scalars.tile_y * scalars.tile_x + pixel];
  sum[scalars.sum_skip + place] = sum[scalars.sum_skip + place] + mul(weight, value);
  weight_sum[scalars.weight_sum_skip + place] = weight_sum[scalars.weight_sum_skip + place] + weight;
}
