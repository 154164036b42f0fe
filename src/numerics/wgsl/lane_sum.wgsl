// Mirrors src/numerics/lane_sum.hpp. A lane's slots are an array in its own registers: rows[k] is slot 32k + lane_index,
// +0.0 past the last slot. Kernels that make their terms as they go add them themselves, the first one first, and call
// lanes_fold_sum.

const lane_rows_max = 24u;  // 768 slots: the full sphere of 724 directions

alias LaneRows = array<f32, 24>;

fn row_count(slots: u32) -> u32 {
  return (slots + 31u) / 32u;
}

fn sum_rows(slots: u32, rows: ptr<function, LaneRows>) -> f32 {
  if (slots == 0u) {
    return 0.0;
  }
  var partial = (*rows)[0];
  for (var row = 1u; row < row_count(slots); row++) {
    partial = partial + (*rows)[row];
  }
  return partial;
}

fn lane_sum(slots: u32, rows: ptr<function, LaneRows>) -> f32 {
  return lanes_fold_sum(sum_rows(slots, rows));
}
