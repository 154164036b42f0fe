// The values of all lanes that publish_values() of sphere.wgsl shows to each: in workgroup memory.

var<workgroup> values: array<f32, values_size>;

fn value_at(slot: u32) -> f32 {
  return values[slot];
}

fn set_value(slot: u32, value: f32) {
  values[slot] = value;
}

fn values_barrier() {
  lanes_barrier();
}
