// Mirrors src/tract/kernel/walk.hpp and src/tract/kernel/paged_half.hpp: what happens to a streamline besides its steps, once
// for track.wgsl and ptt_probes.wgsl: its state between dispatches, the start of a seed and of a half, the pages of its
// points, and which half is next.
//
// Points go to pages of 32, taken from a common counter; a page belongs to one half of one streamline and has an entry
// that says so. When the pages are used up, workgroups wait for the next dispatch, before which the host empties them.
//
// What the buffers hold, and the constants that say where (counter_..., phase_..., line_..., seed_..., entry_...), is in
// streamline_words.hpp; webgpu_shader.cpp writes them before this text.

struct Work {
  counters: array<atomic<u32>, work_counter_words>,
  words: array<u32>,
}

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
  bound: f32,      // of ptt's rejection, as the last arc left it
}

struct Page {
  page: u32,
  first: u32,  // the number in its half of the page's first point
  count: u32,
}

var<workgroup> shared_words: array<u32, 32>;
// The line's bound, for the getter to read and to leave.
var<private> carried_bound: f32;

// The words of all lanes, the same in all lanes. The load has a barrier on either side.
fn lanes_all(own: u32) -> array<u32, 32> {
  shared_words[lane_index] = own;
  return workgroupUniformLoad(&shared_words);
}

fn vec3_of_words(x: u32, y: u32, z: u32) -> vec3<f32> {
  return vec3<f32>(bitcast<f32>(x), bitcast<f32>(y), bitcast<f32>(z));
}

fn line_of_words(w: array<u32, 32>) -> Streamline {
  return Streamline(w[line_phase], w[line_seed], w[line_direction], w[line_count], w[line_half], w[line_steps],
                    w[line_points],
                    vec3_of_words(w[line_seed_position], w[line_seed_position + 1u], w[line_seed_position + 2u]),
                    vec3_of_words(w[line_position], w[line_position + 1u], w[line_position + 2u]),
                    Frame(vec3_of_words(w[line_tangent], w[line_tangent + 1u], w[line_tangent + 2u]),
                          vec3_of_words(w[line_normal], w[line_normal + 1u], w[line_normal + 2u]),
                          vec3_of_words(w[line_binormal], w[line_binormal + 1u], w[line_binormal + 2u])),
                    bitcast<f32>(w[line_bound]));
}

fn save_vec3(at: u32, v: vec3<f32>) {
  work.words[at] = bitcast<u32>(v.x);
  work.words[at + 1u] = bitcast<u32>(v.y);
  work.words[at + 2u] = bitcast<u32>(v.z);
}

// All but the initial directions, and that the streamline goes on later.
fn save_line(at: u32, line: Streamline) {
  if (lane_index == 0u) {
    work.words[at + line_phase] = line.phase;
    work.words[at + line_seed] = line.seed;
    work.words[at + line_direction] = line.direction;
    work.words[at + line_count] = line.count;
    work.words[at + line_half] = line.half;
    work.words[at + line_steps] = line.steps;
    work.words[at + line_points] = line.points;
    save_vec3(at + line_seed_position, line.seed_position);
    save_vec3(at + line_position, line.position);
    save_vec3(at + line_tangent, line.frame.tangent);
    save_vec3(at + line_normal, line.frame.normal);
    save_vec3(at + line_binormal, line.frame.binormal);
    work.words[at + line_bound] = bitcast<u32>(line.bound);
    if (line.phase != phase_free) {
      atomicAdd(&work.counters[counter_unfinished], 1u);
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

// To seed `taken` of those that were uploaded; returns the direction that was given for it.
fn stand_at_seed(line: ptr<function, Streamline>, taken: u32) -> vec3<f32> {
  let w = lanes_all(work.words[plan.at_seeds + seed_words * taken + (lane_index & (seed_words - 1u))]);
  (*line).phase = phase_at_seed;
  (*line).seed = w[seed_number];
  (*line).seed_position = vec3_of_words(w[seed_position], w[seed_position + 1u], w[seed_position + 2u]);
  (*line).position = (*line).seed_position;
  return vec3_of_words(w[seed_given], w[seed_given + 1u], w[seed_given + 2u]);
}

fn leave_bad_seed(line: ptr<function, Streamline>) {
  count_one(counter_seeds_outside);
  (*line).phase = phase_free;
}

fn first_half() -> u32 {
  return select(1u, 0u, plan.one_sided != 0u);
}

// The halves of `count` initial directions are next, or the next seed where there are none.
fn take_directions(line: ptr<function, Streamline>, count: u32) {
  (*line).count = count;
  (*line).direction = 0u;
  (*line).half = first_half();
  (*line).phase = phase_starts_half;
  if (count == 0u) {
    count_one(counter_seeds_without_direction);
    (*line).phase = phase_free;
  }
}

// Half 0 goes along its initial direction, half 1 against it or, where it turns back, against the first step of half 0.
fn start_half(line: ptr<function, Streamline>, along: vec3<f32>) {
  let turns = plan.turns_back != 0u && (*line).half != 0u;
  (*line).frame.tangent = select(along, -along, (*line).half != 0u && !turns);
  (*line).position = (*line).seed_position;
  (*line).steps = 0u;
  (*line).points = 0u;
  (*line).frame = begin_half(Ask(false, plan.first_seed + (*line).seed, (*line).direction, (*line).half, 0u,
                                 (*line).position, (*line).frame));
  (*line).phase = select(phase_at_start, phase_turning, turns);
}

// Why the line may not be where it stands, inside of the image; `interpolated` is the map's value there.
fn reason_of_map(position: vec3<f32>, interpolated: f32) -> u32 {
  if (plan.stop_nearest != 0u) {
    let passes = lanes_same(field_number(nearest_address(position), channels())) > plan.stop_threshold;
    return select(end_outside_mask, end_none, passes);
  }
  return select(end_stop_map, end_none, interpolated > plan.stop_threshold);
}

fn close_page(page: Page, line: Streamline, last: u32, reason: u32) {
  if (lane_index == 0u) {
    let at = entry_words * page.page;
    pages[at + entry_seed] = line.seed;
    pages[at + entry_bits] = line.direction | (line.half << entry_half_shift) | (last << entry_last_shift) |
                             (reason << entry_reason_shift) | (page.count << entry_points_shift);
    pages[at + entry_first] = page.first;
    pages[at + entry_steps] = line.steps;
  }
}

// Whether a half that walks has a page with room for a point, if need be a new one.
fn has_page(page: ptr<function, Page>, line: ptr<function, Streamline>) -> bool {
  if ((*line).phase >= phase_at_start && ((*page).page == no_page || (*page).count == points_per_page)) {
    if ((*page).page != no_page) {
      close_page(*page, *line, 0u, end_none);
    }
    *page = Page(take_number(counter_pages), (*line).points, 0u);
    if ((*page).page >= plan.page_capacity) {
      (*page).page = no_page;
      return false;
    }
  }
  return true;
}

// Keeps the point where the line stands, if it is one that is kept; end_max_length when it was the last.
fn keep_point(page: ptr<function, Page>, line: ptr<function, Streamline>) -> u32 {
  if ((*line).phase != phase_moved || (*line).steps % plan.substeps != 0u) {
    return end_none;
  }
  if (lane_index < 3u) {
    pages[plan.at_points + page_words * (*page).page + 3u * (*page).count + lane_index] =
        bitcast<u32>((*line).position[lane_index]);
  }
  (*page).count += 1u;
  (*line).points += 1u;
  return select(end_none, end_max_length, (*line).points == plan.max_steps);
}

// The end of a half, and which is next: the one along the same direction, the next direction, the next seed.
fn end_half(page: ptr<function, Page>, line: ptr<function, Streamline>, reason: u32) {
  close_page(*page, *line, 1u, reason);
  (*page).page = no_page;
  if ((*line).half == 1u) {
    (*line).half = 0u;
    (*line).phase = phase_starts_half;
  } else {
    (*line).half = first_half();
    (*line).direction += 1u;
    (*line).phase = select(phase_free, phase_starts_half, (*line).direction < (*line).count);
  }
}

// The end of a workgroup's share of a dispatch.
fn leave_line(at: u32, page: Page, line: Streamline) {
  if (page.page != no_page) {
    close_page(page, line, 0u, end_none);
  }
  save_line(at, line);
}
