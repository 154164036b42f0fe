// Several streamlines.

const walk_lanes = 32u / walks;
const walk_mask = 0xffffffffu >> (32u - walk_lanes);

// Of each walk 32 arcs: along, aside_1, aside_2, keep; turn_1, turn_2, normal_normal, normal_binormal; k1, k2, height, bent.
var<workgroup> probe_arcs: array<vec4<f32>, 96u * walks>;

// 32 candidates of a walk, from number `attempt` on, into its arcs.
fn make_candidates(which: u32, attempt: u32) {
  let state = &walk_states[which];
  let counter = DrawCounter(plan.first_seed + (*state)[1], draw_purpose_step, (*state)[2], (*state)[4], (*state)[5], 0u);
  lanes_barrier();
  let candidate = draw_candidate(counter_words(counter, 0u), attempt + lane_index);
  let arc = lane_arc(candidate.k1, candidate.k2, plan.ptt_probe_step_mm);
  let at = 96u * which + 3u * lane_index;
  probe_arcs[at] = vec4<f32>(arc.along, arc.aside_1, arc.aside_2, arc.keep);
  probe_arcs[at + 1u] = vec4<f32>(arc.turn_1, arc.turn_2, arc.normal_normal, arc.normal_binormal);
  probe_arcs[at + 2u] = vec4<f32>(candidate.k1, candidate.k2, candidate.height, select(0.0, 1.0, arc.bent));
  lanes_barrier();
}

fn greatest_of_walk(value: f32) -> f32 {
  var a = value;
  for (var distance = walk_lanes / 2u; distance > 0u; distance >>= 1u) {
    a = greater_number(a, lanes_exchange(a, distance));
  }
  return a;
}

fn least_of_walk(value: u32) -> u32 {
  var a = value;
  for (var distance = walk_lanes / 2u; distance > 0u; distance >>= 1u) {
    a = min(a, lanes_exchange_word(a, distance));
  }
  return a;
}

fn track_seeds(workgroup: u32) {
  let first_state = state_words * walks * workgroup;
  for (var walk = 0u; walk < walks; walk++) {
    var word = select(0u, work.words[first_state + state_words * walk + lane_index], lane_index < 22u);
    word = select(word, no_page, lane_index == 22u);
    walk_states[walk][lane_index] = select(word, plan.budget, lane_index == 26u);
  }
  lanes_barrier();
  let own = lane_index / walk_lanes;
  let below = (1u << lane_index) - 1u;
  let points_of_probe = i32(plan.ptt_probe_quality) - 1;
  let weak_links = plan.ptt_weak_links != 0u;
  // The bits of this walk's lanes; none when it has ended.
  var own_bits = walk_mask << (own * walk_lanes);
  // The lane's probe.
  var position = vec3<f32>(0.0);
  var frame = Frame(vec3<f32>(0.0), vec3<f32>(0.0), vec3<f32>(0.0));
  var arc_0 = vec4<f32>(0.0);
  var arc_1 = vec4<f32>(0.0);
  var arc_2 = vec4<f32>(0.0);
  var sum = 0.0;
  var points = -1;  // still to go; 0 when whole, below when there is no probe
  var number = no_probe;
  // The same for all lanes of a walk.
  var threshold = 0.0;
  var here = 0.0;
  var bound = 0.0;
  var taken = 0u;        // probes that lanes have or had
  var made = 0u;         // probes with arcs
  var end = 0u;          // probes from here on do not count
  var until_bound = 0u;  // points until the last of the disc is whole
  var drawn = false;
  var best_of_disc = 0.0;  // of those that this lane followed
  loop {
    loop {
      // Lanes without a probe take one.
      let idle = lanes_ballot(points < 0) & own_bits;
      let last = min(made, end);
      let left = select(0u, last - taken, taken < last);
      let rank = countOneBits(idle & below);
      if (points < 0 && rank < left) {
        number = taken + rank;
        if (number < disc_points) {
          let at = plan.at_probe_arcs + 3u * number;
          arc_0 = bitcast<vec4<f32>>(probe_tables[at]);
          arc_1 = bitcast<vec4<f32>>(probe_tables[at + 1u]);
          arc_2 = bitcast<vec4<f32>>(probe_tables[at + 2u]);
        } else {
          let at = 96u * own + 3u * (number % 32u);
          arc_0 = probe_arcs[at];
          arc_1 = probe_arcs[at + 1u];
          arc_2 = probe_arcs[at + 2u];
        }
        let start_0 = walk_starts[3u * own];
        let start_1 = walk_starts[3u * own + 1u];
        let start_2 = walk_starts[3u * own + 2u];
        position = start_0.xyz;
        frame = Frame(vec3<f32>(start_0.w, start_1.xy), vec3<f32>(start_1.zw, start_2.x), start_2.yzw);
        sum = here;
        points = points_of_probe;
      }
      let wanted = countOneBits(idle);
      if (taken < disc_points && taken + wanted >= disc_points) {
        until_bound = u32(points_of_probe);
      }
      taken += min(wanted, left);
      // What remains idle needs candidates, or the walk has all that it needs.
      let needing = lanes_ballot(wanted > left && (made < end || (left == 0u && idle == own_bits)));
      if (needing == 0u) {
        break;
      }
      let first = firstTrailingBit(needing);
      let which = first / walk_lanes;
      if (((lanes_ballot(made < end) >> first) & 1u) != 0u) {
        make_candidates(which, lanes_get_word(made, first) - disc_points);
        made += select(0u, 32u, own == which);
        continue;
      }
      // The step is drawn.
      let chosen = lanes_ballot(own == which && bound > 0.0 && number == end);
      let lane = firstTrailingBit(chosen | 0x80000000u);
      let curvature = Curvature(chosen != 0u, lanes_get(arc_2.x, lane), lanes_get(arc_2.y, lane));
      let was_drawn = lanes_get_word(select(0u, 1u, drawn), first) != 0u;
      let start = next_step(which, first_state + state_words * which, was_drawn, curvature);
      if (own == which) {
        own_bits = select(0u, own_bits, start.goes_on);
        drawn = true;
        threshold = start.threshold;
        here = start.here;
        bound = 0.0;
        best_of_disc = 0.0;
        taken = 0u;
        made = select(0u, disc_points, start.goes_on);
        end = select(0u, disc_points + plan.ptt_tries, start.goes_on);
        until_bound = 0u;
        number = no_probe;
      }
      if (!start.goes_on && lanes_ballot(own_bits != 0u) == 0u) {
        return;
      }
    }
    if (points > 0) {
      let arc = LaneArc(arc_2.w != 0.0, plan.ptt_probe_step_mm, arc_0.x, arc_0.y, arc_0.z, arc_0.w, arc_1.x, arc_1.y,
                        -arc_1.x, arc_1.z, arc_1.w);
      let next = lane_propagate(frame, arc);
      frame = next.frame;
      position = vec3<f32>(position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                           position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                           position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
      let value = probe_amplitude(position, frame.tangent);
      sum = sum + value;
      points = select(-1, points - 1, weak_links || value >= threshold);
    }
    until_bound -= 1u;
    // A candidate is never whole before the last point of the disc, which was taken before it.
    if (lanes_ballot(points == 0 || until_bound == 0u) == 0u) {
      continue;
    }
    let mean = mul(sum, plan.ptt_inverse_quality);
    let support = select(0.0, mean, points == 0 && mean >= threshold && mean > 0.0);
    let of_disc = number < disc_points;
    if (of_disc && support > best_of_disc) {
      best_of_disc = support;
    }
    let greatest = greatest_of_walk(best_of_disc);
    if (until_bound == 0u) {
      bound = mul(greatest, bound_margin);
      if (!(bound > 0.0)) {
        end = disc_points;
      }
    }
    // The first in the order of the attempts counts.
    let passes = !of_disc && support > mul(arc_2.z, bound);
    end = min(end, least_of_walk(select(no_probe, number, passes)));
    if (points == 0 || (!of_disc && number >= end)) {
      points = -1;
    }
  }
}
