// Mirrors src/tract/kernel/boot.hpp: the peaks of an ODF fitted to a bootstrap sample of the signal.

var<workgroup> odf: array<f32, 96>;
// Lane sums of up to 32 coefficients at once: a row of 32 partial sums each, one number apart so that lanes do not meet.
var<workgroup> partial_sums: array<f32, 33 * coefficients_at_once>;

fn sampled_coefficient(j: u32) -> f32 {
  return odf[j];
}

// The residual of this lane's gradient of a row, +0.0 past the last.
fn own_residual(row: u32) -> f32 {
  let gradient = 32u * row + lane_index;
  if (gradient < gradients()) {
    return record[coefficients() + 1u + gradient];
  }
  return positive_zero();
}

// Writes the coefficients of the ODF to `odf`. The record is gathered.
fn fit_odf(counter: DrawCounter, resample: bool) {
  let least = plan.boot_min_signal;
  let stored_b0 = record[coefficients()];
  let b0 = select(least, stored_b0, stored_b0 > least);
  var centre = 0.0;
  if (!resample) {
    var sum = mul(table_number(plan.at_residual_scale + lane_index), own_residual(0u));
    for (var row = 1u; row < boot_rows(); row++) {
      sum = sum + mul(table_number(plan.at_residual_scale + 32u * row + lane_index), own_residual(row));
    }
    centre = -mul(lanes_fold_sum(sum), plan.inverse_scale_sum);
  }
  // OPDT: s and 4 g of this lane's gradients; CSA: ln(-ln s) and nothing.
  var signal: array<f32, boot_rows_size>;
  var four_g: array<f32, boot_rows_size>;
  var block = vec4<u32>();
  for (var row = 0u; row < boot_rows(); row++) {
    let at = plan.at_boot_basis + 32u * coefficients() * row + lane_index;
    var h = mul(record[0], table_number(at));
    for (var j = 1u; j < coefficients(); j++) {
      h = h + mul(record[j], table_number(at + 32u * j));
    }
    if (resample) {
      if (row % 5u == 0u) {
        block = random_block(vec2<u32>(plan.key_low, plan.key_high), counter, lane_index + 32u * (row / 5u));
      }
      h = h + record[coefficients() + 1u + bootstrap_pick(block, row % 5u, gradients())];
    } else {
      let residual = own_residual(row) + centre;
      h = h + mul(table_number(plan.at_residual_scale + 32u * row + lane_index), residual);
    }
    let s = div(select(least, h, h > least), b0);
    let exists = 32u * row + lane_index < gradients();
    if (is_csa()) {
      let above = select(0.001, s, s > 0.001);
      let limited = select(0.999, above, above < 0.999);
      signal[row] = select(positive_zero(), logarithm(pin(positive_zero() - logarithm(limited))), exists);
    } else {
      let log = pin(logarithm(s));
      let g = mul(mul(pin(positive_zero() - log), 1.5 + log), s);
      signal[row] = select(positive_zero(), s, exists);
      four_g[row] = select(positive_zero(), mul(4.0, g), exists);
    }
  }
  for (var first = 0u; first < coefficients(); first += coefficients_at_once) {
    let count = min(coefficients_at_once, coefficients() - first);
    for (var i = 0u; i < count; i++) {
      let j = first + i;
      let at = plan.at_boot_fit + 32u * boot_rows() * j + lane_index;
      let level = tables[plan.at_level + j];
      let factor = f32(2u * level * (2u * level + 1u));
      var sum = 0.0;
      for (var row = 0u; row < boot_rows(); row++) {
        var u = signal[row];
        if (!is_csa()) {
          u = four_g[row] + mul(factor, signal[row]);
        }
        let term = mul(table_number(at + 32u * row), u);
        sum = select(sum + term, term, row == 0u);
      }
      partial_sums[33u * i + lane_index] = sum;
    }
    lanes_barrier();
    // The tree of the lane sum; lane i has coefficient first + i.
    if (lane_index < count) {
      let row = 33u * lane_index;
      for (var distance = 16u; distance != 0u; distance = distance / 2u) {
        for (var l = 0u; l < distance; l++) {
          partial_sums[row + l] = partial_sums[row + l] + partial_sums[row + l + distance];
        }
      }
      odf[first + lane_index] = partial_sums[row];
      if (is_csa() && first + lane_index == 0u) {
        odf[0] = 0x1.20dd76p-2f;  // 1 / (2 sqrt(pi))
      }
    }
    lanes_barrier();
  }
}

fn sample_peaks(ask: Ask, counter: DrawCounter, resample: bool, limit: u32, peaks: ptr<function, Peaks>) {
  fit_odf(counter, resample);
  sample_series();
  if (!ask.initial && plan.angular_weight != 0.0) {
    for (var row = 0u; row < sphere_rows(); row++) {
      let slot = 32u * row + lane_index;
      values[slot] = mul(values[slot], angular_factor(row, ask.frame.tangent));
    }
  }
  find_peaks(limit, peaks);
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  gather_record(corners);
  var counter = DrawCounter(ask.seed, draw_purpose_step, ask.direction, ask.half, ask.step, 0u);
  if (ask.initial) {
    counter = DrawCounter(ask.seed, draw_purpose_initial_direction, 0u, 0u, 0u, 0u);
  }
  let attempts = select(plan.boot_attempts, 1u, ask.initial);
  var peaks: Peaks;
  for (var attempt = 0u; attempt < attempts; attempt++) {
    counter.attempt = attempt;
    sample_peaks(ask, counter, !ask.initial || plan.boot_seed != 0u,
                 select(most_initial_directions, initial_limit(), ask.initial), &peaks);
    if (ask.initial || peaks.count == 0u) {
      continue;
    }
    let nearest = nearest_peak(&peaks, ahead);
    if (dot_vec3(nearest, ahead) >= plan.cos_max_angle) {
      return step_along(ask, nearest);
    }
    if (plan.boot_retry_angle == 0u) {
      break;
    }
  }
  if (!ask.initial) {
    return no_step(ask);
  }
  for (var i = 0u; i < peaks.count; i++) {
    keep_initial_direction(i, slot_direction(peaks.slot[i]));
  }
  return Answer(peaks.count, ask.position, ask.frame);
}
