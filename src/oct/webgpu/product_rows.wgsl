// Mirrors src/oct/kernel/product_terms.hpp: 32 threads make the lane sum of a row of one product.

struct ProductScalars {
  negative_zero: f32,
  a_skip: u32,
  b_skip: u32,
  items_skip: u32,
  sums_skip: u32,
  products: u32,
  most_rows: u32,
  a_y: u32,
  a_x: u32,
  b_y: u32,
  b_x: u32,
  a_offset: f32,
  b_offset: f32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> items: array<u32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
@group(0) @binding(4) var<uniform> scalars: ProductScalars;

var<workgroup> partials: array<f32, 256>;

fn product_term(kind: u32, at_a: u32, at_b: u32) -> f32 {
  let first = a[at_a] - scalars.a_offset;
  if (kind == product_of_one) {
    return first;
  }
  if (kind == product_of_square) {
    return mul(first, first);
  }
  let second = b[at_b] - scalars.b_offset;
  if (kind == product_of_both) {
    return mul(first, second);
  }
  return select(mul(second, second), second, kind == product_of_other);
}

@compute @workgroup_size(32, 8, 1)
fn product_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let item = scalars.items_skip + group.z * product_words;
  let row = group.y * 8u + local.y;
  let lane = local.x;
  let slot = local.y * 32u + lane;
  let columns = items[item + 8u];
  var partial = positive_zero();
  if (row < items[item + 7u]) {
    let kind = items[item];
    let at_a = scalars.a_skip + (items[item + 1u] * scalars.a_y + items[item + 2u] + row) * scalars.a_x + items[item + 3u];
    let at_b = scalars.b_skip + (items[item + 4u] * scalars.b_y + items[item + 5u] + row) * scalars.b_x + items[item + 6u];
    if (lane < columns) {
      partial = product_term(kind, at_a + lane, at_b + lane);
    }
    // Four terms are under way at a time; they are added in their order.
    var first = 32u;
    for (; first + 128u <= columns; first += 128u) {
      let from_a = at_a + first + lane;
      let from_b = at_b + first + lane;
      let term_0 = product_term(kind, from_a, from_b);
      let term_1 = product_term(kind, from_a + 32u, from_b + 32u);
      let term_2 = product_term(kind, from_a + 64u, from_b + 64u);
      let term_3 = product_term(kind, from_a + 96u, from_b + 96u);
      partial = partial + term_0;
      partial = partial + term_1;
      partial = partial + term_2;
      partial = partial + term_3;
    }
    for (; first < columns; first += 32u) {
      var term = positive_zero();
      if (first + lane < columns) {
        term = product_term(kind, at_a + first + lane, at_b + first + lane);
      }
      partial = partial + term;
    }
  }
  partials[slot] = partial;
  for (var distance = 16u; distance > 0u; distance = distance / 2u) {
    workgroupBarrier();
    if (lane < distance) {
      partials[slot] = partials[slot] + partials[slot + distance];
    }
  }
  if (lane == 0u && row < items[item + 7u]) {
    sums[scalars.sums_skip + group.z * scalars.most_rows + row] = partials[slot];
  }
}
