// Mirrors compress_lines of src/oct/cpu/interface_rows.cpp: masked samples of a line to its beginning.

struct CompressScalars {
  negative_zero: f32,
  skip: u32,
  mask_skip: u32,
  places_skip: u32,
  z: u32,
  y: u32,
  x: u32,
}

@group(0) @binding(0) var<storage, read_write> volume: array<f32>;
@group(0) @binding(1) var<storage, read> mask: array<u32>;
@group(0) @binding(2) var<storage, read_write> places: array<u32>;
@group(0) @binding(3) var<uniform> scalars: CompressScalars;

@compute @workgroup_size(64, 1, 1)
fn compress_lines(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let line = id.y * scalars.x + id.x;
  var kept = 0u;
  for (var z = 0u; z < scalars.z; z++) {
    if ((mask[scalars.mask_skip + z * plane + line] & 0x7fffffffu) == 0u) {
      continue;
    }
    volume[scalars.skip + kept * plane + line] = volume[scalars.skip + z * plane + line];
    places[scalars.places_skip + kept * plane + line] = z;
    kept++;
  }
  places[scalars.places_skip + scalars.z * plane + line] = kept;
}
