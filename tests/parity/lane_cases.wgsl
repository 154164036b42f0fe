// Mirrors tests/parity/lane_cases.hpp: the body of each case's `run`. The entry point and the bindings come from
// wgsl_entry(); `at` and `to` are where the item's words begin.

fn load_slot_rows(at: u32, rows: ptr<function, LaneRows>) {
  let slots = input[at];
  for (var row = 0u; row < row_count(slots); row++) {
    let slot = 32u * row + lane_index;
    (*rows)[row] = 0.0;
    if (slot < slots) {
      (*rows)[row] = bitcast<f32>(input[at + 2u + slot]);
    }
  }
}

fn lane_case_lane_sum(at: u32, to: u32) {
  var rows: LaneRows;
  load_slot_rows(at, &rows);
  output[to + lane_index] = bitcast<u32>(lane_sum(input[at], &rows));
}

fn lane_case_maximum(at: u32, to: u32) {
  var rows: LaneRows;
  load_slot_rows(at, &rows);
  let found = maximum(input[at], &rows);
  output[to + lane_index] = bitcast<u32>(found.value);
  output[to + 32u + lane_index] = found.slot;
}

fn lane_case_choose_by_weight(at: u32, to: u32) {
  var rows: LaneRows;
  load_slot_rows(at, &rows);
  output[to + lane_index] = choose_by_weight(input[at], bitcast<f32>(input[at + 1u]), &rows);
}

fn lane_case_mirror_sum(at: u32, to: u32) {
  let sizes = mirror_class_sizes(input[at]);
  var sums = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var j = 0u;
  for (var of_class = 0u; of_class < 4u; of_class++) {
    var sum = 0.0;
    for (var i = 0u; i < sizes[of_class]; i++) {
      let term = mul(bitcast<f32>(input[at + 1u + j]), bitcast<f32>(input[at + 92u + 32u * j + lane_index]));
      if (i == 0u) {
        sum = term;
      } else {
        sum = sum + term;
      }
      j++;
    }
    sums[of_class] = sum;
  }
  let members = mirror_members(sums);
  output[to + lane_index] = bitcast<u32>(members.x);
  output[to + 32u + lane_index] = bitcast<u32>(members.y);
  output[to + 64u + lane_index] = bitcast<u32>(members.z);
  output[to + 96u + lane_index] = bitcast<u32>(members.w);
}
