// Mirrors src/oct/kernel/line_index.hpp: samples beyond the ends of a line; and what several kernels share.

// Samples d c b a | a b c d | d c b a, for lines of any length.
fn reflected(index: i32, count: i32) -> i32 {
  var i = index;
  while (i < 0 || i >= count) {
    i = select(2 * count - 1 - i, -1 - i, i < 0);
  }
  return i;
}

// Vulkan leaves the remainder of negative numbers undefined, and drivers make use of it: of unsigned ones it is not.
fn modulo(index: i32, count: i32) -> i32 {
  if (index >= 0) {
    return i32(u32(index) % u32(count));
  }
  return count - 1 - i32(u32(-1 - index) % u32(count));
}

fn tap_index(index: i32, count: i32, boundary: u32) -> i32 {
  if (index >= 0 && index < count) {
    return index;
  }
  if (boundary == boundary_nearest) {
    return select(count - 1, 0, index < 0);
  }
  if (boundary == boundary_wrap) {
    return modulo(index, count);
  }
  if (boundary == boundary_reflect) {
    let within = modulo(index, 2 * count);
    return select(2 * count - 1 - within, within, within < count);
  }
  if (count == 1) {
    return 0;
  }
  let within = modulo(index, 2 * count - 2);
  return select(2 * count - 2 - within, within, within < count);
}

// Four products at once.
fn mul4(a: vec4<f32>, b: f32) -> vec4<f32> {
  return fma(a, vec4<f32>(b), vec4<f32>(scalars.negative_zero));
}

// Mirrors src/oct/kernel/ordered_key.hpp.
fn ordered_key(bits: u32) -> u32 {
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn bits_of_key(key: u32) -> u32 {
  return select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
}
