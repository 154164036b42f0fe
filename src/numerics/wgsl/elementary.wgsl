// Mirrors src/numerics/elementary.hpp: sine, cosine, arc cosine, logarithm, exponential, operation for operation.

struct SineCosine {
  sine: f32,
  cosine: f32,
}

struct ReducedAngle {
  quadrant: u32,
  remainder: f32,
  tail: f32,
}

fn reduce_angle(x: f32) -> ReducedAngle {
  let k = floor(horner(x, 0x1.45f306p-1f, 0.5));
  let coarse = pin(x - mul(k, 0x1.921ep+0f));
  let correction = mul(k, 0x1.b544p-16f);
  let remainder = pin(coarse - correction);
  let tail = (pin(coarse - remainder) - correction) - mul(k, 0x1.0b4612p-34f);
  return ReducedAngle(bitcast<u32>(i32(k)) & 3u, remainder, tail);
}

fn sine_of_reduced(remainder: f32, tail: f32) -> f32 {
  let z = mul(remainder, remainder);
  var p = 0x1.6cd16ep-19f;
  p = horner(p, z, -0x1.a00f7cp-13f);
  p = horner(p, z, 0x1.111108p-7f);
  p = horner(p, z, -0x1.555556p-3f);
  return remainder + (tail + mul(mul(remainder, z), p));
}

fn cosine_of_reduced(remainder: f32, tail: f32) -> f32 {
  let z = mul(remainder, remainder);
  var p = 0x1.99eaf8p-16f;
  p = horner(p, z, -0x1.6c0c32p-10f);
  p = horner(p, z, 0x1.55554ap-5f);
  let half_z = pin(mul(0.5, z));
  let head = pin(1.0 - half_z);
  return head + (pin(pin(1.0 - head) - half_z) + (mul(mul(z, z), p) - mul(remainder, tail)));
}

fn sine(x: f32) -> f32 {
  if (magnitude_bits(x) < 0x39800000u) {
    return x;
  }
  let angle = reduce_angle(clamp_magnitude(x, largest_angle));
  var value = 0.0;
  if ((angle.quadrant & 1u) != 0u) {
    value = cosine_of_reduced(angle.remainder, angle.tail);
  } else {
    value = sine_of_reduced(angle.remainder, angle.tail);
  }
  return select(value, -value, (angle.quadrant & 2u) != 0u);
}

fn cosine(x: f32) -> f32 {
  let angle = reduce_angle(clamp_magnitude(x, largest_angle));
  var value = 0.0;
  if ((angle.quadrant & 1u) != 0u) {
    value = sine_of_reduced(angle.remainder, angle.tail);
  } else {
    value = cosine_of_reduced(angle.remainder, angle.tail);
  }
  return select(value, -value, ((angle.quadrant + 1u) & 2u) != 0u);
}

fn sine_cosine(x: f32) -> SineCosine {
  let angle = reduce_angle(clamp_magnitude(x, largest_angle));
  let s = sine_of_reduced(angle.remainder, angle.tail);
  let c = cosine_of_reduced(angle.remainder, angle.tail);
  let swapped = (angle.quadrant & 1u) != 0u;
  var sine_value = select(s, c, swapped);
  var cosine_value = select(c, s, swapped);
  if ((angle.quadrant & 2u) != 0u) {
    sine_value = -sine_value;
  }
  if (((angle.quadrant + 1u) & 2u) != 0u) {
    cosine_value = -cosine_value;
  }
  if (magnitude_bits(x) < 0x39800000u) {
    sine_value = x;
  }
  return SineCosine(sine_value, cosine_value);
}

fn arc_sine_excess(z: f32) -> f32 {
  var p = 0x1.3355c6p-5f;
  p = horner(p, z, 0x1.d91f8ap-7f);
  p = horner(p, z, 0x1.0491a4p-5f);
  p = horner(p, z, 0x1.6caed2p-5f);
  p = horner(p, z, 0x1.33387cp-4f);
  p = horner(p, z, 0x1.55554cp-3f);
  return mul(z, p);
}

fn arc_cosine(x: f32) -> f32 {
  let pi_rounded = 0x1.921fb6p+1f;
  let half_pi_high = 0x1.921fb6p+0f;
  let half_pi_low = -0x1.777a5cp-25f;
  let magnitude = magnitude_bits(x);
  let negative = is_negative(x);
  if (magnitude >= 0x3f800000u) {
    return select(0.0, pi_rounded, negative);
  }
  if (magnitude <= 0x3f000000u) {
    let excess = pin(mul(x, arc_sine_excess(mul(x, x))));
    return half_pi_high - pin(x - pin(half_pi_low - excess));
  }
  let z = mul(1.0 - absolute(x), 0.5);
  let s = root(z);
  let excess = pin(mul(s, arc_sine_excess(z)));
  if (negative) {
    let sum = s + pin(excess - half_pi_low);
    return pi_rounded - pin(sum + sum);
  }
  let upper = bitcast<f32>(bitcast<u32>(s) & 0xfffff000u);
  let lower = div(z - mul(upper, upper), s + upper);
  let sum = upper + (lower + excess);
  return sum + sum;
}

fn logarithm(x: f32) -> f32 {
  var bits = bitcast<u32>(x);
  if (bits > infinity_bits - 1u) {
    bits = select(largest_finite_bits, smallest_normal_bits, (bits & sign_bit) != 0u);
  }
  bits = max(bits, smallest_normal_bits);
  let shifted = bits + (0x3f800000u - 0x3f3504f3u);
  let k = f32(i32(shifted >> 23u) - 127);
  let f = bitcast<f32>((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0;
  let z = mul(f, f);
  var p = 0x1.1457a4p-4f;
  p = horner(p, f, -0x1.de3c1p-4f);
  p = horner(p, f, 0x1.e6f06ap-4f);
  p = horner(p, f, -0x1.fc2208p-4f);
  p = horner(p, f, 0x1.233768p-3f);
  p = horner(p, f, -0x1.555c4ep-3f);
  p = horner(p, f, 0x1.99a4b6p-3f);
  p = horner(p, f, -0x1.000006p-2f);
  p = horner(p, f, 0x1.555548p-2f);
  let curve = mul(mul(f, z), p) - mul(0.5, z);
  let whole = mul(k, 0x1.62e4p-1f);
  let head = pin(whole + f);
  let rest = f - pin(head - whole);
  return head + (rest + (curve + mul(k, 0x1.7f7d1cp-20f)));
}

fn exponential(x: f32) -> f32 {
  let clamped = clamp_magnitude(x, 128.0);
  let k = floor(horner(clamped, 0x1.715476p+0f, 0.5));
  let r = (clamped - mul(k, 0x1.62e4p-1f)) - mul(k, 0x1.7f7d1cp-20f);
  var p = 0x1.6a2438p-10f;
  p = horner(p, r, 0x1.1239f2p-7f);
  p = horner(p, r, 0x1.5558f2p-5f);
  p = horner(p, r, 0x1.555492p-3f);
  p = horner(p, r, 0x1.fffffcp-2f);
  let bits = bitcast<u32>(1.0 + pin(r + mul(mul(r, r), p)));
  let power = i32(k);
  let exponent = i32(bits >> 23u) + power;
  if (exponent < 1) {
    return 0.0;
  }
  if (exponent > 254) {
    return bitcast<f32>(largest_finite_bits);
  }
  return bitcast<f32>(bits + (bitcast<u32>(power) << 23u));
}
