// Mirrors median_box of src/oct/cuda/count_kernels.cu: the sample of middle rank, bit after bit of its key.

struct MedianScalars {
  negative_zero: f32,
  in_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  size_z: u32,
  size_y: u32,
  size_x: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<u32>;
@group(0) @binding(1) var<storage, read_write> medians: array<u32>;
@group(0) @binding(2) var<uniform> scalars: MedianScalars;

@compute @workgroup_size(64, 4, 1)
fn median_box(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x || id.y >= scalars.y || id.z >= scalars.z) {
    return;
  }
  let rank = scalars.size_z * scalars.size_y * scalars.size_x / 2u;
  var found = 0u;
  for (var bit = 0x80000000u; bit != 0u; bit = bit >> 1u) {
    let trial = found | bit;
    var lower = 0u;
    for (var k = 0u; k < scalars.size_z; k++) {
      let iz = reflected(i32(id.z + k) - i32(scalars.size_z / 2u), i32(scalars.z));
      for (var j = 0u; j < scalars.size_y; j++) {
        let iy = reflected(i32(id.y + j) - i32(scalars.size_y / 2u), i32(scalars.y));
        let row = scalars.in_skip + (u32(iz) * scalars.y + u32(iy)) * scalars.x;
        for (var i = 0u; i < scalars.size_x; i++) {
          let ix = reflected(i32(id.x + i) - i32(scalars.size_x / 2u), i32(scalars.x));
          lower += select(0u, 1u, ordered_key(volume[row + u32(ix)]) < trial);
        }
      }
    }
    if (lower <= rank) {
      found = trial;
    }
  }
  medians[scalars.out_skip + (id.z * scalars.y + id.y) * scalars.x + id.x] = bits_of_key(found);
}
