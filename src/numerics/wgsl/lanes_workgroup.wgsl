// Mirrors src/numerics/lanes_portable.hpp with workgroup memory alone: works on every device. The workgroup has exactly
// 32 invocations. A module holds this file or lanes_subgroup.wgsl, which has the same functions.
//
// All 32 invocations call each function together. The entry point sets lane_index to local_invocation_index first.

var<private> lane_index: u32;

// Two halves of 32 words, used in turn: what one exchange reads is overwritten only two exchanges later, past the
// barrier of the one between, so that one barrier each suffices.
var<workgroup> lane_words: array<u32, 64>;
var<private> lane_half: u32;

fn lanes_exchange_word(a: u32, distance: u32) -> u32 {
  lane_half = lane_half ^ 32u;
  lane_words[lane_half + lane_index] = a;
  workgroupBarrier();
  return lane_words[lane_half + (lane_index ^ distance)];
}

fn lanes_exchange(a: f32, distance: u32) -> f32 {
  return bitcast<f32>(lanes_exchange_word(bitcast<u32>(a), distance));
}

fn lanes_add_from_below(a: f32, distance: u32) -> f32 {
  lane_half = lane_half ^ 32u;
  lane_words[lane_half + lane_index] = bitcast<u32>(a);
  workgroupBarrier();
  let below = bitcast<f32>(lane_words[lane_half + ((lane_index - distance) & 31u)]);
  return select(a, below + a, lane_index >= distance);
}

var<workgroup> lane_shared: u32;

// `lane` is the same in all invocations, and so, to the compiler too, is the result. The load has a barrier on either
// side.
fn lanes_get_word(a: u32, lane: u32) -> u32 {
  if (lane_index == lane) {
    lane_shared = a;
  }
  return workgroupUniformLoad(&lane_shared);
}

fn lanes_get(a: f32, lane: u32) -> f32 {
  return bitcast<f32>(lanes_get_word(bitcast<u32>(a), lane));
}

// A number that is the same in all invocations, known to the compiler to be.
fn lanes_same(a: f32) -> f32 {
  return lanes_get(a, 0u);
}

fn lanes_ballot(flag: bool) -> u32 {
  var bits = select(0u, 1u, flag) << lane_index;
  bits |= lanes_exchange_word(bits, 16u);
  bits |= lanes_exchange_word(bits, 8u);
  bits |= lanes_exchange_word(bits, 4u);
  bits |= lanes_exchange_word(bits, 2u);
  bits |= lanes_exchange_word(bits, 1u);
  return lanes_get_word(bits, 0u);
}

fn lanes_fold_sum(partial: f32) -> f32 {
  var p = partial;
  p = p + lanes_exchange(p, 16u);
  p = p + lanes_exchange(p, 8u);
  p = p + lanes_exchange(p, 4u);
  p = p + lanes_exchange(p, 2u);
  p = p + lanes_exchange(p, 1u);
  return p;
}

// What lanes wrote to workgroup memory before is seen by all after.
fn lanes_barrier() {
  workgroupBarrier();
}
