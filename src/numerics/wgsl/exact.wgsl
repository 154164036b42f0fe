// Mirrors src/numerics/portable.hpp: products, quotients and roots that have the bits of the host on every driver.
//
// WGSL lets a driver join a product and a following addition into one rounding, does not ask for exactly rounded
// division and root, and does not forbid reordering. The rules that hold the bits all the same:
// - every product is mul(), every quotient div(), every root root(); additions and subtractions are plain;
// - a product or a sum that meets a literal in an addition or a comparison is wrapped in pin() first: Mesa moves
//   literals inwards, (a + b) + 1 to (a + 1) + b, and even fma(a, b, z) + 1 to fma(a, b, 1) + z;
// - a sum from which one of its own terms is taken away again is wrapped in pin(): Mesa cancels a + b - a;
// - a zero that enters a product is positive_zero(), not a literal: Mesa drops such products, and their sign.

// -0.0, from a uniform: a compiler that knew the value could undo what follows. Every entry point sets it first.
var<private> negative_zero: f32;

// The product. Adding -0.0 changes no product, not even a zero's sign, whether or not the driver fuses the fma; and a
// product that already has its addition cannot be given another one.
fn mul(a: f32, b: f32) -> f32 {
  return fma(a, b, negative_zero);
}

// The same number, from an operation that no compiler can see through. One integer instruction.
fn pin(a: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(a) ^ (bitcast<u32>(negative_zero) << 1u));
}

// A step of Horner's scheme with a literal coefficient: p z + c, rounded twice.
fn horner(p: f32, z: f32, c: f32) -> f32 {
  return pin(mul(p, z)) + c;
}

// +0.0 for numbers that enter a product.
fn positive_zero() -> f32 {
  return bitcast<f32>(bitcast<u32>(negative_zero) << 1u);
}

// a / b, exactly rounded. Both significands are brought to [1, 2), the driver divides them, and the integer residual
// says by how many units its quotient is off. WGSL allows 2.5 units, so three steps either way suffice. The residual
// is computed modulo 2^32; its true value is below 2^27. No quotient lies half-way between two floats. Zero divisors,
// subnormal and non-finite arguments and results are left to the driver.
fn div(a: f32, b: f32) -> f32 {
  let a_bits = bitcast<u32>(a);
  let b_bits = bitcast<u32>(b);
  let a_exponent = (a_bits >> 23u) & 0xffu;
  let b_exponent = (b_bits >> 23u) & 0xffu;
  let a_significand = (a_bits & 0x7fffffu) | 0x800000u;
  let b_significand = (b_bits & 0x7fffffu) | 0x800000u;
  let smaller = select(0u, 1u, a_significand < b_significand);
  let exponent = i32(a_exponent) - i32(b_exponent) + 127 - i32(smaller);
  if ((a_bits & 0x7fffffffu) == 0u && b_exponent - 1u <= 253u) {
    return bitcast<f32>((a_bits ^ b_bits) & 0x80000000u);
  }
  if (a_exponent - 1u > 253u || b_exponent - 1u > 253u || exponent < 1 || exponent > 254) {
    return a / b;
  }
  let dividend = bitcast<f32>((a_significand & 0x7fffffu) | ((127u + smaller) << 23u));
  let divisor = bitcast<f32>((b_significand & 0x7fffffu) | 0x3f800000u);
  var quotient = u32((dividend / divisor) * 8388608.0);
  let m = i32(b_significand);
  let twice_residual = 2 * i32((a_significand << (23u + smaller)) - quotient * b_significand);
  quotient += select(0u, 1u, twice_residual > m) + select(0u, 1u, twice_residual > 3 * m) +
              select(0u, 1u, twice_residual > 5 * m);
  quotient -= select(0u, 1u, twice_residual < -m) + select(0u, 1u, twice_residual < -3 * m) +
              select(0u, 1u, twice_residual < -5 * m);
  // The hidden bit of the quotient raises the exponent by one.
  return bitcast<f32>(((a_bits ^ b_bits) & 0x80000000u) | ((u32(exponent - 1) << 23u) + quotient));
}

// The square root, exactly rounded: the driver's root Q of a significand in [1, 4), read as an integer, is moved by the
// residual R = N - Q^2 divided by 2Q (Newton's step, to the nearest integer) and then by at most one more unit, so that
// -Q < R <= Q holds: then Q - 1/2 < sqrt(N) < Q + 1/2. R is computed modulo 2^32 and right while the driver is off by
// less than 60 units. Negative, subnormal and non-finite arguments are left to the driver.
fn root(a: f32) -> f32 {
  let bits = bitcast<u32>(a);
  if ((bits & 0x7fffffffu) == 0u) {
    return a;
  }
  let exponent = bits >> 23u;  // above 254 for negative numbers too
  if (exponent - 1u > 253u) {
    return sqrt(a);
  }
  let odd = (exponent & 1u) ^ 1u;  // 1 where the unbiased exponent is odd
  let significand = (bits & 0x7fffffu) | 0x800000u;
  let radicand = bitcast<f32>((significand & 0x7fffffu) | ((127u + odd) << 23u));
  var q = i32(sqrt(radicand) * 8388608.0);
  let n = i32(significand << (23u + odd));
  var r = n - q * q;
  let step = i32(floor(f32(r) / f32(2 * q) + 0.5));
  r -= step * (2 * q + step);
  q += step;
  q += select(0, 1, r > q) - select(0, 1, r <= -q);
  let result_exponent = (exponent + 127u - odd) >> 1u;
  return bitcast<f32>(((result_exponent - 1u) << 23u) + u32(q));
}
