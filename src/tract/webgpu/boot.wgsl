// Mirrors src/tract/kernel/boot.hpp: the peaks of an ODF fitted to a bootstrap sample of the signal.

var<workgroup> odf: array<f32, 96>;

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

// The one number of a pair that this lane goes on with, the other lane's added; `upper` lanes keep the second.
fn halve_sums(upper: bool, low: f32, high: f32, distance: u32) -> f32 {
  return select(low, high, upper) + lanes_exchange(select(high, low, upper), distance);
}

// The sums over the lanes of 16 numbers, each by the tree of lanes_fold_sum: lane l ends with the sum of number l / 2.
fn sums_of_16(numbers: ptr<function, array<f32, 16>>) -> f32 {
  for (var i = 0u; i < 8u; i++) {  // unrolled
    (*numbers)[i] = halve_sums((lane_index & 16u) != 0u, (*numbers)[i], (*numbers)[i + 8u], 16u);
  }
  for (var i = 0u; i < 4u; i++) {  // unrolled
    (*numbers)[i] = halve_sums((lane_index & 8u) != 0u, (*numbers)[i], (*numbers)[i + 4u], 8u);
  }
  for (var i = 0u; i < 2u; i++) {  // unrolled
    (*numbers)[i] = halve_sums((lane_index & 4u) != 0u, (*numbers)[i], (*numbers)[i + 2u], 4u);
  }
  let last = halve_sums((lane_index & 2u) != 0u, (*numbers)[0], (*numbers)[1], 2u);
  return last + lanes_exchange(last, 1u);
}

// Writes the coefficients of the ODF to `odf`. The record has been read.
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
  for (var row = 0u; row < boot_rows(); row++) {  // unrolled
    let at = plan.at_boot_basis + 32u * coefficients() * row + lane_index;
    var h = mul(record[0], table_number(at));
    for (var j = 1u; j < coefficients(); j++) {  // unrolled
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
  for (var batch = 0u; batch < coefficient_batches(); batch++) {  // unrolled
    var sums: array<f32, 16>;
    for (var i = 0u; i < 16u; i++) {  // unrolled
      let j = min(16u * batch + i, coefficients() - 1u);
      let at = plan.at_boot_fit + 32u * boot_rows() * j + lane_index;
      let level = tables[plan.at_level + j];
      let factor = f32(2u * level * (2u * level + 1u));
      var sum = 0.0;
      for (var row = 0u; row < boot_rows(); row++) {  // unrolled
        var u = signal[row];
        if (!is_csa()) {
          u = four_g[row] + mul(factor, signal[row]);
        }
        let term = mul(table_number(at + 32u * row), u);
        sum = select(sum + term, term, row == 0u);
      }
      sums[i] = sum;
    }
    let sum = sums_of_16(&sums);
    let j = 16u * batch + lane_index / 2u;
    if (lane_index % 2u == 0u && j < coefficients()) {
      odf[j] = select(sum, 0x1.20dd76p-2f, is_csa() && j == 0u);  // 1 / (2 sqrt(pi))
    }
  }
  lanes_barrier();
}

fn sample_peaks(ask: Ask, counter: DrawCounter, resample: bool, limit: u32) -> u32 {
  fit_odf(counter, resample);
  sample_series();
  if (!ask.initial && plan.angular_weight != 0.0) {
    for (var row = 0u; row < sphere_rows(); row++) {  // unrolled
      own_values[row] = mul(own_values[row], angular_factor(row, ask.frame.tangent));
    }
  }
  return find_peaks(limit);
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let ahead = ask.frame.tangent;
  var counter = DrawCounter(ask.seed, draw_purpose_step, ask.direction, ask.half, ask.step, 0u);
  if (ask.initial) {
    counter = DrawCounter(ask.seed, draw_purpose_initial_direction, 0u, 0u, 0u, 0u);
  }
  let attempts = select(plan.boot_attempts, 1u, ask.initial);
  var count = 0u;
  for (var attempt = 0u; attempt < attempts; attempt++) {
    counter.attempt = attempt;
    count = sample_peaks(ask, counter, !ask.initial || plan.boot_seed != 0u,
                         select(most_initial_directions, initial_limit(), ask.initial));
    if (ask.initial || count == 0u) {
      continue;
    }
    let nearest = nearest_peak(count, ahead);
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
  keep_initial_peaks(count);
  return Answer(count, ask.position, ask.frame);
}
