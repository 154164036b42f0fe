// Mirrors the draws of src/tract/kernel/ptt.hpp: the frame at a seed, the candidates of a step.

struct Curvature {
  found: bool,
  k1: f32,
  k2: f32,
  bound: f32,  // of this arc, for the next
}

const no_curvature = Curvature(false, 0.0, 0.0, 0.0);

// Whether the bound is carried along to the arc that follows on `arcs` others of its half.
fn carries_bound(arcs: u32) -> bool {
  return arcs % plan.ptt_bound_interval != 0u;
}

struct Candidate {
  k1: f32,
  k2: f32,
  height: f32,  // of the bound, up to which a candidate is refused
}

// `words` are those of the step's counter.
fn draw_candidate(words: vec4<u32>, attempt: u32) -> Candidate {
  let draws = philox4x32_10(vec4<u32>(words.x, words.y, words.z, attempt << 16u), vec2<u32>(plan.key_low, plan.key_high));
  let radius = mul(plan.ptt_max_curvature, root(uniform_from_word(draws.x)));
  let angle = sine_cosine(mul(two_pi, uniform_from_word(draws.y)));
  return Candidate(mul(radius, angle.cosine), mul(radius, angle.sine), uniform_from_word(draws.z));
}

// The same in all lanes, as browsers want to be told.
fn bound_carried_on() -> f32 {
  return lanes_same(carried_bound);
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
