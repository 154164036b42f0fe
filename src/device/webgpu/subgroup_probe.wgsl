// Finds out what subgroups a driver makes: their size, and whether lanes follow the invocations in order. Adapters do not
// always tell.

@group(0) @binding(0) var<storage, read_write> probe: array<atomic<u32>, 3>;  // smallest, largest, disorder

@compute @workgroup_size(64)
fn subgroup_probe(@builtin(local_invocation_index) index: u32, @builtin(subgroup_size) size: u32,
                  @builtin(subgroup_invocation_id) lane: u32) {
  atomicMin(&probe[0], size);
  atomicMax(&probe[1], size);
  if (lane != index % size) {
    atomicOr(&probe[2], 1u);
  }
}
