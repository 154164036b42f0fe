// Mirrors project_depth of src/oct/cpu/line_rows.cpp: the greatest value or the lane sum of a line, divided.

struct ProjectScalars {
  negative_zero: f32,
  in_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  is_max: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read_write> projection: array<f32>;
@group(0) @binding(2) var<uniform> scalars: ProjectScalars;

fn sample_or_zero(line: u32, plane: u32, z: u32) -> f32 {
  if (z < scalars.z) {
    return volume[line + z * plane];
  }
  return positive_zero();
}

// Lanes 4k to 4k + 3 of the slots from `z` on.
fn four(line: u32, plane: u32, z: u32) -> vec4<f32> {
  return vec4<f32>(sample_or_zero(line, plane, z), sample_or_zero(line, plane, z + 1u),
                   sample_or_zero(line, plane, z + 2u), sample_or_zero(line, plane, z + 3u));
}

@compute @workgroup_size(64, 1, 1)
fn project_depth(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let index = id.y * scalars.x + id.x;
  let line = scalars.in_skip + index;
  if (scalars.is_max != 0u) {
    var best = volume[line];
    for (var z = 1u; z < scalars.z; z++) {
      let value = volume[line + z * plane];
      if (value > best) {
        best = value;
      }
    }
    projection[scalars.out_skip + index] = best;
    return;
  }
  var p0 = four(line, plane, 0u);
  var p1 = four(line, plane, 4u);
  var p2 = four(line, plane, 8u);
  var p3 = four(line, plane, 12u);
  var p4 = four(line, plane, 16u);
  var p5 = four(line, plane, 20u);
  var p6 = four(line, plane, 24u);
  var p7 = four(line, plane, 28u);
  for (var z = 32u; z < scalars.z; z += 32u) {
    p0 = p0 + four(line, plane, z);
    p1 = p1 + four(line, plane, z + 4u);
    p2 = p2 + four(line, plane, z + 8u);
    p3 = p3 + four(line, plane, z + 12u);
    p4 = p4 + four(line, plane, z + 16u);
    p5 = p5 + four(line, plane, z + 20u);
    p6 = p6 + four(line, plane, z + 24u);
    p7 = p7 + four(line, plane, z + 28u);
  }
  // The tree: distances 16, 8 and 4 are whole vectors apart.
  let q = ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7));
  let r = q.xy + q.zw;
  projection[scalars.out_skip + index] = div(pin(r.x + r.y), f32(scalars.z));
}
