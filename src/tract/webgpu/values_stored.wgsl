// The values of all lanes that publish_values() of sphere.wgsl shows to each: in the buffer, where they are needed at seeds
// alone and workgroup memory would be taken from the steps.

var<private> values_at: u32;

fn value_at(slot: u32) -> f32 {
  return bitcast<f32>(work.words[values_at + slot]);
}

fn set_value(slot: u32, value: f32) {
  work.words[values_at + slot] = bitcast<u32>(value);
}

fn values_barrier() {
  storageBarrier();
}
