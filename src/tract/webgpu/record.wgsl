// Mirrors read_record of src/tract/kernel/sample.hpp for fields whose numbers all lanes need: the record lies in
// workgroup memory. (Amplitudes are taken by the lane that read them, peaks and tensors are read where they are needed.)

var<workgroup> record: array<f32, record_size>;

// Channels 0 .. channels() - 1.
fn gather_record(corners: ptr<function, Corners>) {
  lanes_barrier();
  for (var row = 0u; row < row_count(channels()); row++) {
    let channel = 32u * row + lane_index;
    if (channel < channels()) {
      record[channel] = interpolate_channel(corners, channel);
    }
  }
  lanes_barrier();
}
