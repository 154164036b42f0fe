// Mirrors src/numerics/classify.hpp: kinds of float32 by integer tests on the bits, and conversions that need them.

fn magnitude_bits(value: f32) -> u32 {
  return bitcast<u32>(value) & 0x7fffffffu;
}

fn is_negative(value: f32) -> bool {
  return (bitcast<u32>(value) & sign_bit) != 0u;
}

fn is_nan(value: f32) -> bool {
  return magnitude_bits(value) > infinity_bits;
}

fn is_infinite(value: f32) -> bool {
  return magnitude_bits(value) == infinity_bits;
}

fn is_finite(value: f32) -> bool {
  return magnitude_bits(value) < infinity_bits;
}

fn is_subnormal(value: f32) -> bool {
  return magnitude_bits(value) - 1u < smallest_normal_bits - 1u;
}

fn absolute(value: f32) -> f32 {
  return bitcast<f32>(magnitude_bits(value));
}

fn clamp_magnitude(value: f32, limit: f32) -> f32 {
  let limit_bits = bitcast<u32>(limit);
  let clamped = bitcast<f32>((bitcast<u32>(value) & sign_bit) | limit_bits);
  return select(value, clamped, magnitude_bits(value) > limit_bits);
}

fn float_to_int32(value: f32) -> i32 {
  let magnitude = magnitude_bits(value);
  if (magnitude < 0x4f000000u) {
    return i32(value);
  }
  if (magnitude > infinity_bits) {
    return 0;
  }
  return select(0x7fffffff, bitcast<i32>(0x80000000u), is_negative(value));
}

fn float_to_uint32(value: f32) -> u32 {
  let magnitude = magnitude_bits(value);
  if (magnitude > infinity_bits || is_negative(value)) {
    return 0u;
  }
  if (magnitude < 0x4f800000u) {
    return u32(value);
  }
  return 0xffffffffu;
}

fn flush_tiny(value: f32, unit: f32) -> f32 {
  return select(value, 0.0, magnitude_bits(value) < bitcast<u32>(mul(unit, 0x1p-40f)));
}
