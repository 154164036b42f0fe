// Mirrors src/oct/kernel/sample_item.hpp: voxels of the output are read at their coordinates, a few planes a thread.

struct SampleScalars {
  negative_zero: f32,
  in_skip: u32,
  z_skip: u32,
  y_skip: u32,
  x_skip: u32,
  out_skip: u32,
  source: u32,
  order: u32,
  boundary: u32,
  value: f32,
  in_z: u32,
  in_y: u32,
  in_x: u32,
  out_first_z: u32,
  out_z: u32,
  out_y: u32,
  out_x: u32,
  all_z: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> of_z: array<u32>;
@group(0) @binding(2) var<storage, read> of_y: array<u32>;
@group(0) @binding(3) var<storage, read> of_x: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;
@group(0) @binding(5) var<uniform> scalars: SampleScalars;

struct AxisPosition {
  whole: i32,
  fraction: f32,
}

struct AxisWeights {
  index: vec4<i32>,
  weight: vec4<f32>,
}

fn position_of(bits: u32) -> AxisPosition {
  let coordinate = bitcast<f32>(bits);
  let below = floor(coordinate);
  return AxisPosition(clamp(float_to_int32(below), -farthest_whole, farthest_whole), coordinate - below);
}

fn joined(z: vec2<u32>, y: vec2<u32>, x: vec2<u32>) -> AxisPosition {
  let fraction = pin(pin(bitcast<f32>(z.y) + bitcast<f32>(y.y)) + bitcast<f32>(x.y));
  let carried = floor(fraction);
  let whole = (bitcast<i32>(z.x) + bitcast<i32>(y.x)) + bitcast<i32>(x.x);
  return AxisPosition(whole + i32(carried), fraction - carried);
}

fn lies_outside(at: AxisPosition, count: i32) -> bool {
  return at.whole < 0 || at.whole >= count || (at.whole == count - 1 && at.fraction > 0.0);
}

fn is_between(at: AxisPosition, count: i32) -> bool {
  return at.whole >= 0 && at.whole < count - 1;
}

fn axis_weights(at: AxisPosition, count: i32) -> AxisWeights {
  let boundary = scalars.boundary;
  let f = at.fraction;
  let g = pin(1.0 - f);
  if (scalars.order == 0u) {
    let index = tap_index(at.whole + select(0, 1, f >= 0.5), count, boundary);
    return AxisWeights(vec4<i32>(index), vec4<f32>(1.0));
  }
  if (scalars.order == 1u) {
    let low = tap_index(at.whole, count, boundary);
    let high = tap_index(at.whole + 1, count, boundary);
    return AxisWeights(vec4<i32>(low, high, 0, 0), vec4<f32>(g, f, 0.0, 0.0));
  }
  let index = vec4<i32>(tap_index(at.whole - 1, count, boundary), tap_index(at.whole, count, boundary),
                        tap_index(at.whole + 1, count, boundary), tap_index(at.whole + 2, count, boundary));
  let sixth = 0x1.555556p-3f;
  let two_thirds = 0x1.555556p-1f;
  return AxisWeights(index, vec4<f32>(mul(mul(mul(g, g), g), sixth),
                                      pin(mul(mul(f, f), horner(0.5, f, -1.0))) + two_thirds,
                                      pin(mul(mul(g, g), horner(0.5, g, -1.0))) + two_thirds,
                                      mul(mul(mul(f, f), f), sixth)));
}

fn sampled(z: AxisPosition, y: AxisPosition, x: AxisPosition) -> f32 {
  let depth = i32(scalars.in_z);
  let height = i32(scalars.in_y);
  let width = i32(scalars.in_x);
  if (scalars.order == 1u && is_between(z, depth) && is_between(y, height) && is_between(x, width)) {
    let corner = scalars.in_skip + (u32(z.whole) * scalars.in_y + u32(y.whole)) * scalars.in_x + u32(x.whole);
    let plane_step = scalars.in_y * scalars.in_x;
    let gx = pin(1.0 - x.fraction);
    let gy = pin(1.0 - y.fraction);
    let gz = pin(1.0 - z.fraction);
    let low = mul(gx, gy);
    let right = mul(x.fraction, gy);
    let under = mul(gx, y.fraction);
    let both = mul(x.fraction, y.fraction);
    let next = corner + scalars.in_x;
    let behind = corner + plane_step;
    let last = next + plane_step;
    var sum = positive_zero() + mul(mul(low, gz), volume[corner]);
    sum = sum + mul(mul(right, gz), volume[corner + 1u]);
    sum = sum + mul(mul(under, gz), volume[next]);
    sum = sum + mul(mul(both, gz), volume[next + 1u]);
    sum = sum + mul(mul(low, z.fraction), volume[behind]);
    sum = sum + mul(mul(right, z.fraction), volume[behind + 1u]);
    sum = sum + mul(mul(under, z.fraction), volume[last]);
    return sum + mul(mul(both, z.fraction), volume[last + 1u]);
  }
  if (scalars.boundary == boundary_constant &&
      (lies_outside(z, depth) || lies_outside(y, height) || lies_outside(x, width))) {
    return scalars.value;
  }
  let tz = axis_weights(z, depth);
  let ty = axis_weights(y, height);
  let tx = axis_weights(x, width);
  if (scalars.order == 0u) {
    let line = scalars.in_skip + (u32(tz.index.x) * scalars.in_y + u32(ty.index.x)) * scalars.in_x;
    return volume[line + u32(tx.index.x)];
  }
  if (scalars.order == 1u) {
    var sum = positive_zero();
    for (var i = 0u; i < 2u; i++) {
      for (var j = 0u; j < 2u; j++) {
        let iz = select(tz.index.x, tz.index.y, i != 0u);
        let iy = select(ty.index.x, ty.index.y, j != 0u);
        let wz = select(tz.weight.x, tz.weight.y, i != 0u);
        let wy = select(ty.weight.x, ty.weight.y, j != 0u);
        let line = scalars.in_skip + (u32(iz) * scalars.in_y + u32(iy)) * scalars.in_x;
        sum = sum + mul(mul(mul(tx.weight.x, wy), wz), volume[line + u32(tx.index.x)]);
        sum = sum + mul(mul(mul(tx.weight.y, wy), wz), volume[line + u32(tx.index.y)]);
      }
    }
    return sum;
  }
  var total = positive_zero();
  for (var i = 0u; i < 4u; i++) {
    var plane = positive_zero();
    for (var j = 0u; j < 4u; j++) {
      let line = scalars.in_skip + (u32(tz.index[i]) * scalars.in_y + u32(ty.index[j])) * scalars.in_x;
      var sum = positive_zero();
      for (var k = 0u; k < 4u; k++) {
        sum = sum + mul(tx.weight[k], volume[line + u32(tx.index[k])]);
      }
      plane = plane + mul(ty.weight[j], sum);
    }
    total = total + mul(tz.weight[i], plane);
  }
  return total;
}

fn pair_z(row: u32, index: u32) -> vec2<u32> {
  let entry = scalars.z_skip + row * scalars.all_z + index;
  return vec2<u32>(of_z[entry], of_z[entry + scalars.all_z]);
}
fn pair_y(row: u32, index: u32) -> vec2<u32> {
  let entry = scalars.y_skip + row * scalars.out_y + index;
  return vec2<u32>(of_y[entry], of_y[entry + scalars.out_y]);
}
fn pair_x(row: u32, index: u32) -> vec2<u32> {
  let entry = scalars.x_skip + row * scalars.out_x + index;
  return vec2<u32>(of_x[entry], of_x[entry + scalars.out_x]);
}

@compute @workgroup_size(64, 4, 1)
fn sample_volume(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.out_x || id.y >= scalars.out_y) {
    return;
  }
  let first = id.z * sample_planes_per_thread;
  let end = min(first + sample_planes_per_thread, scalars.out_z);
  let pixel = id.y * scalars.out_x + id.x;
  let plane = scalars.out_y * scalars.out_x;
  if (scalars.source == 0u) {
    let y_z = pair_y(0u, id.y);
    let y_y = pair_y(2u, id.y);
    let y_x = pair_y(4u, id.y);
    let x_z = pair_x(0u, id.x);
    let x_y = pair_x(2u, id.x);
    let x_x = pair_x(4u, id.x);
    for (var i = first; i < end; i++) {
      let full_z = scalars.out_first_z + i;
      let z = joined(pair_z(0u, full_z), y_z, x_z);
      let y = joined(pair_z(2u, full_z), y_y, x_y);
      let x = joined(pair_z(4u, full_z), y_x, x_x);
      output[scalars.out_skip + i * plane + pixel] = sampled(z, y, x);
    }
    return;
  }
  for (var i = first; i < end; i++) {
    let voxel = i * plane + pixel;
    var z = position_of(of_z[scalars.z_skip + voxel]);
    var y = position_of(of_y[scalars.y_skip + voxel]);
    var x = position_of(of_x[scalars.x_skip + voxel]);
    if (scalars.source == 2u) {
      z.whole += i32(scalars.out_first_z + i);
      y.whole += i32(id.y);
      x.whole += i32(id.x);
    }
    output[scalars.out_skip + voxel] = sampled(z, y, x);
  }
}
