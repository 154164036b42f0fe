// Mirrors src/device/selfcheck_item.hpp: the computation of `cingulum selfcheck`.

struct SelfcheckScalars {
  count: u32,
  negative_zero: f32,
}

@group(0) @binding(0) var<storage, read_write> selfcheck_output: array<u32>;
@group(0) @binding(1) var<uniform> selfcheck_scalars: SelfcheckScalars;

@compute @workgroup_size(64)
fn selfcheck(@builtin(global_invocation_id) id: vec3<u32>) {
  negative_zero = selfcheck_scalars.negative_zero;
  let index = id.x;
  if (index >= selfcheck_scalars.count) {
    return;
  }
  let counter = DrawCounter(index, draw_purpose_first_free, 0u, 0u, 0u, 0u);
  let block = random_block(vec2<u32>(0x43696e67u, 0x756c756du), counter, 0u);
  let a = normals_from_words(block.x, block.y);
  let b = normals_from_words(block.z, block.w);
  let direction = normalise(vec3<f32>(a.x, a.y, b.x));
  let angle = arc_cosine(direction.z);
  let decay = exponential(-mul(angle, b.y));
  selfcheck_output[4u * index] = bitcast<u32>(direction.x);
  selfcheck_output[4u * index + 1u] = bitcast<u32>(angle);
  selfcheck_output[4u * index + 2u] = bitcast<u32>(decay);
  selfcheck_output[4u * index + 3u] = bitcast<u32>(div(logarithm(decay + 1.0), angle));
}
