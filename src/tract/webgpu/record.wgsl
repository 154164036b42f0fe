// Mirrors read_record of src/tract/kernel/sample.hpp for fields whose numbers all lanes need: the record lies in
// workgroup memory. (Amplitudes are taken by the lane that read them, peaks and tensors are read where they are needed.)

var<workgroup> record: array<f32, record_size>;

// All channels, and the stopping value, which is returned, after them.
fn read_point(corners: ptr<function, Corners>) -> f32 {
  lanes_barrier();
  for (var row = 0u; row < record_rows(); row++) {  // unrolled
    let channel = 32u * row + lane_index;
    let value = interpolate_channel(corners, min(channel, channels()));
    if (channel <= channels()) {
      record[channel] = value;
    }
  }
  lanes_barrier();
  return lanes_same(record[channels()]);
}
