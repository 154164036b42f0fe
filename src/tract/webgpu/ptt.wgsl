// Mirrors src/tract/kernel/ptt.hpp: parallel transport tractography, a probe per lane. amplitude_along() is in ptt_sf.wgsl or
// ptt_sh.wgsl. The start of all probes, the disc of the bound and the tries go through one loop, because drivers copy a
// function into each place that calls it.

const two_pi = 0x1.921fb6p+2f;
const bound_margin = 1.1f;

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

struct Curvature {
  found: bool,
  k1: f32,
  k2: f32,
}

const no_curvature = Curvature(false, 0.0, 0.0);

// Probes are numbered: the 32 points of the disc, then the tries. Their arcs are made 32 at a time and lie here, word by
// word, until a lane takes them.
const disc_points = 32u;
const arcs_kept = 64u;
var<workgroup> probe_arcs: array<f32, 12 * arcs_kept>;

// Probes first .. first + 31; `words` are those of the draws.
fn make_probes(first: u32, words: vec4<u32>) {
  var k1 = 0.0;
  var k2 = 0.0;
  var u = 0.0;
  if (first < disc_points) {
    k1 = mul(table_number(plan.at_disc_k1 + lane_index), plan.ptt_max_curvature);
    k2 = mul(table_number(plan.at_disc_k2 + lane_index), plan.ptt_max_curvature);
  } else {
    let attempt = first - disc_points + lane_index;
    let draws = philox4x32_10(vec4<u32>(words.x, words.y, words.z, attempt << 16u),
                              vec2<u32>(plan.key_low, plan.key_high));
    let radius = mul(plan.ptt_max_curvature, root(uniform_from_word(draws.x)));
    let angle = sine_cosine(mul(two_pi, uniform_from_word(draws.y)));
    k1 = mul(radius, angle.cosine);
    k2 = mul(radius, angle.sine);
    u = uniform_from_word(draws.z);
  }
  let arc = lane_arc(k1, k2, plan.ptt_probe_step_mm);
  let at = (first + lane_index) % arcs_kept;
  probe_arcs[at] = arc.along;
  probe_arcs[at + arcs_kept] = arc.aside_1;
  probe_arcs[at + 2u * arcs_kept] = arc.aside_2;
  probe_arcs[at + 3u * arcs_kept] = arc.keep;
  probe_arcs[at + 4u * arcs_kept] = arc.turn_1;
  probe_arcs[at + 5u * arcs_kept] = arc.turn_2;
  probe_arcs[at + 6u * arcs_kept] = arc.normal_normal;
  probe_arcs[at + 7u * arcs_kept] = arc.normal_binormal;
  probe_arcs[at + 8u * arcs_kept] = select(0.0, 1.0, arc.bent);
  probe_arcs[at + 9u * arcs_kept] = k1;
  probe_arcs[at + 10u * arcs_kept] = k2;
  probe_arcs[at + 11u * arcs_kept] = u;
}

fn probe_arc(number: u32) -> LaneArc {
  let at = number % arcs_kept;
  let turn_1 = probe_arcs[at + 4u * arcs_kept];
  return LaneArc(probe_arcs[at + 8u * arcs_kept] != 0.0, plan.ptt_probe_step_mm, probe_arcs[at],
                 probe_arcs[at + arcs_kept], probe_arcs[at + 2u * arcs_kept], probe_arcs[at + 3u * arcs_kept], turn_1,
                 probe_arcs[at + 5u * arcs_kept], -turn_1, probe_arcs[at + 6u * arcs_kept],
                 probe_arcs[at + 7u * arcs_kept]);
}

fn fold_least_word(word: u32) -> u32 {
  var a = word;
  for (var stage = 0u; stage < 5u; stage++) {  // unrolled
    a = min(a, lanes_exchange_word(a, 16u >> stage));
  }
  return lanes_get_word(a, 0u);
}

// The pair for one internal step. A lane follows one probe; when it ends, weak or whole, the lane takes the next. The disc
// goes first, so that its probes are whole, and the bound is known, no later than any try. The first try that is
// accepted, in the order of their numbers, is the result: once one is, only those before it are followed.
fn draw_curvature(counter: DrawCounter, position: vec3<f32>, frame: Frame, threshold: f32) -> Curvature {
  let words = counter_words(counter, 0u);
  let weak_links = plan.ptt_weak_links != 0u;
  // The same in all lanes.
  var made = 0u;
  var next = 0u;
  var end = disc_points + plan.ptt_tries;  // of the probes that still count: the one that was accepted
  var found = no_curvature;
  var bound = -1.0;
  // The lane's own.
  var number = 0u;
  var k1 = 0.0;
  var k2 = 0.0;
  var u = 0.0;
  var q = 0u;  // the probe's next point
  var alive = false;
  var arc: LaneArc;
  var at = position;
  var probe = frame;
  var sum = 0.0;
  var start_amplitude = 0.0;
  var of_disc = 0.0;
  loop {
    let free = lanes_ballot(!alive);
    if (free == 0xffffffffu && next >= end) {
      break;
    }
    let taken = min(next + countOneBits(free), end);
    if (taken > made) {
      lanes_barrier();
      make_probes(made, words);
      lanes_barrier();
      made += 32u;
    }
    let own = next + countOneBits(free & ((1u << lane_index) - 1u));
    if (!alive && own < taken) {
      alive = true;
      number = own;
      arc = probe_arc(own);
      k1 = probe_arcs[own % arcs_kept + 9u * arcs_kept];
      k2 = probe_arcs[own % arcs_kept + 10u * arcs_kept];
      u = probe_arcs[own % arcs_kept + 11u * arcs_kept];
      at = position;
      probe = frame;
      sum = start_amplitude;
      // The first point is the same for all probes: the disc looks at it.
      q = select(1u, 0u, own < disc_points);
    }
    next = max(next, taken);
    if (alive && q < plan.ptt_probe_quality) {
      if (q > 0u) {
        let moved = lane_propagate(probe, arc);
        probe = moved.frame;
        at = vec3<f32>(at.x + mul(moved.displacement.x, plan.voxels_per_mm_x),
                       at.y + mul(moved.displacement.y, plan.voxels_per_mm_y),
                       at.z + mul(moved.displacement.z, plan.voxels_per_mm_z));
      }
      let amplitude = probe_amplitude(at, probe, threshold);
      sum = select(sum + amplitude.value, amplitude.value, q == 0u);
      if (q == 0u) {
        start_amplitude = amplitude.value;
      }
      q += 1u;
      alive = weak_links || amplitude.strong;
    }
    var support = 0.0;
    let whole = alive && q == plan.ptt_probe_quality;
    if (whole) {
      alive = false;
      support = mul(sum, plan.ptt_inverse_quality);
      let supported = support >= threshold && support > 0.0;
      if (plan.ptt_exponent_is_one == 0u) {
        support = exponential(mul(plan.ptt_exponent, logarithm(support)));
      }
      support = select(0.0, support, supported);
      if (number < disc_points) {
        of_disc = support;
      }
    }
    if (bound < 0.0 && lanes_ballot(alive && number < disc_points) == 0u) {
      bound = fold_greatest(of_disc);
      if (!(bound > 0.0)) {
        return no_curvature;
      }
      bound = mul(bound, bound_margin);
    }
    // Numbers of those that were followed are below `end`.
    let accepted = whole && number >= disc_points && support > mul(u, bound);
    if (lanes_ballot(accepted) != 0u) {
      end = fold_least_word(select(0xffffffffu, number, accepted));
      let lane = firstTrailingBit(lanes_ballot(accepted && number == end));
      found = Curvature(true, lanes_get(k1, lane), lanes_get(k2, lane));
    }
    alive = alive && number < end;
  }
  return found;
}

// The frame at the seed: the tangent is the initial direction, the normal turned about it at random.
fn begin_half(ask: Ask) -> Frame {
  let tangent = ask.frame.tangent;
  let counter = DrawCounter(ask.seed, draw_purpose_initial_direction, ask.direction, ask.half, 0u, 0u);
  let word = random_word(vec2<u32>(plan.key_low, plan.key_high), counter, 0u);
  let angle = sine_cosine(mul(two_pi, uniform_from_word(word)));
  let frame = frame_with_tangent(tangent);
  return straighten(tangent, scale_vec3(frame.normal, angle.cosine) + scale_vec3(frame.binormal, angle.sine));
}

fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer {
  let threshold = fill_amplitudes(false, ask.frame.tangent);
  if (ask.initial) {
    apply_threshold(threshold);
    return initial_peaks(ask);
  }
  let counter = DrawCounter(ask.seed, draw_purpose_step, ask.direction, ask.half, ask.step, 0u);
  let curvature = draw_curvature(counter, ask.position, ask.frame, threshold);
  if (!curvature.found) {
    return no_step(ask);
  }
  let next = propagate_frame(ask.frame, curvature.k1, curvature.k2, plan.ptt_arc_mm);
  let moved = vec3<f32>(ask.position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                        ask.position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                        ask.position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
  return Answer(1u, moved, next.frame);
}
