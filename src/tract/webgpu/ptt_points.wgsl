// Mirrors src/tract/kernel/ptt_in_registers.hpp and probe_tables.hpp: ptt on amplitudes of a half sphere, several
// streamlines (walks) per workgroup, each with its part of the lanes. A lane follows one probe; when it ends, weak or
// whole, the lane takes the next candidate of its walk. The points of the disc come first, and no candidate is whole before
// they are. The first candidate that is accepted, in the order of the attempts, is the result. All lanes together make
// candidates, 32 at a time, and bring a walk from one step to the next. `walks` is written by webgpu_shader.cpp.
//
// probe_tables: per slot x y z 0; per point of the disc an arc of three; per cell of the image the places of its eight
// records. field_rows are the records four numbers at a time.

const disc_points = 32u;
const calls_of_a_share = 64u;
const no_probe = 0xffffffffu;

// Position and frame of the point at which a walk's probes start.
var<workgroup> walk_starts: array<vec4<f32>, 3u * walks>;
// 0 to 21 the state as in the buffer, 22 to 24 the page, 25 calls that it may make, 26 further ones that it may ask for.
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

const packed_cells = 32u;

fn cosine_along(d: vec3<f32>, v: vec3<f32>) -> f32 {
  return absolute(dot_vec3(d, v));
}

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
  var entry: u32;
  var d1: vec3<f32>;
  var d2: vec3<f32>;
  var d3: vec3<f32>;
  if (wide_nearest) {
    let at = plan.at_packed_nearest + 3u * cell;
    let a = probe_tables[at];
    let b = bitcast<vec4<f32>>(probe_tables[at + 1u]);
    let c = bitcast<vec4<f32>>(probe_tables[at + 2u]);
    entry = a.x;
    d1 = bitcast<vec3<f32>>(a.yzw);
    d2 = b.xyz;
    d3 = vec3<f32>(b.w, c.xy);
  } else {
    entry = probe_tables[plan.at_packed_nearest + 9216u + (cell >> 2u)][cell & 3u];
    d1 = bitcast<vec4<f32>>(probe_tables[entry & 1023u]).xyz;
    d2 = bitcast<vec4<f32>>(probe_tables[(entry >> 10u) & 1023u]).xyz;
    d3 = bitcast<vec4<f32>>(probe_tables[(entry >> 20u) & 1023u]).xyz;
  }
  if ((entry >> 31u) != 0u) {
    return nearest_slot(v);
  }
  var best = entry & 1023u;
  let second_slot = (entry >> 10u) & 1023u;
  let third_slot = (entry >> 20u) & 1023u;
  var best_cosine = cosine_along(d1, v);
  let second_cosine = cosine_along(d2, v);
  let third_cosine = cosine_along(d3, v);
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

fn keep_walk(which: u32, line: Streamline, page: Page, budget: u32, most: u32) {
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
    walk_states[which][26] = most;
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
  var most = w[26];
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
        if (most == 0u || take_number(6u) >= plan.call_shares) {
          break;
        }
        budget = min(most, calls_of_a_share);
        most -= budget;
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
          keep_walk(which, line, page, budget, most);
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
