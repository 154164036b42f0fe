// Mirrors product_fold of src/oct/cpu/product_sums.cpp: 32 threads make the lane sum of a product's rows.

struct FoldScalars {
  negative_zero: f32,
  items_skip: u32,
  sums_skip: u32,
  results_skip: u32,
  products: u32,
  most_rows: u32,
}

@group(0) @binding(0) var<storage, read> items: array<u32>;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> results: array<f32>;
@group(0) @binding(3) var<uniform> scalars: FoldScalars;

var<workgroup> partials: array<f32, 32>;

@compute @workgroup_size(32, 1, 1)
fn product_fold(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let product = group.y;
  let rows = items[scalars.items_skip + product * product_words + 7u];
  let first_sum = scalars.sums_skip + product * scalars.most_rows;
  var partial = positive_zero();
  if (lane < rows) {
    partial = sums[first_sum + lane];
  }
  for (var first = 32u; first < rows; first += 32u) {
    var term = positive_zero();
    if (first + lane < rows) {
      term = sums[first_sum + first + lane];
    }
    partial = partial + term;
  }
  partials[lane] = partial;
  for (var distance = 16u; distance > 0u; distance = distance / 2u) {
    workgroupBarrier();
    if (lane < distance) {
      partials[lane] = partials[lane] + partials[lane + distance];
    }
  }
  if (lane == 0u) {
    results[scalars.results_skip + product] = partials[0];
  }
}
