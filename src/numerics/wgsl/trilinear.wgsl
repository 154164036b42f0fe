// Mirrors src/numerics/trilinear.hpp. The caller reads the eight values of corner_voxel() from its own buffer and gives
// them to combine_corners(); a grid's size is vec3<u32>.

fn is_outside(position: vec3<f32>, size: vec3<u32>) -> bool {
  let x_inside = position.x >= -0.5 && pin(position.x + 0.5) < f32(size.x);
  let y_inside = position.y >= -0.5 && pin(position.y + 0.5) < f32(size.y);
  let z_inside = position.z >= -0.5 && pin(position.z + 0.5) < f32(size.z);
  return !(x_inside && y_inside && z_inside);
}

struct AxisCell {
  low: u32,
  high: u32,
  low_weight: f32,
  high_weight: f32,
}

fn axis_cell(position: f32, size: u32) -> AxisCell {
  let below = floor(position);
  let high_weight = pin(position - below);
  let index = float_to_int32(below);
  let last = i32(size) - 1;
  let low = select(select(last, index, index < last), 0, index < 0);
  let high = select(select(last, index + 1, index < last), 0, index < -1);
  return AxisCell(u32(low), u32(high), 1.0 - high_weight, high_weight);
}

struct TrilinearCell {
  x: AxisCell,
  y: AxisCell,
  z: AxisCell,
}

fn trilinear_cell(position: vec3<f32>, size: vec3<u32>) -> TrilinearCell {
  return TrilinearCell(axis_cell(position.x, size.x), axis_cell(position.y, size.y), axis_cell(position.z, size.z));
}

fn corner_voxel(cell: TrilinearCell, size: vec3<u32>, corner: u32) -> u32 {
  let x = select(cell.x.low, cell.x.high, (corner & 1u) != 0u);
  let y = select(cell.y.low, cell.y.high, (corner & 2u) != 0u);
  let z = select(cell.z.low, cell.z.high, (corner & 4u) != 0u);
  return x + size.x * (y + size.y * z);
}

fn corner_weight(cell: TrilinearCell, corner: u32) -> f32 {
  let x = select(cell.x.low_weight, cell.x.high_weight, (corner & 1u) != 0u);
  let y = select(cell.y.low_weight, cell.y.high_weight, (corner & 2u) != 0u);
  let z = select(cell.z.low_weight, cell.z.high_weight, (corner & 4u) != 0u);
  return mul(mul(x, y), z);
}

fn combine_corners(weights: array<f32, 8>, values: array<f32, 8>) -> f32 {
  var sum = mul(weights[0], values[0]);
  sum = sum + mul(weights[1], values[1]);
  sum = sum + mul(weights[2], values[2]);
  sum = sum + mul(weights[3], values[3]);
  sum = sum + mul(weights[4], values[4]);
  sum = sum + mul(weights[5], values[5]);
  sum = sum + mul(weights[6], values[6]);
  sum = sum + mul(weights[7], values[7]);
  return sum;
}
