// Mirrors src/tract/kernel/track.hpp: the life of a streamline. A workgroup takes seed after seed from a common counter and
// tracks all directions and halves of each. A dispatch has a budget of getter calls per workgroup, so that it ends soon;
// what a workgroup was doing then lies in its state and goes on in the next dispatch.
//
// Points go to pages of 32, taken from a common counter; a page belongs to one half of one streamline and has an entry
// that says so. When the pages are used up, workgroups wait for the next dispatch, before which the host empties them.
//
// work.counters: 0 next seed, 1 pages taken (more than there are when they are used up), 2 seeds outside, 3 seeds without
// direction, 4 workgroups that have not finished, 5 those of them that wait for another brick of the field. work.words: per workgroup 128 words of state, then 8 per seed: x y z,
// number within the range, given direction x y z. pages: per page an entry of 4 words, then per page 96 words of points.
// Entry: number of the seed; direction | half << 5 | last << 6 | reason << 7 | points << 16; first point; getter calls.

struct Work {
  counters: array<atomic<u32>, 16>,
  words: array<u32>,
}

const state_words = 128u;
const points_per_page = 32u;
const no_page = 0xffffffffu;

const phase_free = 0u;          // takes a seed next
const phase_at_seed = 1u;       // asks for the initial directions next
const phase_starts_half = 2u;
const phase_at_start = 3u;      // stands at the seed, heading into a half
const phase_moved = 4u;         // stands at a point that is not tested yet

struct Streamline {
  phase: u32,
  seed: u32,       // number within the range
  direction: u32,
  count: u32,      // of directions
  half: u32,
  steps: u32,      // getter calls of this half
  points: u32,     // of this half
  seed_position: vec3<f32>,
  position: vec3<f32>,
  frame: Frame,
}

struct Page {
  page: u32,
  first: u32,  // the number in its half of the page's first point
  count: u32,
}

var<workgroup> shared_words: array<u32, 32>;

// The words of all lanes, the same in all lanes. The load has a barrier on either side.
fn lanes_all(own: u32) -> array<u32, 32> {
  shared_words[lane_index] = own;
  return workgroupUniformLoad(&shared_words);
}

fn vec3_of_words(x: u32, y: u32, z: u32) -> vec3<f32> {
  return vec3<f32>(bitcast<f32>(x), bitcast<f32>(y), bitcast<f32>(z));
}

// Lane i has word i of the state.
fn load_state(at: u32) -> Streamline {
  let own = at + 32u + 3u * lane_index;
  initial_direction = vec3_of_words(work.words[own], work.words[own + 1u], work.words[own + 2u]);
  let w = lanes_all(work.words[at + lane_index]);
  return Streamline(w[0], w[1], w[2], w[3], w[4], w[5], w[6], vec3_of_words(w[7], w[8], w[9]),
                    vec3_of_words(w[10], w[11], w[12]),
                    Frame(vec3_of_words(w[13], w[14], w[15]), vec3_of_words(w[16], w[17], w[18]),
                          vec3_of_words(w[19], w[20], w[21])));
}

fn save_vec3(at: u32, v: vec3<f32>) {
  work.words[at] = bitcast<u32>(v.x);
  work.words[at + 1u] = bitcast<u32>(v.y);
  work.words[at + 2u] = bitcast<u32>(v.z);
}

fn save_state(at: u32, line: Streamline) {
  save_vec3(at + 32u + 3u * lane_index, initial_direction);
  if (lane_index == 0u) {
    work.words[at] = line.phase;
    work.words[at + 1u] = line.seed;
    work.words[at + 2u] = line.direction;
    work.words[at + 3u] = line.count;
    work.words[at + 4u] = line.half;
    work.words[at + 5u] = line.steps;
    work.words[at + 6u] = line.points;
    save_vec3(at + 7u, line.seed_position);
    save_vec3(at + 10u, line.position);
    save_vec3(at + 13u, line.frame.tangent);
    save_vec3(at + 16u, line.frame.normal);
    save_vec3(at + 19u, line.frame.binormal);
    if (line.phase != phase_free) {
      atomicAdd(&work.counters[4], 1u);
    }
  }
}

// What the counter held before; the same in all lanes.
fn take_number(counter: u32) -> u32 {
  var number = 0u;
  if (lane_index == 0u) {
    number = atomicAdd(&work.counters[counter], 1u);
  }
  return lanes_get_word(number, 0u);
}

fn count_one(counter: u32) {
  if (lane_index == 0u) {
    atomicAdd(&work.counters[counter], 1u);
  }
}

fn close_page(page: Page, line: Streamline, last: u32, reason: u32) {
  if (lane_index == 0u) {
    pages[4u * page.page] = line.seed;
    pages[4u * page.page + 1u] =
        line.direction | (line.half << 5u) | (last << 6u) | (reason << 7u) | (page.count << 16u);
    pages[4u * page.page + 2u] = page.first;
    pages[4u * page.page + 3u] = line.steps;
  }
}

fn track_seeds(workgroup: u32) {
  let state_at = state_words * workgroup;
  var line = load_state(state_at);
  var page = Page(no_page, 0u, 0u);
  var budget = plan.budget;
  while (budget > 0u) {
    if (line.phase == phase_free) {
      let taken = take_number(0u);
      if (taken >= plan.seed_count) {
        break;
      }
      let w = lanes_all(work.words[plan.at_seeds + 8u * taken + (lane_index & 7u)]);
      line.phase = phase_at_seed;
      line.seed = w[3];
      line.seed_position = vec3_of_words(w[0], w[1], w[2]);
      line.position = line.seed_position;
      initial_direction = vec3_of_words(w[4], w[5], w[6]);
    }
    if (line.phase == phase_starts_half) {
      let along = vec3<f32>(lanes_get(initial_direction.x, line.direction),
                            lanes_get(initial_direction.y, line.direction),
                            lanes_get(initial_direction.z, line.direction));
      line.frame.tangent = select(along, -along, line.half != 0u);
      line.position = line.seed_position;
      line.steps = 0u;
      line.points = 0u;
      line.frame = begin_half(Ask(false, plan.first_seed + line.seed, line.direction, line.half, 0u, line.position,
                                  line.frame));
      line.phase = phase_at_start;
    }
    // Beyond the brick of the field that is there: the host brings another before a later dispatch.
    if (line.position.z < plan.brick_low || line.position.z >= plan.brick_high) {
      count_one(5u);
      break;
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
    var reason = end_none;
    var corners: Corners;
    if (is_outside(line.position, grid_size())) {
      reason = end_outside_image;
    } else {
      corners = corners_at(line.position);
      if (!(pin(read_point(&corners)) > plan.stop_threshold)) {
        reason = end_stop_map;
      }
    }
    if (line.phase == phase_at_seed && reason != end_none) {
      count_one(2u);
      line.phase = phase_free;
      continue;
    }
    if (line.phase == phase_at_seed && plan.given_directions != 0u) {
      line.count = 1u;
      line.direction = 0u;
      line.half = select(1u, 0u, plan.one_sided != 0u);
      line.phase = phase_starts_half;
      continue;
    }
    if (line.phase == phase_moved && reason == end_none && line.steps % plan.substeps == 0u) {
      if (lane_index < 3u) {
        pages[plan.at_points + 96u * page.page + 3u * page.count + lane_index] = bitcast<u32>(line.position[lane_index]);
      }
      page.count += 1u;
      line.points += 1u;
      if (line.points == plan.max_steps) {
        reason = end_max_length;
      }
    }
    // The seed of a half was found good.
    let ends = line.phase == phase_moved && reason != end_none;
    if (!ends) {
      budget -= 1u;
      let initial = line.phase == phase_at_seed;
      let next = answer(Ask(initial, plan.first_seed + line.seed, line.direction, line.half, line.steps, line.position,
                            line.frame),
                        &corners);
      if (initial) {
        line.count = next.count;
        line.direction = 0u;
        line.half = select(1u, 0u, plan.one_sided != 0u);
        line.phase = phase_starts_half;
        if (next.count == 0u) {
          count_one(3u);
          line.phase = phase_free;
        }
        continue;
      }
      line.steps += 1u;
      if (next.count != 0u) {
        line.position = next.position;
        line.frame = next.frame;
        line.phase = phase_moved;
        continue;
      }
      reason = end_no_direction;
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
  save_state(state_at, line);
}
