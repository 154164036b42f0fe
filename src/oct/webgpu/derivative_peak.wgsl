// Mirrors src/oct/kernel/interface_line.hpp: a thread finds the peak of an A-line's responses, eight of them at a time;
// and find_odd_peak of src/oct/cuda/interface_kernels.cu, for which compiled_word is 1.

struct PeakScalars {
  negative_zero: f32,
  skip: u32,
  table_skip: u32,
  places_skip: u32,
  depths_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  radius: u32,
  smooth_weights: u32,
  sub_voxel: u32,
  masked: u32,
  lift: f32,
  odd: u32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(3) var<storage, read_write> depths: array<f32>;
@group(0) @binding(4) var<uniform> scalars: PeakScalars;

struct LinePeak {
  best: f32,
  at: f32,
  before: f32,
  after: f32,
  previous: f32,
  fresh: bool,
}

fn consider(peak: ptr<function, LinePeak>, position: u32, sum: f32, magnitude: bool) {
  let response = select(sum, -sum, magnitude && sum < 0.0);
  if (position == 0u) {
    *peak = LinePeak(response, 0.0, response, response, response, true);
    return;
  }
  let better = response > (*peak).best;
  if ((*peak).fresh && !better) {
    (*peak).after = response;
  }
  if (better) {
    (*peak).before = (*peak).previous;
    (*peak).best = response;
    (*peak).at = f32(position);
  }
  (*peak).fresh = better;
  (*peak).previous = response;
}

fn find_peak(line: u32, plane: u32, count: u32, table: u32, magnitude: bool) -> LinePeak {
  var peak = LinePeak(0.0, 0.0, 0.0, 0.0, 0.0, false);
  let samples = 8u + 2u * scalars.radius;
  for (var first = 0u; first < count; first += 8u) {
    var low = vec4<f32>(positive_zero());
    var high = vec4<f32>(positive_zero());
    var low_weights = vec4<f32>(positive_zero());
    var high_weights = vec4<f32>(positive_zero());
    for (var j = 0u; j < samples; j++) {
      high_weights = vec4<f32>(low_weights.w, high_weights.xyz);
      low_weights = vec4<f32>(weights[table + j + 7u], low_weights.xyz);
      let at = u32(reflected(i32(first + j) - i32(scalars.radius), i32(count)));
      let value = volume[line + at * plane];
      low = low + mul4(low_weights, value);
      high = high + mul4(high_weights, value);
    }
    for (var b = 0u; b < 4u; b++) {
      if (first + b < count) {
        consider(&peak, first + b, low[b], magnitude);
      }
    }
    for (var b = 0u; b < 4u; b++) {
      if (first + b + 4u < count) {
        consider(&peak, first + b + 4u, high[b], magnitude);
      }
    }
  }
  return peak;
}

// The sums of all windows that hold a sample, those with 1 to 8 samples, and with 10 to 17; the weight between them is
// zero. They move up as they grow.
struct OddSums {
  low: vec4<f32>,
  high: vec4<f32>,
  middle: f32,
  falling_high: vec4<f32>,
  falling_low: vec4<f32>,
}

fn grow(sums: ptr<function, OddSums>, low_weights: vec4<f32>, high_weights: vec4<f32>, value: f32) {
  let low = mul4(low_weights, value);
  let high = mul4(high_weights, value);
  (*sums).falling_low = vec4<f32>((*sums).falling_high.w, (*sums).falling_low.xyz) - low.wzyx;
  (*sums).falling_high = vec4<f32>((*sums).middle, (*sums).falling_high.xyz) - high.wzyx;
  (*sums).middle = (*sums).high.w;
  (*sums).high = vec4<f32>((*sums).low.w, (*sums).high.xyz) + high;
  (*sums).low = vec4<f32>(positive_zero(), (*sums).low.xyz) + low;
}

fn sample_of(line: u32, plane: u32, count: u32, at: i32) -> f32 {
  return volume[line + u32(reflected(at, i32(count))) * plane];
}

fn answer(peak: ptr<function, LinePeak>, position: i32, count: u32, sums: ptr<function, OddSums>) {
  if (position >= 0 && position < i32(count)) {
    consider(peak, u32(position), (*sums).falling_low.w, false);
  }
}

fn find_odd_peak(line: u32, plane: u32, count: u32) -> LinePeak {
  var peak = LinePeak(0.0, 0.0, 0.0, 0.0, 0.0, false);
  let table = scalars.table_skip + 7u;
  let low_weights = vec4<f32>(weights[table], weights[table + 1u], weights[table + 2u], weights[table + 3u]);
  let high_weights = vec4<f32>(weights[table + 4u], weights[table + 5u], weights[table + 6u], weights[table + 7u]);
  let zeros = vec4<f32>(positive_zero());
  var sums = OddSums(zeros, zeros, positive_zero(), zeros, zeros);
  let end = i32(count) + 8;
  for (var first = -8; first < end && count > 0u; first += 4) {
    var values: vec4<f32>;
    if (first >= 0 && first + 4 <= i32(count)) {
      let at = line + u32(first) * plane;
      values = vec4<f32>(volume[at], volume[at + plane], volume[at + 2u * plane], volume[at + 3u * plane]);
    } else {
      values = vec4<f32>(sample_of(line, plane, count, first), sample_of(line, plane, count, first + 1),
                         sample_of(line, plane, count, first + 2), sample_of(line, plane, count, first + 3));
    }
    grow(&sums, low_weights, high_weights, values.x);
    answer(&peak, first - 8, count, &sums);
    grow(&sums, low_weights, high_weights, values.y);
    answer(&peak, first - 7, count, &sums);
    grow(&sums, low_weights, high_weights, values.z);
    answer(&peak, first - 6, count, &sums);
    grow(&sums, low_weights, high_weights, values.w);
    answer(&peak, first - 5, count, &sums);
  }
  return peak;
}

fn parabola_offset(peak: LinePeak, count: u32) -> f32 {
  if (!(peak.at > 0.0) || !(u32(peak.at) + 1u < count)) {
    return 0.0;
  }
  let curvature = pin(pin(peak.before - peak.best) + pin(peak.after - peak.best));
  if (!(curvature < 0.0)) {
    return 0.0;
  }
  return div(mul(0.5, pin(peak.before - peak.after)), curvature);
}

fn masked_peak(peak: LinePeak, count: u32, first_place: u32, plane: u32) -> f32 {
  if (count == 0u) {
    return 0.0;
  }
  let found = places[first_place + u32(peak.at) * plane];
  if (count == scalars.z || peak.best > 0.0) {
    return f32(found);
  }
  var left_out = 0u;
  while (left_out < count && places[first_place + left_out * plane] == left_out) {
    left_out++;
  }
  return f32(select(found, left_out, peak.best < 0.0 || left_out < found));
}

@compute @workgroup_size(64, 1, 1)
fn derivative_peak(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= scalars.x) {
    return;
  }
  let plane = scalars.y * scalars.x;
  let line = id.y * scalars.x + id.x;
  let masked = scalars.masked != 0u;
  let first_place = scalars.places_skip + line;
  var count = scalars.z;
  if (masked) {
    count = places[first_place + scalars.z * plane];
  }
  var peak: LinePeak;
  if (compiled_word == 1u) {
    peak = find_odd_peak(scalars.skip + line, plane, count);
  } else {
    peak = find_peak(scalars.skip + line, plane, count, scalars.table_skip, false);
  }
  if (masked) {
    peak.at = masked_peak(peak, count, first_place, plane);
    peak.before = peak.best;
    peak.after = peak.best;
  }
  var depth = 0.0;
  if (scalars.sub_voxel != 0u) {
    depth = pin(peak.at + parabola_offset(peak, scalars.z)) + scalars.lift;
  } else {
    depth = -floor(-(peak.at + scalars.lift));
  }
  if (scalars.smooth_weights != 0u) {
    let padded = 2u * scalars.radius + 15u;
    var smoothed = find_peak(scalars.skip + line, plane, count, scalars.table_skip + padded, true);
    if (masked) {
      smoothed.at = masked_peak(smoothed, count, first_place, plane);
    }
    if (smoothed.at < depth) {
      depth = smoothed.at;
    }
  }
  depths[scalars.depths_skip + line] = depth;
}
