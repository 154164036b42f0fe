// Mirrors src/tract/kernel/ptt_in_registers.hpp and probe_tables.hpp: ptt on amplitudes of a half sphere, several
// streamlines (walks) per workgroup, each with its part of the lanes. A lane follows one probe; when it ends, weak or
// whole, the lane takes the next candidate of its walk. The points of the disc come first, and no candidate is whole before
// they are. The first candidate that is accepted, in the order of the attempts, is the result. All lanes together make
// candidates, 32 at a time, and bring a walk from one step to the next. `walks` is written by webgpu_shader.cpp.
//
// probe_tables: per slot x y z 0; per point of the disc an arc of three; per cell of the image the places of its eight
// records. field_rows are the records four numbers at a time.

const walk_lanes = 32u / walks;
const walk_mask = 0xffffffffu >> (32u - walk_lanes);
const disc_points = 32u;
const no_probe = 0xffffffffu;

// Of each walk 32 arcs: along, aside_1, aside_2, keep; turn_1, turn_2, normal_normal, normal_binormal; k1, k2, height, bent.
var<workgroup> probe_arcs: array<vec4<f32>, 96u * walks>;
// Position and frame of the point at which a walk's probes start.
var<workgroup> walk_starts: array<vec4<f32>, 3u * walks>;
// 0 to 21 the state as in the buffer, 22 to 24 the page, 25 the budget.
var<workgroup> walk_states: array<array<u32, 32>, walks>;

// A whole number as float to an integer; exact below 2^22.
fn whole_number(a: f32) -> i32 {
  return bitcast<i32>(a + 0x1.8p23f) - 0x4b400000;
}

struct ProbeCell {
  outside: bool,
  number: u32,
  below: vec3<f32>,
}

fn probe_cell(position: vec3<f32>) -> ProbeCell {
  let below = floor(position);
  let x = whole_number(below.x);
  let y = whole_number(below.y);
  let z = whole_number(below.z);
  let size = grid_size();
  // Between centres of voxels it is inside, whatever is rounded.
  let between = u32(x) < size.x - 1u && u32(y) < size.y - 1u && u32(z) < size.z - 1u;
  let row = u32(z + 1) * (size.y + 1u) + u32(y + 1);
  return ProbeCell(!between && is_outside(position, size), row * (size.x + 1u) + u32(x + 1), below);
}

// Of a cell that is inside.
fn probe_corners(position: vec3<f32>, cell: ProbeCell) -> Corners {
  let at = plan.at_probe_cells + 2u * cell.number;
  let low = probe_tables[at];
  let high = probe_tables[at + 1u];
  let x1 = pin(position.x - cell.below.x);
  let y1 = pin(position.y - cell.below.y);
  let z1 = pin(position.z - cell.below.z);
  let x0 = 1.0 - x1;
  let y0 = 1.0 - y1;
  let z0 = 1.0 - z1;
  let a = mul(x0, y0);
  let b = mul(x1, y0);
  let c = mul(x0, y1);
  let d = mul(x1, y1);
  return Corners(array<RecordPlace, 8>(RecordPlace(low.x), RecordPlace(low.y), RecordPlace(low.z), RecordPlace(low.w),
                                       RecordPlace(high.x), RecordPlace(high.y), RecordPlace(high.z),
                                       RecordPlace(high.w)),
                 array<f32, 8>(mul(a, z0), mul(b, z0), mul(c, z0), mul(d, z0), mul(a, z1), mul(b, z1), mul(c, z1),
                               mul(d, z1)));
}

fn probe_direction_cosine(slot: u32, v: vec3<f32>) -> f32 {
  return absolute(dot_vec3(bitcast<vec4<f32>>(probe_tables[slot]).xyz, v));
}

const packed_cells = 32u;

// nearest_slot() by the small table, whose cells have up to three slots, or say that they have more.
fn packed_nearest_slot(v: vec3<f32>) -> u32 {
  let size = abs(v);
  let along_x = size.x >= size.y && size.x >= size.z;
  let along_y = size.y >= size.z;
  let major = select(select(v.z, v.y, along_y), v.x, along_x);
  let first = select(v.x, v.y, along_x);
  let second = select(select(v.y, v.z, along_y), v.z, along_x);
  let face = select(select(2u, 1u, along_y), 0u, along_x);
  // A rounded quotient will do, and the nearest whole number of what is half less: see probe_tables.hpp.
  let scale = 15.999984f / major;
  let row = u32(whole_number(pin(mul(second, scale) + 15.5)));
  let column = u32(whole_number(pin(mul(first, scale) + 15.5)));
  let cell = (face * packed_cells + row) * packed_cells + column;
  let entry = probe_tables[plan.at_packed_nearest + (cell >> 2u)][cell & 3u];
  if ((entry >> 31u) != 0u) {
    return nearest_slot(v);
  }
  var best = entry & 1023u;
  let second_slot = (entry >> 10u) & 1023u;
  let third_slot = (entry >> 20u) & 1023u;
  var best_cosine = probe_direction_cosine(best, v);
  let second_cosine = probe_direction_cosine(second_slot, v);
  let third_cosine = probe_direction_cosine(third_slot, v);
  if (second_cosine > best_cosine) {
    best = second_slot;
    best_cosine = second_cosine;
  }
  return select(best, third_slot, third_cosine > best_cosine);
}

fn probe_amplitude(position: vec3<f32>, tangent: vec3<f32>) -> f32 {
  let cell = probe_cell(position);
  if (cell.outside) {
    return 0.0;
  }
  var corners = probe_corners(position, cell);
  let sum = interpolate_channel(&corners, packed_nearest_slot(tangent));
  return select(0.0, sum, sum > 0.0);
}

fn scale_row(row: vec4<f32>, s: f32) -> vec4<f32> {
  return fma(row, vec4<f32>(s), vec4<f32>(plan.negative_zero));
}

struct PointValues {
  greatest: f32,
  stop: f32,
}

// The greatest amplitude at a point, and the stopping value, which is the number after them.
fn read_values(corners: ptr<function, Corners>) -> PointValues {
  var greatest = 0.0;
  var stop = 0.0;
  let last = channels() / 4u;
  for (var group = lane_index; group <= last; group += 32u) {
    var sum = scale_row(field_rows[(*corners).place[0].at / 4u + group], (*corners).weight[0]);
    sum = sum + scale_row(field_rows[(*corners).place[1].at / 4u + group], (*corners).weight[1]);
    sum = sum + scale_row(field_rows[(*corners).place[2].at / 4u + group], (*corners).weight[2]);
    sum = sum + scale_row(field_rows[(*corners).place[3].at / 4u + group], (*corners).weight[3]);
    sum = sum + scale_row(field_rows[(*corners).place[4].at / 4u + group], (*corners).weight[4]);
    sum = sum + scale_row(field_rows[(*corners).place[5].at / 4u + group], (*corners).weight[5]);
    sum = sum + scale_row(field_rows[(*corners).place[6].at / 4u + group], (*corners).weight[6]);
    sum = sum + scale_row(field_rows[(*corners).place[7].at / 4u + group], (*corners).weight[7]);
    let channel = 4u * group;
    greatest = greater_number(select(0.0, sum.x, channel < channels()), greatest);
    greatest = greater_number(select(0.0, sum.y, channel + 1u < channels()), greatest);
    greatest = greater_number(select(0.0, sum.z, channel + 2u < channels()), greatest);
    greatest = greater_number(select(0.0, sum.w, channel + 3u < channels()), greatest);
    let within = channels() % 4u;
    stop = select(select(sum.z, sum.w, within == 3u), select(sum.x, sum.y, within == 1u), within < 2u);
  }
  return PointValues(fold_greatest(greatest), lanes_get(stop, last % 32u));
}

// What a walk's step begins with; `goes_on` is false where the walk ends for this dispatch.
struct StepStart {
  goes_on: bool,
  threshold: f32,
  here: f32,
}

fn walk_direction(state_at: u32, direction: u32) -> vec3<f32> {
  let own = work.words[state_at + 32u + 3u * direction + min(lane_index, 2u)];
  return vec3_of_words(lanes_get_word(own, 0u), lanes_get_word(own, 1u), lanes_get_word(own, 2u));
}

fn keep_walk(which: u32, line: Streamline, page: Page, budget: u32) {
  if (lane_index == 0u) {
    walk_states[which][0] = line.phase;
    walk_states[which][1] = line.seed;
    walk_states[which][2] = line.direction;
    walk_states[which][3] = line.count;
    walk_states[which][4] = line.half;
    walk_states[which][5] = line.steps;
    walk_states[which][6] = line.points;
    walk_states[which][7] = bitcast<u32>(line.seed_position.x);
    walk_states[which][8] = bitcast<u32>(line.seed_position.y);
    walk_states[which][9] = bitcast<u32>(line.seed_position.z);
    walk_states[which][10] = bitcast<u32>(line.position.x);
    walk_states[which][11] = bitcast<u32>(line.position.y);
    walk_states[which][12] = bitcast<u32>(line.position.z);
    walk_states[which][13] = bitcast<u32>(line.frame.tangent.x);
    walk_states[which][14] = bitcast<u32>(line.frame.tangent.y);
    walk_states[which][15] = bitcast<u32>(line.frame.tangent.z);
    walk_states[which][16] = bitcast<u32>(line.frame.normal.x);
    walk_states[which][17] = bitcast<u32>(line.frame.normal.y);
    walk_states[which][18] = bitcast<u32>(line.frame.normal.z);
    walk_states[which][19] = bitcast<u32>(line.frame.binormal.x);
    walk_states[which][20] = bitcast<u32>(line.frame.binormal.y);
    walk_states[which][21] = bitcast<u32>(line.frame.binormal.z);
    walk_states[which][22] = page.page;
    walk_states[which][23] = page.first;
    walk_states[which][24] = page.count;
    walk_states[which][25] = budget;
    walk_starts[3u * which] = vec4<f32>(line.position, line.frame.tangent.x);
    walk_starts[3u * which + 1u] = vec4<f32>(line.frame.tangent.yz, line.frame.normal.xy);
    walk_starts[3u * which + 2u] = vec4<f32>(line.frame.normal.z, line.frame.binormal);
  }
  lanes_barrier();
}

// The move along `curvature` where one was `drawn`, then to the next point that needs a draw.
fn next_step(which: u32, state_at: u32, drawn: bool, curvature: Curvature) -> StepStart {
  let w = workgroupUniformLoad(&walk_states[which]);
  var line = line_of_words(w);
  var page = Page(w[22], w[23], w[24]);
  var budget = w[25];
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
        line.phase = phase_moved;
      } else {
        reason = end_no_direction;
      }
    }
    if (reason == end_none) {
      if (budget == 0u) {
        break;
      }
      if (line.phase == phase_free) {
        let taken = take_number(0u);
        if (taken >= plan.seed_count) {
          break;
        }
        let own = work.words[plan.at_seeds + 8u * taken + (lane_index & 7u)];
        let s = lanes_all(own);
        line.phase = phase_at_seed;
        line.seed = s[3];
        line.seed_position = vec3_of_words(s[0], s[1], s[2]);
        line.position = line.seed_position;
        if (plan.given_directions != 0u && lane_index >= 4u && lane_index < 7u) {
          work.words[state_at + 28u + lane_index] = own;
        }
      }
      if (line.phase == phase_starts_half) {
        let along = walk_direction(state_at, line.direction);
        line.frame.tangent = select(along, -along, line.half != 0u);
        line.position = line.seed_position;
        line.steps = 0u;
        line.points = 0u;
        line.frame = begin_half(Ask(false, plan.first_seed + line.seed, line.direction, line.half, 0u, line.position,
                                    line.frame));
        line.phase = phase_at_start;
      }
      if (line.phase >= phase_at_start && (page.page == no_page || page.count == points_per_page)) {
        if (page.page != no_page) {
          close_page(page, line, 0u, end_none);
        }
        page = Page(take_number(1u), line.points, 0u);
        if (page.page >= plan.page_capacity) {
          page.page = no_page;
          break;
        }
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
        } else {
          values_here = read_values(&corners);
        }
        if (!(pin(values_here.stop) > plan.stop_threshold)) {
          reason = end_stop_map;
        }
      }
      if (initial) {
        if (reason != end_none) {
          count_one(2u);
          line.phase = phase_free;
          continue;
        }
        line.count = 1u;
        if (plan.given_directions == 0u) {
          budget -= 1u;
          apply_threshold(fill_amplitudes(false, line.frame.tangent));
          line.count = find_peaks(initial_limit());
          keep_initial_peaks(line.count);
          save_vec3(state_at + 32u + 3u * lane_index, initial_direction);
        }
        storageBarrier();
        line.direction = 0u;
        line.half = select(1u, 0u, plan.one_sided != 0u);
        line.phase = phase_starts_half;
        if (line.count == 0u) {
          count_one(3u);
          line.phase = phase_free;
        }
        continue;
      }
      if (line.phase == phase_moved && reason == end_none && line.steps % plan.substeps == 0u) {
        if (lane_index < 3u) {
          pages[plan.at_points + 96u * page.page + 3u * page.count + lane_index] =
              bitcast<u32>(line.position[lane_index]);
        }
        page.count += 1u;
        line.points += 1u;
        if (line.points == plan.max_steps) {
          reason = end_max_length;
        }
      }
      if (!(line.phase == phase_moved && reason != end_none)) {
        budget -= 1u;
        let relative = mul(plan.relative_threshold, values_here.greatest);
        let threshold = select(plan.absolute_threshold, relative, relative > plan.absolute_threshold);
        let sum = interpolate_channel(&corners, packed_nearest_slot(line.frame.tangent));
        let here = lanes_same(select(0.0, sum, sum > 0.0));
        if (plan.ptt_weak_links != 0u || here >= threshold) {
          keep_walk(which, line, page, budget);
          return StepStart(true, threshold, here);
        }
        line.steps += 1u;
        reason = end_no_direction;
      }
    }
    close_page(page, line, 1u, reason);
    page.page = no_page;
    if (line.half == 1u) {
      line.half = 0u;
      line.phase = phase_starts_half;
    } else {
      line.half = select(1u, 0u, plan.one_sided != 0u);
      line.direction += 1u;
      line.phase = select(phase_free, phase_starts_half, line.direction < line.count);
    }
  }
  if (page.page != no_page) {
    close_page(page, line, 0u, end_none);
  }
  save_line(state_at, line);
  return StepStart(false, 0.0, 0.0);
}

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
    walk_states[walk][lane_index] = select(word, plan.budget, lane_index == 25u);
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
