// Mirrors src/numerics/lanes_warp.cuh with subgroup operations: the fast one where a subgroup is 32 wide. A module
// holds this file or lanes_workgroup.wgsl, which has the same functions.
//
// Equal to: lanes_workgroup.wgsl. Held by: SubgroupParity.subgroup_operations_have_the_bits_of_the_host,
// WebgpuTracking.by_subgroups_has_the_cpus_bits.
//
// Usable only where every subgroup has exactly 32 invocations that follow local_invocation_index in order. WGSL
// promises neither: the host checks that the adapter's least and greatest subgroup size are both 32 and runs a probe
// that compares the two indices, and takes lanes_workgroup.wgsl otherwise. There is no `enable subgroups;` because naga
// refuses it; the device feature alone makes the built-ins available.
//
// All invocations of a subgroup call each function together. The entry point sets lane_index to
// subgroup_invocation_id first; a workgroup may hold several subgroups.

var<private> lane_index: u32;

fn lanes_exchange_word(a: u32, distance: u32) -> u32 {
  return subgroupShuffleXor(a, distance);
}

fn lanes_exchange(a: f32, distance: u32) -> f32 {
  return subgroupShuffleXor(a, distance);
}

fn lanes_add_from_below(a: f32, distance: u32) -> f32 {
  let below = subgroupShuffleUp(a, distance);
  return select(a, below + a, lane_index >= distance);
}

fn lanes_get_word(a: u32, lane: u32) -> u32 {
  return subgroupShuffle(a, lane);
}

fn lanes_get(a: f32, lane: u32) -> f32 {
  return subgroupShuffle(a, lane);
}

fn lanes_same(a: f32) -> f32 {
  return a;
}

fn lanes_ballot(flag: bool) -> u32 {
  return subgroupBallot(flag).x;
}

fn lanes_fold_sum(partial: f32) -> f32 {
  var p = partial;
  p = p + subgroupShuffleXor(p, 16u);
  p = p + subgroupShuffleXor(p, 8u);
  p = p + subgroupShuffleXor(p, 4u);
  p = p + subgroupShuffleXor(p, 2u);
  p = p + subgroupShuffleXor(p, 1u);
  return p;
}

// What lanes wrote to workgroup memory before is seen by all after.
fn lanes_barrier() {
  workgroupBarrier();
}
