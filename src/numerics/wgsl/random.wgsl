// Mirrors src/numerics/random.hpp: which counter serves which draw, and what becomes of its words.

struct DrawCounter {
  index: u32,
  purpose: u32,
  initial_direction: u32,
  half: u32,
  step: u32,
  attempt: u32,
}

fn counter_words(counter: DrawCounter, block: u32) -> vec4<u32> {
  return vec4<u32>(counter.index,
                   (counter.purpose << 24u) | (counter.initial_direction << 1u) | counter.half,
                   counter.step,
                   (counter.attempt << 16u) | block);
}

fn random_block(key: vec2<u32>, counter: DrawCounter, block: u32) -> vec4<u32> {
  return philox4x32_10(counter_words(counter, block), key);
}

fn random_word(key: vec2<u32>, counter: DrawCounter, draw: u32) -> u32 {
  let block = random_block(key, counter, draw / 4u);
  return block[draw % 4u];
}

fn uniform_from_word(word: u32) -> f32 {
  return mul(f32(word >> 8u), 0x1p-24f);
}

fn integer_from_word(word: u32, n: u32) -> u32 {
  return high_product(word, n);
}

// x is the C++ pair's `first` (cosine), y its `second`.
fn normals_from_words(radius_word: u32, angle_word: u32) -> vec2<f32> {
  let u1 = mul(f32((radius_word >> 8u) + 1u), 0x1p-24f);
  let radius = root(mul(-2.0, logarithm(u1)));
  let angle = sine_cosine(mul(0x1.921fb6p+2f, uniform_from_word(angle_word)));
  return vec2<f32>(mul(radius, angle.cosine), mul(radius, angle.sine));
}

fn bootstrap_pick(block: vec4<u32>, i: u32, count: u32) -> u32 {
  if (i < 4u) {
    return high_product(block[i] & 0xffffff00u, count);
  }
  let joined = ((block.x & 0xffu) << 24u) | ((block.y & 0xffu) << 16u) | ((block.z & 0xffu) << 8u) | (block.w & 0xffu);
  return high_product(joined, count);
}

fn bootstrap_pick_of_gradient(key: vec2<u32>, counter: DrawCounter, gradient: u32, count: u32) -> u32 {
  let lane = gradient % 32u;
  let row = gradient / 32u;
  let block = random_block(key, counter, lane + 32u * (row / 5u));
  return bootstrap_pick(block, row % 5u, count);
}
