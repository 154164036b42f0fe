// Mirrors det_step of src/tract/kernel/det.hpp without refinement.

fn refined(corners: ptr<function, Corners>, vertex: vec3<f32>, ahead: vec3<f32>) -> vec3<f32> {
  return vertex;
}
