// Mirrors order_lines of src/oct/cuda/line_kernels.cu: a workgroup turns a square of samples and lines.

struct OrderScalars {
  negative_zero: f32,
  in_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  lines: u32,
  first_line: u32,
}

@group(0) @binding(0) var<storage, read> acquired: array<f32>;
@group(0) @binding(1) var<storage, read_write> ordered: array<f32>;
@group(0) @binding(2) var<uniform> scalars: OrderScalars;

// One column more: neighbours of a line and of a plane meet different banks.
const order_pitch = order_side + 1u;
var<workgroup> square: array<f32, order_side * order_pitch>;

@compute @workgroup_size(32, 8, 1)
fn order_lines(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
  let first_x = group.x * order_side;
  let first_z = group.z * order_side;
  for (var i = id.y; i < order_side; i += order_block_rows) {
    let x = first_x + i;
    let z = first_z + id.x;
    if (x < scalars.x && z < scalars.z) {
      let taken = scalars.first_line + x;
      let line = select(taken - scalars.lines, taken, taken < scalars.lines);
      square[i * order_pitch + id.x] = acquired[scalars.in_skip + (group.y * scalars.lines + line) * scalars.z + z];
    }
  }
  workgroupBarrier();
  for (var i = id.y; i < order_side; i += order_block_rows) {
    let x = first_x + id.x;
    let z = first_z + i;
    if (x < scalars.x && z < scalars.z) {
      ordered[scalars.out_skip + (z * scalars.y + group.y) * scalars.x + x] = square[id.x * order_pitch + i];
    }
  }
}
