// Mirrors high_product of src/numerics/portable.hpp. A module holds this file or high_product_64.wgsl.

// The upper 32 bits of the 64-bit product, by halves of 16 bits.
fn high_product(a: u32, b: u32) -> u32 {
  let a_low = a & 0xffffu;
  let a_high = a >> 16u;
  let b_low = b & 0xffffu;
  let b_high = b >> 16u;
  let low = a_low * b_low;
  let middle = a_high * b_low + (low >> 16u);
  let middle_2 = a_low * b_high + (middle & 0xffffu);
  return a_high * b_high + (middle >> 16u) + (middle_2 >> 16u);
}
