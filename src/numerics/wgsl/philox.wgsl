// Mirrors src/numerics/philox.hpp: Philox4x32-10. A key is (low, high word of the seed).

fn philox4x32_10(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
  var c = counter;
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    let high_0 = high_product(0xd2511f53u, c.x);
    let low_0 = 0xd2511f53u * c.x;
    let high_1 = high_product(0xcd9e8d57u, c.z);
    let low_1 = 0xcd9e8d57u * c.z;
    c = vec4<u32>(high_1 ^ c.y ^ k.x, low_1, high_0 ^ c.w ^ k.y, low_0);
    k = k + vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}
