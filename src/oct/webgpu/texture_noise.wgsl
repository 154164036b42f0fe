// Mirrors texture_noise of src/oct/kernel/simulated_voxel.hpp: white noise of a box of the sample's lattice.

struct NoiseScalars {
  negative_zero: f32,
  out_skip: u32,
  key_low: u32,
  key_high: u32,
  first_plane: i32,
  first_row: i32,
  first_column: i32,
  z: u32,
  y: u32,
  x: u32,
}

@group(0) @binding(0) var<storage, read_write> noise: array<f32>;
@group(0) @binding(1) var<uniform> scalars: NoiseScalars;

@compute @workgroup_size(64, 4, 1)
fn texture_noise(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let row = bitcast<u32>(scalars.first_row) + id.y;
  let column = bitcast<u32>(scalars.first_column) + id.x;
  let plane = bitcast<u32>(scalars.first_plane) + id.z;
  let at = DrawCounter(((row & 0xffffu) << 16u) | (column & 0xffffu), draw_purpose_texture, 0u, 0u, plane, 0u);
  let word = random_word(vec2<u32>(scalars.key_low, scalars.key_high), at, 0u);
  noise[scalars.out_skip + (id.z * scalars.y + id.y) * scalars.x + id.x] =
      mul(pin(uniform_from_word(word)) - 0.5, root_twelve);
}
