// Mirrors log_box of src/oct/cuda/interface_kernels.cu, whose sums are those of cpu/interface_rows.cpp: a workgroup takes
// a strip of a plane and goes down its rows, eight at a time; a ring of rows holds the logarithms of a window.

struct LogBoxScalars {
  negative_zero: f32,
  in_skip: u32,
  out_skip: u32,
  z: u32,
  y: u32,
  x: u32,
  window: u32,
  use_log: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> volume: array<f32>;
@group(0) @binding(1) var<storage, read_write> boxed: array<f32>;
@group(0) @binding(2) var<uniform> scalars: LogBoxScalars;

const strip = 64u;
const widest_strip = strip + log_box_most_window - 1u;

var<workgroup> ring: array<f32, (log_box_most_window - 1u + log_box_batch) * widest_strip>;
var<workgroup> sums: array<f32, log_box_batch * widest_strip>;

fn tissue_log(value: f32) -> f32 {
  if (value > 0.0) {
    return logarithm(value);
  }
  return value;
}

// One sample more to the eight sums whose windows hold it: those that begin at samples 0 to 7.
fn grown(sum: vec4<f32>, value: f32, j: u32, first: u32) -> vec4<f32> {
  let into = vec4<u32>(j) - (vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u));
  return select(sum, sum + vec4<f32>(value), into < vec4<u32>(scalars.window));
}

@compute @workgroup_size(64, 1, 1)
fn log_box(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let window = scalars.window;
  let columns = strip + window - 1u;
  let ring_rows = window - 1u + log_box_batch;
  let below = i32(window / 2u);
  let height = i32(scalars.y);
  let width = i32(scalars.x);
  let x0 = i32(group.x * strip);
  let y0 = group.y * log_box_block_rows;
  let y1 = min(y0 + log_box_block_rows, scalars.y);
  let plane = scalars.y * scalars.x;
  let plane_in = scalars.in_skip + group.z * plane;
  let plane_out = scalars.out_skip + group.z * plane;
  let row = thread / 8u;
  let segment = thread % 8u;
  var loaded = 0u;
  for (var y = y0; y < y1; y += log_box_batch) {
    let end = y - y0 + ring_rows;
    for (; loaded < end; loaded++) {
      let line = plane_in + u32(reflected(i32(y0 + loaded) - below, height)) * scalars.x;
      let slot = (loaded % ring_rows) * columns;
      for (var c = thread; c < columns; c += strip) {
        let value = volume[line + u32(reflected(x0 - below + i32(c), width))];
        if (scalars.use_log != 0u) {
          ring[slot + c] = tissue_log(value);
        } else {
          ring[slot + c] = value;
        }
      }
    }
    workgroupBarrier();
    let first = (y - y0) % ring_rows;
    for (var c = thread; c < columns; c += strip) {
      var low = vec4<f32>(positive_zero());
      var high = vec4<f32>(positive_zero());
      for (var j = 0u; j < ring_rows; j++) {
        let at = first + j;
        let value = ring[select(at - ring_rows, at, at < ring_rows) * columns + c];
        low = grown(low, value, j, 0u);
        high = grown(high, value, j, 4u);
      }
      for (var b = 0u; b < 4u; b++) {
        sums[b * columns + c] = low[b];
        sums[(b + 4u) * columns + c] = high[b];
      }
    }
    workgroupBarrier();
    var low = vec4<f32>(positive_zero());
    var high = vec4<f32>(positive_zero());
    for (var j = 0u; j < ring_rows; j++) {
      let value = sums[row * columns + segment * 8u + j];
      low = grown(low, value, j, 0u);
      high = grown(high, value, j, 4u);
    }
    low = mul4(low, scalars.scale);
    high = mul4(high, scalars.scale);
    let x = u32(x0) + segment * 8u;
    if (y + row < y1) {
      let place = plane_out + (y + row) * scalars.x + x;
      for (var b = 0u; b < 4u; b++) {
        if (x + b < scalars.x) {
          boxed[place + b] = low[b];
        }
        if (x + b + 4u < scalars.x) {
          boxed[place + b + 4u] = high[b];
        }
      }
    }
  }
}
