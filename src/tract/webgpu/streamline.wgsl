// The state of a streamline between dispatches, and the pages of its points: what track.wgsl and ptt_probes.wgsl share.
//
// Points go to pages of 32, taken from a common counter; a page belongs to one half of one streamline and has an entry
// that says so. When the pages are used up, workgroups wait for the next dispatch, before which the host empties them.
//
// work.counters: 0 next seed, 1 pages taken (more than there are when they are used up), 2 seeds outside, 3 seeds without
// direction, 4 workgroups that have not finished, 5 those of them that wait for another brick of the field, 6 shares of
// calls that were taken (ptt_probes.wgsl). work.words: per workgroup 128 words of state, then 8 per seed: x y z, number
// within the range, given direction x y z; then, for ptt_probes.wgsl, the values of a workgroup's slots. pages: per page an
// entry of 4 words, then per page 96 words of points.
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

fn line_of_words(w: array<u32, 32>) -> Streamline {
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

// All but the initial directions, and that the streamline goes on later.
fn save_line(at: u32, line: Streamline) {
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
