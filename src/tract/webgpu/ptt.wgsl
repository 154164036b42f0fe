// Mirrors src/tract/kernel/ptt.hpp: parallel transport tractography, a probe per lane, in rounds of 32. amplitude_along() is
// in ptt_sf.wgsl or ptt_sh.wgsl, the draws are in ptt_draws.wgsl. The start of all probes, the disc of the bound and the
// tries go through one loop, because drivers copy a function into each place that calls it.

struct ProbeAmplitude {
  value: f32,
  strong: bool,
}

// Mean over the parallel probes around the curve, and whether none of them is below the threshold.
fn probe_amplitude(position: vec3<f32>, frame: Frame, threshold: f32) -> ProbeAmplitude {
  let probes = max(plan.ptt_probe_count, 1u);
  var sum = 0.0;
  var strong = true;
  for (var c = 0u; c < probes; c++) {
    var beside = position;
    if (probes > 1u) {
      let at = sine_cosine(div(mul(two_pi, f32(c)), f32(probes)));
      let offset = scale_vec3(frame.normal, mul(plan.ptt_probe_radius_mm, at.cosine)) +
                   scale_vec3(frame.binormal, mul(plan.ptt_probe_radius_mm, at.sine));
      beside = vec3<f32>(position.x + mul(offset.x, plan.voxels_per_mm_x), position.y + mul(offset.y, plan.voxels_per_mm_y),
                         position.z + mul(offset.z, plan.voxels_per_mm_z));
    }
    let value = amplitude_along(beside, frame.tangent);
    strong = strong && value >= threshold;
    sum = select(sum + value, value, c == 0u);
  }
  if (probes > 1u) {
    return ProbeAmplitude(div(sum, f32(probes)), strong);
  }
  return ProbeAmplitude(sum, strong);
}

// The pair for one internal step. Of the rounds of 32 probes one is the disc, from which the bound comes, the others try 32
// pairs each. The disc is the first, or, where the bound is carried along, the one after those that are tried on trust.
fn draw_curvature(counter: DrawCounter, position: vec3<f32>, frame: Frame, threshold: f32, bound_before: f32) -> Curvature {
  let words = counter_words(counter, 0u);
  let weak_links = plan.ptt_weak_links != 0u;
  let disc_round = select(0u, tries_on_trust / 32u, carries_bound(counter.step));
  var start_amplitude = 0.0;
  var start_is_strong = true;
  var bound = bound_before;
  for (var round = 0u; round <= (plan.ptt_tries + 31u) / 32u; round++) {
    var k1 = 0.0;
    var k2 = 0.0;
    var u = 0.0;
    var alive = start_is_strong;
    if (round == disc_round) {
      k1 = mul(table_number(plan.at_disc_k1 + lane_index), plan.ptt_max_curvature);
      k2 = mul(table_number(plan.at_disc_k2 + lane_index), plan.ptt_max_curvature);
    } else {
      let attempt = 32u * select(round - 1u, round, round < disc_round) + lane_index;
      alive = alive && attempt < plan.ptt_tries;
      let candidate = draw_candidate(words, attempt);
      k1 = candidate.k1;
      k2 = candidate.k2;
      u = candidate.height;
    }
    let arc = lane_arc(k1, k2, plan.ptt_probe_step_mm);
    var at = position;
    var probe = frame;
    var sum = start_amplitude;
    // The first point is the same for all probes: round 0 looks at it.
    for (var q = select(1u, 0u, round == 0u); q < plan.ptt_probe_quality; q++) {
      if (alive) {
        if (q > 0u) {
          let next = lane_propagate(probe, arc);
          probe = next.frame;
          at = vec3<f32>(at.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                         at.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                         at.z + mul(next.displacement.z, plan.voxels_per_mm_z));
        }
        let amplitude = probe_amplitude(at, probe, threshold);
        sum = select(sum + amplitude.value, amplitude.value, q == 0u);
        alive = weak_links || amplitude.strong;
        if (q == 0u) {
          start_amplitude = amplitude.value;
          start_is_strong = alive;
        }
      }
    }
    var support = mul(sum, plan.ptt_inverse_quality);
    alive = alive && support >= threshold && support > 0.0;
    if (plan.ptt_exponent_is_one == 0u) {
      support = exponential(mul(plan.ptt_exponent, logarithm(support)));
    }
    support = select(0.0, support, alive);
    if (round == disc_round) {
      let greatest = fold_greatest(support);
      if (!(greatest > 0.0)) {
        return no_curvature;
      }
      bound = mul(greatest, bound_margin);
      continue;
    }
    let accepted = lanes_ballot(alive && support > mul(u, bound));
    if (accepted != 0u) {
      let lane = firstTrailingBit(accepted);
      return Curvature(true, lanes_get(k1, lane), lanes_get(k2, lane), greater_number(lanes_get(support, lane), bound));
    }
  }
  return no_curvature;
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  var threshold = plan.absolute_threshold;
  if (ask.initial || plan.relative_threshold != 0.0) {
    threshold = fill_amplitudes(false, ask.frame.tangent);
  }
  if (ask.initial) {
    apply_threshold(threshold);
    return initial_directions(ask);
  }
  let counter = DrawCounter(ask.seed, draw_purpose_step, ask.direction, ask.half, ask.step, 0u);
  let curvature = draw_curvature(counter, ask.position, ask.frame, threshold, bound_carried_on());
  if (!curvature.found) {
    return no_step(ask);
  }
  carried_bound = curvature.bound;
  let next = propagate_frame(ask.frame, curvature.k1, curvature.k2, plan.ptt_arc_mm);
  let moved = vec3<f32>(ask.position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                        ask.position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                        ask.position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
  return Answer(1u, moved, next.frame);
}
