// Mirrors log_box of src/oct/cuda/interface_kernels.cu, whose sums are those of cpu/interface_rows.cpp: a thread of a
// strip goes down one column and keeps the sums of all windows that hold its present row; eight finished rows at a time
// go through workgroup memory to the sums along x. compiled_word is the window.

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

const window = compiled_word;
const last = window - 1u;
const segments = (log_box_threads - last) / 8u;
const outputs = segments * 8u;
const below = i32(window / 2u);
const ahead = i32(last) - below;
const lead = i32((last + 7u) / 8u * 8u);
const buffer_size = log_box_batch * log_box_pitch;

var<workgroup> buffers: array<f32, 2u * buffer_size>;

fn tissue_log(value: f32) -> f32 {
  return select(value, logarithm(value), value > 0.0);
}

// Windows with 1 to 24 samples; those beyond `window` are not used.
struct WindowSums {
  a: vec4<f32>,
  b: vec4<f32>,
  c: vec4<f32>,
  d: vec4<f32>,
  e: vec4<f32>,
  f: vec4<f32>,
}

// One sample more: the sums move up as they grow. Gives the sum of the window that is complete.
fn grow(sums: ptr<function, WindowSums>, value: f32) -> f32 {
  let sample = vec4<f32>(value);
  if (window > 20u) {
    (*sums).f = vec4<f32>((*sums).e.w, (*sums).f.xyz) + sample;
  }
  if (window > 16u) {
    (*sums).e = vec4<f32>((*sums).d.w, (*sums).e.xyz) + sample;
  }
  if (window > 12u) {
    (*sums).d = vec4<f32>((*sums).c.w, (*sums).d.xyz) + sample;
  }
  if (window > 8u) {
    (*sums).c = vec4<f32>((*sums).b.w, (*sums).c.xyz) + sample;
  }
  if (window > 4u) {
    (*sums).b = vec4<f32>((*sums).a.w, (*sums).b.xyz) + sample;
  }
  (*sums).a = vec4<f32>(positive_zero(), (*sums).a.xyz) + sample;
  if (window > 20u) {
    return (*sums).f[last % 4u];
  }
  if (window > 16u) {
    return (*sums).e[last % 4u];
  }
  if (window > 12u) {
    return (*sums).d[last % 4u];
  }
  if (window > 8u) {
    return (*sums).c[last % 4u];
  }
  if (window > 4u) {
    return (*sums).b[last % 4u];
  }
  return (*sums).a[last % 4u];
}

// Four rows of a column from `first` on.
fn rows_of(column: u32, first: i32) -> vec4<f32> {
  let height = i32(scalars.y);
  if (first >= 0 && first + 4 <= height) {
    let at = column + u32(first) * scalars.x;
    return vec4<f32>(volume[at], volume[at + scalars.x], volume[at + 2u * scalars.x], volume[at + 3u * scalars.x]);
  }
  return vec4<f32>(volume[column + u32(reflected(first, height)) * scalars.x],
                   volume[column + u32(reflected(first + 1, height)) * scalars.x],
                   volume[column + u32(reflected(first + 2, height)) * scalars.x],
                   volume[column + u32(reflected(first + 3, height)) * scalars.x]);
}

fn prepared(values: vec4<f32>) -> vec4<f32> {
  if (scalars.use_log == 0u) {
    return values;
  }
  return vec4<f32>(tissue_log(values.x), tissue_log(values.y), tissue_log(values.z), tissue_log(values.w));
}

// Samples 4 k to 4 k + 3 of a segment.
fn four_of(line: u32, k: u32) -> vec4<f32> {
  let at = line + (k % 2u) * 4u * log_box_eighth + k / 2u;
  return vec4<f32>(buffers[at], buffers[at + log_box_eighth], buffers[at + 2u * log_box_eighth],
                   buffers[at + 3u * log_box_eighth]);
}

// As many of them as the row has.
fn store_four(at: u32, left: u32, values: vec4<f32>) {
  boxed[at] = values.x;
  if (left > 1u) {
    boxed[at + 1u] = values.y;
  }
  if (left > 2u) {
    boxed[at + 2u] = values.z;
  }
  if (left > 3u) {
    boxed[at + 3u] = values.w;
  }
}

@compute @workgroup_size(192, 1, 1)
fn log_box(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let width = i32(scalars.x);
  let x0 = i32(group.x * outputs);
  let y0 = i32(group.y * log_box_block_rows);
  let y1 = min(y0 + i32(log_box_block_rows), i32(scalars.y));
  let plane = group.z * scalars.y * scalars.x;
  let column = x0 - below + i32(thread);
  let taken = column < width + ahead;
  var from_column = scalars.in_skip + plane;
  if (taken) {
    from_column += u32(reflected(column, width));
  }
  let place = (thread % 8u) * log_box_eighth + thread / 8u;
  let row = thread / segments;
  let segment = thread % segments;
  let x = u32(x0) + segment * 8u;

  let zeros = vec4<f32>(positive_zero());
  var sums = WindowSums(zeros, zeros, zeros, zeros, zeros, zeros);
  var next_low = zeros;
  var next_high = zeros;
  if (taken) {
    next_low = rows_of(from_column, y0 - lead + ahead);
    next_high = rows_of(from_column, y0 - lead + ahead + 4);
  }
  var buffer = 0u;
  for (var y = y0 - lead; y < y1; y += 8) {
    if (taken) {
      let low_rows = prepared(next_low);
      let high_rows = prepared(next_high);
      // The next rows are on their way while these are summed.
      if (y + 8 < y1) {
        next_low = rows_of(from_column, y + 8 + ahead);
        next_high = rows_of(from_column, y + 12 + ahead);
      }
      let at = buffer + place;
      let low = vec4<f32>(grow(&sums, low_rows.x), grow(&sums, low_rows.y), grow(&sums, low_rows.z),
                          grow(&sums, low_rows.w));
      let high = vec4<f32>(grow(&sums, high_rows.x), grow(&sums, high_rows.y), grow(&sums, high_rows.z),
                           grow(&sums, high_rows.w));
      buffers[at] = low.x;
      buffers[at + log_box_pitch] = low.y;
      buffers[at + 2u * log_box_pitch] = low.z;
      buffers[at + 3u * log_box_pitch] = low.w;
      buffers[at + 4u * log_box_pitch] = high.x;
      buffers[at + 5u * log_box_pitch] = high.y;
      buffers[at + 6u * log_box_pitch] = high.z;
      buffers[at + 7u * log_box_pitch] = high.w;
    }
    // One barrier a batch: who writes into a buffer again has passed the barrier behind its last reader.
    workgroupBarrier();
    if (y >= y0 && row < 8u && y + i32(row) < y1 && x < scalars.x) {
      let line = buffer + row * log_box_pitch + segment;
      var a = four_of(line, 0u);
      var b = four_of(line, 1u);
      var c = four_of(line, 2u);
      var low = vec4<f32>(positive_zero());
      var high = vec4<f32>(positive_zero());
      for (var k = 0u; k < window / 4u; k++) {
        low = low + a;
        high = high + b;
        low = low + vec4<f32>(a.yzw, b.x);
        high = high + vec4<f32>(b.yzw, c.x);
        low = low + vec4<f32>(a.zw, b.xy);
        high = high + vec4<f32>(b.zw, c.xy);
        low = low + vec4<f32>(a.w, b.xyz);
        high = high + vec4<f32>(b.w, c.xyz);
        a = b;
        b = c;
        c = four_of(line, k + 3u);
      }
      if (window % 4u > 0u) {
        low = low + a;
        high = high + b;
      }
      if (window % 4u > 1u) {
        low = low + vec4<f32>(a.yzw, b.x);
        high = high + vec4<f32>(b.yzw, c.x);
      }
      if (window % 4u > 2u) {
        low = low + vec4<f32>(a.zw, b.xy);
        high = high + vec4<f32>(b.zw, c.xy);
      }
      low = mul4(low, scalars.scale);
      high = mul4(high, scalars.scale);
      let target_place = scalars.out_skip + plane + u32(y + i32(row)) * scalars.x + x;
      store_four(target_place, scalars.x - x, low);
      if (x + 4u < scalars.x) {
        store_four(target_place + 4u, scalars.x - x - 4u, high);
      }
    }
    buffer = buffer_size - buffer;
  }
}
