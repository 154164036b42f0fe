// Mirrors src/oct/kernel/simulated_voxel.hpp and src/oct/cuda/simulate_kernels.cu: voxels of a simulated tile.

struct VoxelScalars {
  negative_zero: f32,
  in_skip: u32,
  out_skip: u32,
  sample_row: f32,
  row_by_row: f32,
  row_by_column: f32,
  sample_column: f32,
  column_by_row: f32,
  column_by_column: f32,
  sample_plane: f32,
  surface: f32,
  surface_by_row: f32,
  surface_by_column: f32,
  row_scale: f32,
  column_scale: f32,
  curvature: f32,
  curvature_mean: f32,
  depth_offset: f32,
  flat_field: f32,
  focus_plane: f32,
  rayleigh_planes: f32,
  water: f32,
  tissue: f32,
  agarose: f32,
  decay: f32,
  noise_floor: f32,
  gain: f32,
  tissue_row: f32,
  tissue_column: f32,
  tissue_row_radius: f32,
  tissue_column_radius: f32,
  key_low: u32,
  key_high: u32,
  tile: u32,
  speckle_shape: u32,
  box_z: u32,
  box_y: u32,
  box_x: u32,
  part_first_z: u32,
  part_first_y: u32,
  part_y: u32,
  tile_y: u32,
  tile_x: u32,
  first_z: u32,
  first_y: u32,
  z: u32,
  y: u32,
  lines: u32,
  last_line: u32,
  extra_lines: u32,
  as_acquired: u32,
}

@group(0) @binding(0) var<storage, read> texture: array<f32>;
@group(0) @binding(1) var<storage, read_write> voxels: array<f32>;
@group(0) @binding(2) var<uniform> scalars: VoxelScalars;

struct LineModel {
  surface: f32,
  depth_shift: f32,
  even_light: f32,
  row: f32,
  column: f32,
  in_tissue: bool,
}

fn line_model(row: u32, column: u32) -> LineModel {
  let r = f32(row);
  let c = f32(column);
  let v = pin(pin(mul(pin(r + 0.5), scalars.row_scale)) - 1.0);
  let u = pin(pin(mul(pin(c + 0.5), scalars.column_scale)) - 1.0);
  let square = pin(mul(u, u) + mul(v, v));
  let depth_shift =
      pin(pin(mul(scalars.curvature, mul(0.5, square)) - scalars.curvature_mean) + scalars.depth_offset);
  let plane = pin(pin(scalars.surface + mul(scalars.surface_by_row, r)) + mul(scalars.surface_by_column, c));
  let at_row = pin(pin(scalars.sample_row + mul(scalars.row_by_row, r)) + mul(scalars.row_by_column, c));
  let at_column = pin(pin(scalars.sample_column + mul(scalars.column_by_row, r)) + mul(scalars.column_by_column, c));
  var in_tissue = true;
  if (scalars.tissue_row_radius > 0.0) {
    let a = div(at_row - scalars.tissue_row, scalars.tissue_row_radius);
    let b = div(at_column - scalars.tissue_column, scalars.tissue_column_radius);
    in_tissue = pin(mul(a, a) + mul(b, b)) < 1.0;
  }
  return LineModel(pin(plane + depth_shift), depth_shift, 1.0 - pin(mul(scalars.flat_field, square)), at_row,
                   at_column, in_tissue);
}

fn mean_intensity(line: LineModel, plane: f32, reflectivity: f32) -> f32 {
  let depth = pin(plane - line.surface);
  let edge = div(1.0, 1.0 + pin(exponential(-div(depth, interface_width))));
  let below = select(positive_zero(), depth, depth > 0.0);
  let reflected = select(scalars.agarose, mul(scalars.tissue, reflectivity), line.in_tissue);
  let left = select(1.0, exponential(-mul(scalars.decay, below)), line.in_tissue);
  var intensity = mul(scalars.water + mul(mul(reflected, edge), left), line.even_light);
  if (scalars.rayleigh_planes > 0.0) {
    let distance = div(plane - scalars.focus_plane, scalars.rayleigh_planes);
    intensity = div(intensity, 1.0 + pin(mul(distance, distance)));
  }
  return mul(intensity + scalars.noise_floor, scalars.gain);
}

fn gamma_speckle(voxel: u32) -> f32 {
  let key = vec2<u32>(scalars.key_low, scalars.key_high);
  let at = DrawCounter(voxel, draw_purpose_speckle, 0u, 0u, scalars.tile, 0u);
  var sum = positive_zero();
  for (var first = 0u; first < scalars.speckle_shape; first += 4u) {
    let block = random_block(key, at, first / 4u);
    for (var i = 0u; i < min(4u, scalars.speckle_shape - first); i++) {
      sum = sum + logarithm(mul(f32((block[i] >> 8u) + 1u), 0x1p-24f));
    }
  }
  return div(-sum, f32(scalars.speckle_shape));
}

struct LineSource {
  column: u32,
  share: f32,
}

fn line_source(line: u32) -> LineSource {
  if (scalars.extra_lines == 0u) {
    return LineSource(line, 1.0);
  }
  if (line <= scalars.last_line) {
    return LineSource(scalars.tile_x - 1u - scalars.last_line + line, 1.0);
  }
  let behind = line - scalars.last_line - 1u;
  if (behind >= scalars.extra_lines) {
    return LineSource(behind - scalars.extra_lines, 1.0);
  }
  return LineSource((scalars.tile_x - 1u) * (scalars.extra_lines - behind) / (scalars.extra_lines + 1u), 0.5);
}

@compute @workgroup_size(64, 4, 1)
fn tile_voxels(@builtin(global_invocation_id) id: vec3<u32>) {
  let as_acquired = scalars.as_acquired != 0u;
  let counts = select(vec3<u32>(scalars.lines, scalars.y, scalars.z), vec3<u32>(scalars.z, scalars.lines, scalars.y),
                      as_acquired);
  if (any(id >= counts)) {
    return;
  }
  let plane = scalars.first_z + select(id.z, id.x, as_acquired);
  let row = scalars.first_y + select(id.y, id.z, as_acquired);
  let source = line_source(select(id.x, id.y, as_acquired));
  let line = line_model(row, source.column);
  let depth = pin(pin(scalars.sample_plane + f32(plane)) - line.depth_shift);
  let cell = trilinear_cell(vec3<f32>(line.column, line.row, depth),
                            vec3<u32>(scalars.box_x, scalars.box_y, scalars.box_z));
  var weights: array<f32, 8>;
  var values: array<f32, 8>;
  for (var corner = 0u; corner < 8u; corner++) {
    let x = select(cell.x.low, cell.x.high, (corner & 1u) != 0u);
    let y = select(cell.y.low, cell.y.high, (corner & 2u) != 0u) - scalars.part_first_y;
    let z = select(cell.z.low, cell.z.high, (corner & 4u) != 0u) - scalars.part_first_z;
    weights[corner] = corner_weight(cell, corner);
    values[corner] = texture[scalars.in_skip + (z * scalars.part_y + y) * scalars.box_x + x];
  }
  var value = mean_intensity(line, f32(plane), combine_corners(weights, values));
  if (scalars.speckle_shape > 0u) {
    value = mul(value, gamma_speckle((plane * scalars.tile_y + row) * scalars.tile_x + source.column));
  }
  voxels[scalars.out_skip + (id.z * counts.y + id.y) * counts.x + id.x] = mul(source.share, value);
}
