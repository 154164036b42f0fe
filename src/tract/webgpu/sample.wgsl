// Mirrors src/tract/kernel/sample.hpp: reading the field at a point. The bindings, field_number() and the numbers of the
// field's shape (channels(), ...) are written by webgpu_shader.cpp, since a field may lie in several bindings.

fn table_number(at: u32) -> f32 {
  return bitcast<f32>(tables[at]);
}

fn grid_size() -> vec3<u32> {
  return vec3<u32>(plan.size_x, plan.size_y, plan.size_z);
}

// Where the records around a position begin, and their weights.
struct Corners {
  address: array<RecordAddress, 8>,
  weight: array<f32, 8>,
}

fn address_of_voxel(voxel: u32) -> RecordAddress {
  return record_address(tables[plan.at_record_of_voxel + voxel]);
}

fn corners_at(position: vec3<f32>) -> Corners {
  let size = grid_size();
  let cell = trilinear_cell(position, size);
  var corners: Corners;
  for (var corner = 0u; corner < 8u; corner++) {  // unrolled
    corners.address[corner] = address_of_voxel(corner_voxel(cell, size, corner));
    corners.weight[corner] = corner_weight(cell, corner);
  }
  return corners;
}

fn interpolate_channel(corners: ptr<function, Corners>, channel: u32) -> f32 {
  var sum = mul((*corners).weight[0], field_number((*corners).address[0], channel));
  sum = sum + mul((*corners).weight[1], field_number((*corners).address[1], channel));
  sum = sum + mul((*corners).weight[2], field_number((*corners).address[2], channel));
  sum = sum + mul((*corners).weight[3], field_number((*corners).address[3], channel));
  sum = sum + mul((*corners).weight[4], field_number((*corners).address[4], channel));
  sum = sum + mul((*corners).weight[5], field_number((*corners).address[5], channel));
  sum = sum + mul((*corners).weight[6], field_number((*corners).address[6], channel));
  sum = sum + mul((*corners).weight[7], field_number((*corners).address[7], channel));
  return sum;
}

// The record of the voxel that contains the position.
fn nearest_address(position: vec3<f32>) -> RecordAddress {
  let size = grid_size();
  let x = axis_cell(floor(position.x + 0.5), size.x);
  let y = axis_cell(floor(position.y + 0.5), size.y);
  let z = axis_cell(floor(position.z + 0.5), size.z);
  return address_of_voxel(x.low + size.x * (y.low + size.y * z.low));
}
