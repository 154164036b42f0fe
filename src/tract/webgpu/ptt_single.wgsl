// One streamline per workgroup.

struct Arcs {
  a: vec4<f32>,  // along, aside_1, aside_2, keep
  b: vec4<f32>,  // turn_1, turn_2, normal_normal, normal_binormal
  c: vec4<f32>,  // k1, k2, height, 1 where the curve is bent
}

// The lane's candidate of the 32 from number `attempt` on.
fn make_candidate(attempt: u32) -> Arcs {
  let state = &walk_states[0];
  let counter = DrawCounter(plan.first_seed + (*state)[1], draw_purpose_step, (*state)[2], (*state)[4], (*state)[5], 0u);
  let candidate = draw_candidate(counter_words(counter, 0u), attempt + lane_index);
  let arc = lane_arc(candidate.k1, candidate.k2, plan.ptt_probe_step_mm);
  return Arcs(vec4<f32>(arc.along, arc.aside_1, arc.aside_2, arc.keep),
              vec4<f32>(arc.turn_1, arc.turn_2, arc.normal_normal, arc.normal_binormal),
              vec4<f32>(candidate.k1, candidate.k2, candidate.height, select(0.0, 1.0, arc.bent)));
}

fn pick_four(v: vec4<f32>, lane: u32) -> vec4<f32> {
  return vec4<f32>(lanes_pick(v.x, lane), lanes_pick(v.y, lane), lanes_pick(v.z, lane), lanes_pick(v.w, lane));
}

fn least_of_lanes(value: u32) -> u32 {
  var a = value;
  for (var distance = 16u; distance > 0u; distance >>= 1u) {
    a = min(a, lanes_exchange_word(a, distance));
  }
  return lanes_get_word(a, 0u);
}

fn track_seeds(workgroup: u32) {
  let state_at = state_words * workgroup;
  {
    var word = select(0u, work.words[state_at + lane_index], lane_index < 22u);
    word = select(word, no_page, lane_index == 22u);
    walk_states[0][lane_index] = select(word, plan.budget, lane_index == 26u);
  }
  lanes_barrier();
  let below = (1u << lane_index) - 1u;
  let points_of_probe = i32(plan.ptt_probe_quality) - 1;
  let weak_links = plan.ptt_weak_links != 0u;
  var drawn = false;
  var curvature = no_curvature;
  loop {
    let start = next_step(0u, state_at, drawn, curvature);
    if (!start.goes_on) {
      return;
    }
    drawn = true;
    let threshold = start.threshold;
    // The disc first, a point for each lane.
    var number = lane_index;
    let disc_at = plan.at_probe_arcs + 3u * lane_index;
    var arc = Arcs(bitcast<vec4<f32>>(probe_tables[disc_at]), bitcast<vec4<f32>>(probe_tables[disc_at + 1u]),
                   bitcast<vec4<f32>>(probe_tables[disc_at + 2u]));
    var made_arc = arc;  // this lane's of the 32 candidates that were made last
    var position: vec3<f32>;
    var tangent: vec3<f32>;
    var normal: vec3<f32>;
    {
      let start_0 = walk_starts[0];
      let start_1 = walk_starts[1];
      let start_2 = walk_starts[2];
      position = start_0.xyz;
      tangent = vec3<f32>(start_0.w, start_1.xy);
      normal = vec3<f32>(start_1.zw, start_2.x);
    }
    var sum = start.here;
    var points = points_of_probe;  // still to go; 0 when whole, below when there is no probe
    var taken = disc_points;       // probes that lanes have or had
    var made = disc_points;        // probes with arcs
    var end = disc_points + plan.ptt_tries;  // probes from here on do not count
    var until_bound = points_of_probe;
    var bound = 0.0;
    loop {
      if (points > 0) {
        let moving = LaneArc(arc.c.w != 0.0, plan.ptt_probe_step_mm, arc.a.x, arc.a.y, arc.a.z, arc.a.w, arc.b.x, arc.b.y,
                             -arc.b.x, arc.b.z, arc.b.w);
        // The binormal is made anew: three registers less while memory is waited for.
        let next = lane_propagate(Frame(tangent, normal, cross_vec3(tangent, normal)), moving);
        tangent = next.frame.tangent;
        normal = next.frame.normal;
        position = vec3<f32>(position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                             position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                             position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
        let value = probe_amplitude(position, tangent);
        sum = sum + value;
        points = select(-1, points - 1, weak_links || value >= threshold);
      }
      until_bound -= 1;
      // No candidate is whole before the disc, which started before it.
      if (until_bound == 0 || lanes_ballot(points == 0) != 0u) {
        let mean = mul(sum, plan.ptt_inverse_quality);
        let support = select(0.0, mean, points == 0 && mean >= threshold && mean > 0.0);
        let of_disc = number < disc_points;
        if (until_bound == 0) {
          bound = mul(fold_greatest(select(0.0, support, of_disc)), bound_margin);
          if (!(bound > 0.0)) {
            break;
          }
        }
        // The first in the order of the attempts counts.
        let passes = !of_disc && support > mul(arc.c.z, bound);
        if (lanes_ballot(passes) != 0u) {
          end = min(end, least_of_lanes(select(no_probe, number, passes)));
        }
        if (points == 0 || number >= end) {
          points = -1;
        }
      }
      // Lanes without a probe take one, when there are enough of them.
      var idle = lanes_ballot(points < 0);
      if (countOneBits(idle) >= fewest_idle && taken < end) {
        loop {
          if (taken == made) {
            made_arc = make_candidate(made - disc_points);
            made += 32u;
          }
          let wanted = taken + countOneBits(idle & below);
          let source = wanted % 32u;
          let picked = Arcs(pick_four(made_arc.a, source), pick_four(made_arc.b, source), pick_four(made_arc.c, source));
          let last = min(made, end);
          if (points < 0 && wanted < last) {
            number = wanted;
            arc = picked;
            let start_0 = walk_starts[0];
            let start_1 = walk_starts[1];
            let start_2 = walk_starts[2];
            position = start_0.xyz;
            tangent = vec3<f32>(start_0.w, start_1.xy);
            normal = vec3<f32>(start_1.zw, start_2.x);
            sum = start.here;
            points = points_of_probe;
          }
          taken = min(taken + countOneBits(idle), last);
          if (taken >= end || taken < made) {
            break;
          }
          idle = lanes_ballot(points < 0);
          if (countOneBits(idle) < fewest_idle) {
            break;
          }
        }
      } else if (idle == 0xffffffffu) {
        break;
      }
    }
    let chosen = lanes_ballot(bound > 0.0 && number == end);
    let lane = firstTrailingBit(chosen | 0x80000000u);
    curvature = Curvature(chosen != 0u, lanes_get(arc.c.x, lane), lanes_get(arc.c.y, lane));
  }
}
