// Mirrors src/tract/kernel/probe_tables.hpp: what ptt on amplitudes of a hemisphere reads where a lane follows a probe.
// probe_tables (probe_words.hpp): per slot x y z 0; per point of the disc an arc; the small table of nearest slots; per cell
// of the image the addresses of its eight records. field_rows are the records, four numbers at a time.

// A whole number as float to an integer; exact below 2^22.
fn whole_number(a: f32) -> i32 {
  return bitcast<i32>(a + 0x1.8p23f) - 0x4b400000;
}

struct ProbeCell {
  outside: bool,
  number: u32,
  below: vec3<f32>,
}

fn probe_cell(position: vec3<f32>) -> ProbeCell {
  let below = floor(position);
  let x = whole_number(below.x);
  let y = whole_number(below.y);
  let z = whole_number(below.z);
  let size = grid_size();
  // Between centres of voxels it is inside, whatever is rounded.
  let between = u32(x) < size.x - 1u && u32(y) < size.y - 1u && u32(z) < size.z - 1u;
  let row = u32(z + 1) * (size.y + 1u) + u32(y + 1);
  return ProbeCell(!between && is_outside(position, size), row * (size.x + 1u) + u32(x + 1), below);
}

// The corners of a cell that is inside.
fn probe_corners(position: vec3<f32>, cell: ProbeCell) -> Corners {
  let at = plan.at_probe_cells + 2u * cell.number;
  let low = probe_tables[at];
  let high = probe_tables[at + 1u];
  let x1 = pin(position.x - cell.below.x);
  let y1 = pin(position.y - cell.below.y);
  let z1 = pin(position.z - cell.below.z);
  let x0 = 1.0 - x1;
  let y0 = 1.0 - y1;
  let z0 = 1.0 - z1;
  let a = mul(x0, y0);
  let b = mul(x1, y0);
  let c = mul(x0, y1);
  let d = mul(x1, y1);
  return Corners(array<RecordAddress, 8>(RecordAddress(low.x), RecordAddress(low.y), RecordAddress(low.z), RecordAddress(low.w),
                                       RecordAddress(high.x), RecordAddress(high.y), RecordAddress(high.z),
                                       RecordAddress(high.w)),
                 array<f32, 8>(mul(a, z0), mul(b, z0), mul(c, z0), mul(d, z0), mul(a, z1), mul(b, z1), mul(c, z1),
                               mul(d, z1)));
}

fn probe_cosine(slot: u32, v: vec3<f32>) -> f32 {
  return absolute(dot_vec3(bitcast<vec4<f32>>(probe_tables[slot]).xyz, v));
}

// nearest_slot() by the small table, whose cells have up to three slots, or say that they have more.
fn packed_nearest_slot(v: vec3<f32>) -> u32 {
  let size = abs(v);
  let along_x = size.x >= size.y && size.x >= size.z;
  let along_y = size.y >= size.z;
  let major = select(select(v.z, v.y, along_y), v.x, along_x);
  let first = select(v.x, v.y, along_x);
  let second = select(select(v.y, v.z, along_y), v.z, along_x);
  let face = select(select(2u, 1u, along_y), 0u, along_x);
  // A rounded quotient will do, and the nearest whole number of what is half less: see probe_tables.hpp.
  let scale = packed_scale / major;
  let row = u32(whole_number(pin(mul(second, scale) + packed_middle)));
  let column = u32(whole_number(pin(mul(first, scale) + packed_middle)));
  let cell = (face * packed_cells + row) * packed_cells + column;
  let entry = probe_tables[plan.at_packed_nearest + (cell >> 2u)][cell & 3u];
  if ((entry & packed_too_many) != 0u) {
    return nearest_slot(v);
  }
  var best = entry & packed_slot_mask;
  let second_slot = (entry >> packed_slot_bits) & packed_slot_mask;
  let third_slot = (entry >> (2u * packed_slot_bits)) & packed_slot_mask;
  var best_cosine = probe_cosine(best, v);
  let second_cosine = probe_cosine(second_slot, v);
  let third_cosine = probe_cosine(third_slot, v);
  if (second_cosine > best_cosine) {
    best = second_slot;
    best_cosine = second_cosine;
  }
  return select(best, third_slot, third_cosine > best_cosine);
}

fn probe_amplitude(position: vec3<f32>, tangent: vec3<f32>) -> f32 {
  let cell = probe_cell(position);
  if (cell.outside) {
    return 0.0;
  }
  var corners = probe_corners(position, cell);
  let sum = interpolate_channel(&corners, packed_nearest_slot(tangent));
  return select(0.0, sum, sum > 0.0);
}

fn scale_row(row: vec4<f32>, s: f32) -> vec4<f32> {
  return fma(row, vec4<f32>(s), vec4<f32>(plan.negative_zero));
}

struct PointValues {
  greatest: f32,
  stop: f32,
}

// The greatest amplitude at a point, and the stopping value, which is the number after them.
fn read_values(corners: ptr<function, Corners>) -> PointValues {
  var greatest = 0.0;
  var stop = 0.0;
  let last = channels() / 4u;
  for (var group = lane_index; group <= last; group += 32u) {
    var sum = scale_row(field_rows[(*corners).address[0].at / 4u + group], (*corners).weight[0]);
    sum = sum + scale_row(field_rows[(*corners).address[1].at / 4u + group], (*corners).weight[1]);
    sum = sum + scale_row(field_rows[(*corners).address[2].at / 4u + group], (*corners).weight[2]);
    sum = sum + scale_row(field_rows[(*corners).address[3].at / 4u + group], (*corners).weight[3]);
    sum = sum + scale_row(field_rows[(*corners).address[4].at / 4u + group], (*corners).weight[4]);
    sum = sum + scale_row(field_rows[(*corners).address[5].at / 4u + group], (*corners).weight[5]);
    sum = sum + scale_row(field_rows[(*corners).address[6].at / 4u + group], (*corners).weight[6]);
    sum = sum + scale_row(field_rows[(*corners).address[7].at / 4u + group], (*corners).weight[7]);
    let channel = 4u * group;
    greatest = greater_number(select(0.0, sum.x, channel < channels()), greatest);
    greatest = greater_number(select(0.0, sum.y, channel + 1u < channels()), greatest);
    greatest = greater_number(select(0.0, sum.z, channel + 2u < channels()), greatest);
    greatest = greater_number(select(0.0, sum.w, channel + 3u < channels()), greatest);
    let within = channels() % 4u;
    stop = select(select(sum.z, sum.w, within == 3u), select(sum.x, sum.y, within == 1u), within < 2u);
  }
  return PointValues(fold_greatest(greatest), lanes_get(stop, last % 32u));
}
