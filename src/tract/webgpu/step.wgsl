// Mirrors src/tract/kernel/step.hpp and the parts of src/tract/kernel/track.hpp that every getter uses: what is asked of a
// getter at a point, and what it answers. A getter's files define
//   fn read_point(corners: ptr<function, Corners>) -> f32   reads what answer() needs; returns the stopping value
//   fn begin_half(ask: Ask) -> Frame            the frame at the seed for a half that heads along ask.frame.tangent
//   fn answer(ask: Ask, corners: ptr<function, Corners>) -> Answer
// The initial directions are the lanes': lane i has direction i in initial_direction.

var<private> initial_direction: vec3<f32>;

fn keep_initial_direction(i: u32, direction: vec3<f32>) {
  if (lane_index == i) {
    initial_direction = direction;
  }
}

struct Ask {
  initial: bool,  // the initial directions at a seed, else a step
  seed: u32,
  direction: u32,
  half: u32,
  step: u32,
  position: vec3<f32>,
  frame: Frame,  // where the streamline heads; all but ptt use the tangent alone
}

struct Answer {
  count: u32,  // of initial directions; of a step 1, or 0 where there is none
  position: vec3<f32>,
  frame: Frame,
}

fn initial_limit() -> u32 {
  return min(plan.max_directions, most_initial_directions);
}

fn no_step(ask: Ask) -> Answer {
  return Answer(0u, ask.position, ask.frame);
}

fn moved_by(position: vec3<f32>, displacement: vec3<f32>) -> vec3<f32> {
  return vec3<f32>(position.x + mul(displacement.x, plan.step_in_voxels_x),
                   position.y + mul(displacement.y, plan.step_in_voxels_y),
                   position.z + mul(displacement.z, plan.step_in_voxels_z));
}

fn step_along(ask: Ask, direction: vec3<f32>) -> Answer {
  return Answer(1u, moved_by(ask.position, direction), Frame(direction, ask.frame.normal, ask.frame.binormal));
}
