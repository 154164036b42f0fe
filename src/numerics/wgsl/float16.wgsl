// Mirrors src/numerics/float16.hpp: float16 (in the low bits of a u32) to float32 and back by integer operations.

fn float16_to_float_bits(float16: u32) -> u32 {
  let sign = (float16 & 0x8000u) << 16u;
  var exponent = (float16 >> 10u) & 0x1fu;
  var fraction = float16 & 0x3ffu;
  if (exponent == 0x1fu) {
    return sign | 0x7f800000u | (fraction << 13u);
  }
  if (exponent == 0u) {
    if (fraction == 0u) {
      return sign;
    }
    exponent = 1u;
    while ((fraction & 0x400u) == 0u) {
      fraction = fraction << 1u;
      exponent -= 1u;
    }
    fraction = fraction & 0x3ffu;
  }
  return sign | ((exponent + (127u - 15u)) << 23u) | (fraction << 13u);
}

fn float_bits_to_float16(bits: u32) -> u32 {
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return sign | 0x7e00u | ((magnitude >> 13u) & 0x3ffu);
  }
  if (magnitude >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (magnitude >= 0x38800000u) {
    let rounded = magnitude + 0xfffu + ((magnitude >> 13u) & 1u);
    return sign | ((rounded - 0x38000000u) >> 13u);
  }
  if (magnitude < 0x33000000u) {
    return sign;
  }
  let shift = 126u - (magnitude >> 23u);
  let significand = (magnitude & 0x7fffffu) | 0x800000u;
  let kept = significand >> shift;
  let rest = significand & ((1u << shift) - 1u);
  let halfway = 1u << (shift - 1u);
  let up = rest > halfway || (rest == halfway && (kept & 1u) != 0u);
  return sign | (kept + select(0u, 1u, up));
}

fn finite_float16_to_float(float16: u32) -> f32 {
  let magnitude = float16 & 0x7fffu;
  let size = select((magnitude << 13u) + 0x38000000u, bitcast<u32>(f32(magnitude) * 0x1p-24f), magnitude < 0x400u);
  return bitcast<f32>(size | ((float16 & 0x8000u) << 16u));
}

fn float16_to_float(float16: u32) -> f32 {
  return bitcast<f32>(float16_to_float_bits(float16));
}

fn float_to_float16(value: f32) -> u32 {
  return float_bits_to_float16(bitcast<u32>(value));
}
