// Mirrors count_keys of src/oct/cpu/count_rows.cpp: keys by some of their bits, counted in workgroup memory first.

struct CountScalars {
  negative_zero: f32,
  skip: u32,
  totals_skip: u32,
  count: u32,
  shift: u32,
  bins: u32,
  prefix: u32,
  prefix_shift: u32,
  least_key: u32,
}

@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> totals: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> scalars: CountScalars;

var<workgroup> counts: array<atomic<u32>, most_key_bins>;

@compute @workgroup_size(256, 1, 1)
fn count_keys(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  for (var bin = thread; bin < scalars.bins; bin += 256u) {
    atomicStore(&counts[bin], 0u);
  }
  workgroupBarrier();
  let stride = groups.x * 256u;
  for (var i = group.x * 256u + thread; i < scalars.count; i += stride) {
    let key = ordered_key(values[scalars.skip + i]);
    let in_prefix = scalars.prefix_shift >= 32u || (key >> (scalars.prefix_shift & 31u)) == scalars.prefix;
    if (key >= scalars.least_key && in_prefix) {
      atomicAdd(&counts[(key >> scalars.shift) & (scalars.bins - 1u)], 1u);
    }
  }
  workgroupBarrier();
  for (var bin = thread; bin < scalars.bins; bin += 256u) {
    let counted = atomicLoad(&counts[bin]);
    if (counted != 0u) {
      atomicAdd(&totals[scalars.totals_skip + bin], counted);
    }
  }
}
