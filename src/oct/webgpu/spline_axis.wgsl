// Mirrors src/oct/kernel/spline_line.hpp: a thread turns the values of a line into coefficients.

struct SplineScalars {
  negative_zero: f32,
  skip: u32,
  axis: u32,
  z: u32,
  y: u32,
  x: u32,
  half_sample: u32,
}

@group(0) @binding(0) var<storage, read_write> volume: array<f32>;
@group(0) @binding(1) var<uniform> scalars: SplineScalars;

fn spline_extended(index: u32, count: u32) -> u32 {
  let half = scalars.half_sample;
  let period = 2u * count - 2u * (1u - half);
  let within = index % period;
  return select(period - half - within, within, within < count);
}

@compute @workgroup_size(64)
fn spline_axis(@builtin(global_invocation_id) id: vec3<u32>) {
  // Lines are numbered along x, then along the other axis.
  var count = scalars.z;
  var stride = scalars.y * scalars.x;
  var lines = vec2<u32>(scalars.x, scalars.y);
  var steps = vec2<u32>(1u, scalars.x);
  if (scalars.axis == 1u) {
    count = scalars.y;
    stride = scalars.x;
    lines = vec2<u32>(scalars.x, scalars.z);
    steps = vec2<u32>(1u, scalars.y * scalars.x);
  } else if (scalars.axis == 2u) {
    count = scalars.x;
    stride = 1u;
    lines = vec2<u32>(scalars.y, scalars.z);
    steps = vec2<u32>(scalars.x, scalars.y * scalars.x);
  }
  if (id.x >= lines.x || id.y >= lines.y || count < 2u) {
    return;
  }
  let line = scalars.skip + id.x * steps.x + id.y * steps.y;
  var sum = volume[line];
  var power = pin(spline_pole);
  for (var k = 1u; k <= spline_horizon; k++) {
    let mirrored = spline_extended(k - scalars.half_sample, count);
    sum = sum + mul(power, volume[line + mirrored * stride]);
    power = mul(power, spline_pole);
  }
  var before = mul(spline_gain, sum);
  volume[line] = before;
  for (var i = 1u; i < count; i++) {
    before = mul(spline_gain, volume[line + i * stride]) + mul(spline_pole, before);
    volume[line + i * stride] = before;
  }
  var after = 0.0;
  if (scalars.half_sample != 0u) {
    after = mul(spline_reflect_start, before);
  } else {
    after = mul(spline_mirror_start, mul(spline_pole, volume[line + (count - 2u) * stride]) + before);
  }
  volume[line + (count - 1u) * stride] = after;
  for (var i = count - 1u; i > 0u; i--) {
    after = mul(spline_pole, after - volume[line + (i - 1u) * stride]);
    volume[line + (i - 1u) * stride] = after;
  }
}
