// Mirrors src/tract/kernel/ptt_in_registers.hpp: ptt on amplitudes of a hemisphere, a streamline per workgroup as in
// track.wgsl. A lane follows one probe; when it ends, weak or whole, the lane takes the next candidate, which another lane
// made: all lanes make 32 at a time. The points of the disc come first, or, where the bound is carried along, after the
// candidates that it serves, and no candidate that comes after them is whole before they are. The first candidate that is accepted, in the order of the attempts, is the result: once one is, only those
// before it are followed.
//
// Equal to: ptt.wgsl with track.wgsl, and so to the CPU. Gain on an H200 through Vulkan (phantom `brain`, 100 000 seeds,
// quality 7): 57 M points/s, where ptt.wgsl makes 22 to 34. Held by:
// WebgpuTracking.of_ptt_by_lanes_that_hand_on_their_candidates_has_the_cpus_bits and of_random_ptt_by_lanes_... beside it.
//
// Workgroup memory and registers bound how many workgroups a multiprocessor has at a time, so there is little of either.
//
// Calls of the getter are handed out to workgroups in shares, from a common counter (counter_shares), up to call_shares
// of a dispatch and plan.budget of a workgroup: those that the device runs first do all the work, and none waits for a
// place that becomes free at the end.

const no_probe = 0xffffffffu;
// Lanes without a probe wait until there are so many of them.
const fewest_idle = 8u;

// The state as in the buffer, then the page, the calls that may be made, and further ones that may be asked for.
const kept_page = line_words_used;
const kept_calls = kept_page + 3u;
const kept_most_calls = kept_page + 4u;
var<workgroup> line_words: array<u32, 32>;
// Position, tangent and normal of the point at which probes start; beside the position its amplitude.
var<workgroup> probe_start: array<vec4<f32>, 3>;
// The candidates that were made last.
var<workgroup> made_a: array<vec4<f32>, 32>;
var<workgroup> made_b: array<vec4<f32>, 32>;
var<workgroup> made_heights: array<f32, 32>;
var<workgroup> made_k: array<vec2<f32>, 32>;

// What a step begins with; `goes_on` is false where the workgroup ends for this dispatch.
struct StepStart {
  goes_on: bool,
  threshold: f32,
  first_of_disc: u32,  // the number of the disc's first probe; those before it are tried under `bound`
  bound: f32,          // of the arc before
}

fn stored_direction(state_at: u32, direction: u32) -> vec3<f32> {
  let own = work.words[state_at + state_directions + 3u * direction + min(lane_index, 2u)];
  return vec3_of_words(lanes_get_word(own, 0u), lanes_get_word(own, 1u), lanes_get_word(own, 2u));
}

fn keep_vec3(at: u32, v: vec3<f32>) {
  line_words[at] = bitcast<u32>(v.x);
  line_words[at + 1u] = bitcast<u32>(v.y);
  line_words[at + 2u] = bitcast<u32>(v.z);
}

fn keep_line(line: Streamline, page: Page, calls: u32, most_calls: u32, here: f32) {
  if (lane_index == 0u) {
    line_words[line_phase] = line.phase;
    line_words[line_seed] = line.seed;
    line_words[line_direction] = line.direction;
    line_words[line_count] = line.count;
    line_words[line_half] = line.half;
    line_words[line_steps] = line.steps;
    line_words[line_points] = line.points;
    keep_vec3(line_seed_position, line.seed_position);
    keep_vec3(line_position, line.position);
    keep_vec3(line_tangent, line.frame.tangent);
    keep_vec3(line_normal, line.frame.normal);
    keep_vec3(line_binormal, line.frame.binormal);
    line_words[line_bound] = bitcast<u32>(line.bound);
    line_words[kept_page] = page.page;
    line_words[kept_page + 1u] = page.first;
    line_words[kept_page + 2u] = page.count;
    line_words[kept_calls] = calls;
    line_words[kept_most_calls] = most_calls;
    probe_start[0] = vec4<f32>(line.position, here);
    probe_start[1] = vec4<f32>(line.frame.tangent, 0.0);
    probe_start[2] = vec4<f32>(line.frame.normal, 0.0);
  }
  lanes_barrier();
}

// The move along `curvature` where one was `drawn`, then to the next point that needs a draw.
fn next_step(state_at: u32, drawn: bool, curvature: Curvature) -> StepStart {
  let w = workgroupUniformLoad(&line_words);
  var line = line_of_words(w);
  var page = Page(w[kept_page], w[kept_page + 1u], w[kept_page + 2u]);
  var calls = w[kept_calls];
  var most_calls = w[kept_most_calls];
  var moves = drawn;
  loop {
    var reason = end_none;
    if (moves) {
      moves = false;
      line.steps += 1u;
      if (curvature.found) {
        let next = propagate_frame(line.frame, curvature.k1, curvature.k2, plan.ptt_arc_mm);
        line.position = vec3<f32>(line.position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                                  line.position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                                  line.position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
        line.frame = next.frame;
        line.bound = curvature.bound;
        line.phase = phase_moved;
      } else {
        reason = end_no_direction;
      }
    }
    if (reason == end_none) {
      if (calls == 0u) {
        if (most_calls == 0u || take_number(counter_shares) >= plan.call_shares) {
          break;
        }
        calls = min(most_calls, calls_of_a_share);
        most_calls -= calls;
      }
      if (line.phase == phase_free) {
        let taken = take_number(counter_next_seed);
        if (taken >= plan.seed_count) {
          break;
        }
        let given = stand_at_seed(&line, taken);
        if (plan.given_directions != 0u && lane_index == 0u) {
          save_vec3(state_at + state_directions, given);
        }
      }
      if (line.phase == phase_starts_half) {
        start_half(&line, stored_direction(state_at, line.direction));
      }
      if (!has_page(&page, &line)) {
        break;
      }
      // Where the streamline stands now.
      let initial = line.phase == phase_at_seed;
      let cell = probe_cell(line.position);
      var corners: Corners;
      var values_here = PointValues(0.0, 0.0);
      if (cell.outside) {
        reason = end_outside_image;
      } else {
        corners = probe_corners(line.position, cell);
        if (initial) {
          values_here.stop = read_point(&corners);
        } else if (plan.relative_threshold == 0.0) {
          values_here.stop = lanes_same(interpolate_channel(&corners, channels()));
        } else {
          values_here = read_values(&corners);
        }
        reason = reason_of_map(line.position, pin(values_here.stop));
      }
      if (initial) {
        if (reason != end_none) {
          leave_bad_seed(&line);
          continue;
        }
        var count = 1u;
        if (plan.given_directions == 0u) {
          calls -= 1u;
          apply_threshold(fill_amplitudes(false, line.frame.tangent));
          count = keep_initial_directions(plan.first_seed + line.seed);
          save_vec3(state_at + state_directions + 3u * lane_index, initial_direction);
        }
        storageBarrier();
        take_directions(&line, count);
        continue;
      }
      if (reason == end_none) {
        reason = keep_point(&page, &line);
      }
      if (reason == end_none) {
        calls -= 1u;
        let relative = mul(plan.relative_threshold, values_here.greatest);
        let threshold = select(plan.absolute_threshold, relative, relative > plan.absolute_threshold);
        let sum = interpolate_channel(&corners, packed_nearest_slot(line.frame.tangent));
        let here = lanes_same(select(0.0, sum, sum > 0.0));
        if (plan.ptt_weak_links != 0u || here >= threshold) {
          keep_line(line, page, calls, most_calls, here);
          return StepStart(true, threshold, select(0u, tries_on_trust, carries_bound(line.steps)), line.bound);
        }
        line.steps += 1u;
        reason = end_no_direction;
      }
    }
    end_half(&page, &line, reason);
  }
  leave_line(state_at, page, line);
  return StepStart(false, 0.0, 0u, 0.0);
}

// What lane_propagate() needs; straight_arc as the first number of `a` where the curve is not bent.
struct ProbeArc {
  a: vec4<f32>,  // along, aside_1, aside_2, keep
  b: vec4<f32>,  // turn_1, turn_2, normal_normal, normal_binormal
}

struct ProbeMove {
  displacement: vec3<f32>,
  tangent: vec3<f32>,
  normal: vec3<f32>,
}

fn near_unit(a: vec3<f32>) -> vec3<f32> {
  return scale_vec3(a, inverse_root_near_one(pin(dot_vec3(a, a))));
}

// lane_propagate() of a frame that is orthonormal but for rounding, as starts_are_unit() of probe_words.hpp sees to: so is
// what is normalised here, to 2^-16 where 2^-13 would do. The binormal is made anew: three registers less while memory is
// waited for.
fn move_probe(tangent: vec3<f32>, normal: vec3<f32>, arc: ProbeArc) -> ProbeMove {
  if (arc.a.x == straight_arc) {
    return ProbeMove(scale_vec3(tangent, plan.ptt_probe_step_mm), tangent, normal);
  }
  let binormal = cross_vec3(tangent, normal);
  let ahead = near_unit(combine(tangent, arc.a.w, normal, arc.b.x, binormal, arc.b.y));
  let leaning = combine(tangent, -arc.b.x, normal, arc.b.z, binormal, arc.b.w);
  return ProbeMove(combine(tangent, arc.a.x, normal, arc.a.y, binormal, arc.a.z), ahead,
                   near_unit(leaning - scale_vec3(ahead, dot_vec3(ahead, leaning))));
}

// The arc of a point of the disc.
fn disc_arc(point: u32) -> ProbeArc {
  let at = plan.at_probe_arcs + 2u * point;
  return ProbeArc(bitcast<vec4<f32>>(probe_tables[at]), bitcast<vec4<f32>>(probe_tables[at + 1u]));
}

// The 32 candidates from number `attempt` on, one by each lane.
fn make_candidates(attempt: u32) {
  let counter = DrawCounter(plan.first_seed + line_words[line_seed], draw_purpose_step, line_words[line_direction],
                            line_words[line_half], line_words[line_steps], 0u);
  let candidate = draw_candidate(counter_words(counter, 0u), attempt + lane_index);
  let arc = lane_arc(candidate.k1, candidate.k2, plan.ptt_probe_step_mm);
  lanes_barrier();
  made_a[lane_index] = vec4<f32>(select(straight_arc, arc.along, arc.bent), arc.aside_1, arc.aside_2, arc.keep);
  made_b[lane_index] = vec4<f32>(arc.turn_1, arc.turn_2, arc.normal_normal, arc.normal_binormal);
  made_heights[lane_index] = candidate.height;
  made_k[lane_index] = vec2<f32>(candidate.k1, candidate.k2);
  lanes_barrier();
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
  var word = select(0u, work.words[state_at + lane_index], lane_index < line_words_used);
  word = select(word, no_page, lane_index == kept_page);
  line_words[lane_index] = select(word, plan.budget, lane_index == kept_most_calls);
  lanes_barrier();
  let below = (1u << lane_index) - 1u;
  let points_of_probe = i32(plan.ptt_probe_quality) - 1;
  let weak_links = plan.ptt_weak_links != 0u;
  var drawn = false;
  var curvature = no_curvature;
  loop {
    let start = next_step(state_at, drawn, curvature);
    if (!start.goes_on) {
      return;
    }
    drawn = true;
    let threshold = start.threshold;
    let first_of_disc = start.first_of_disc;
    // A probe for each lane: a point of the disc, or a candidate under the bound that was carried along.
    var number = lane_index;
    var arc = disc_arc(lane_index);
    var height = 0.0;
    var k = vec2<f32>(0.0);
    if (first_of_disc != 0u) {
      make_candidates(0u);
      arc = ProbeArc(made_a[lane_index], made_b[lane_index]);
      height = made_heights[lane_index];
      k = made_k[lane_index];
    }
    var position = probe_start[0].xyz;
    var tangent = probe_start[1].xyz;
    var normal = probe_start[2].xyz;
    var sum = probe_start[0].w;
    var points = points_of_probe;  // still to go; 0 when whole, below when there is no probe
    var taken = 32u;               // probes that lanes have or had; those up to the next multiple of 32 are made
    var end = disc_points + plan.ptt_tries;  // probes from here on do not count
    var until_bound = select(points_of_probe, 0, first_of_disc != 0u);  // points until the last of the disc is whole
    var of_disc_best = 0.0;
    var bound = start.bound;
    var found = false;
    loop {
      if (points > 0) {
        let next = move_probe(tangent, normal, arc);
        tangent = next.tangent;
        normal = next.normal;
        position = vec3<f32>(position.x + mul(next.displacement.x, plan.voxels_per_mm_x),
                             position.y + mul(next.displacement.y, plan.voxels_per_mm_y),
                             position.z + mul(next.displacement.z, plan.voxels_per_mm_z));
        let value = probe_amplitude(position, tangent);
        sum = sum + value;
        points = select(-1, points - 1, weak_links || value >= threshold);
      }
      until_bound -= 1;
      // No candidate behind the disc is whole before it.
      if (until_bound == 0 || lanes_ballot(points == 0) != 0u) {
        let mean = mul(sum, plan.ptt_inverse_quality);
        let support = select(0.0, mean, points == 0 && mean >= threshold && mean > 0.0);
        let of_disc = number - first_of_disc < disc_points;
        of_disc_best = greater_number(select(0.0, support, of_disc), of_disc_best);
        if (until_bound == 0) {
          bound = mul(fold_greatest(of_disc_best), bound_margin);
          end = select(min(end, first_of_disc + disc_points), end, bound > 0.0);
        }
        // The first in the order of the attempts counts. Without support of the disc none behind it does.
        let own_bound = select(bound, start.bound, number < first_of_disc);
        let passes = !of_disc && number < end && support > mul(height, own_bound);
        if (lanes_ballot(passes) != 0u) {
          end = least_of_lanes(select(no_probe, number, passes));
          found = true;
        }
        if (points == 0 || number >= end) {
          points = -1;
        }
      }
      // Lanes without a probe take one, when there are enough of them.
      var idle = lanes_ballot(points < 0);
      if (countOneBits(idle) >= fewest_idle && taken < end) {
        loop {
          let next_of_disc = taken - first_of_disc < disc_points;
          if (taken % 32u == 0u && !next_of_disc) {
            make_candidates(taken - disc_points);
          }
          let last = min((taken & ~31u) + 32u, end);
          let wanted = taken + countOneBits(idle & below);
          if (points < 0 && wanted < last) {
            number = wanted;
            arc = ProbeArc(made_a[wanted % 32u], made_b[wanted % 32u]);
            if (next_of_disc) {
              arc = disc_arc(wanted % 32u);
            }
            height = made_heights[wanted % 32u];
            k = made_k[wanted % 32u];
            position = probe_start[0].xyz;
            tangent = probe_start[1].xyz;
            normal = probe_start[2].xyz;
            sum = probe_start[0].w;
            points = points_of_probe;
          }
          taken = min(taken + countOneBits(idle), last);
          if (next_of_disc && taken == first_of_disc + disc_points) {
            until_bound = points_of_probe;
          }
          if (taken >= end || taken % 32u != 0u) {
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
    let chosen = lanes_ballot(found && number == end);
    let lane = firstTrailingBit(chosen | 0x80000000u);
    let support = mul(lanes_get(sum, lane), plan.ptt_inverse_quality);
    curvature = Curvature(chosen != 0u, lanes_get(k.x, lane), lanes_get(k.y, lane),
                          greater_number(support, select(bound, start.bound, end < first_of_disc)));
  }
}
