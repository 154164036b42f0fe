// Mirrors blend_finish of src/oct/cpu/count_rows.cpp: weighted values over their weights.

struct FinishScalars {
  negative_zero: f32,
  sum_skip: u32,
  weight_sum_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
}

@group(0) @binding(0) var<storage, read> sum: array<f32>;
@group(0) @binding(1) var<storage, read> weight_sum: array<f32>;
@group(0) @binding(2) var<storage, read_write> blended: array<f32>;
@group(0) @binding(3) var<uniform> scalars: FinishScalars;

@compute @workgroup_size(64, 4, 1)
fn blend_finish(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let i = (id.z * scalars.y + id.y) * scalars.x + id.x;
  let weight = weight_sum[scalars.weight_sum_skip + i];
  if (weight > 0.0) {
    blended[scalars.out_skip + i] = div(sum[scalars.sum_skip + i], weight);
  } else {
    blended[scalars.out_skip + i] = 0.0;
  }
}
