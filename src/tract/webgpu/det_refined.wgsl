// Mirrors refine_maximum and the end of det_step of src/tract/kernel/det.hpp: from the vertex to the maximum of the series.

fn series_coefficient(corners: ptr<function, Corners>, i: u32) -> f32 {
  return record[tables[plan.at_record_index + i]];
}

// reach, -reach or 0 for this lane, by its bit in two masks.
fn stencil(forwards: u32, backwards: u32) -> f32 {
  let reach = select(positive_zero(), refinement_reach, ((forwards >> lane_index) & 1u) != 0u);
  return select(reach, -refinement_reach, ((backwards >> lane_index) & 1u) != 0u);
}

fn refine_maximum(corners: ptr<function, Corners>, start: vec3<f32>) -> vec3<f32> {
  var at = start;
  // Lanes 0 to 6 stand at (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1) of the tangent plane.
  let first = stencil(0x22u, 0x44u);
  let second = stencil(0x28u, 0x50u);
  for (var round = 0; round < refinement_rounds; round++) {
    let e1 = any_perpendicular(at);
    let e2 = cross_vec3(at, e1);
    let p = (at + scale_vec3(e1, first)) + scale_vec3(e2, second);
    let unit = scale_vec3(p, div(1.0, root(pin(dot_vec3(p, p)))));
    let f = series_at(unit.x, unit.y, unit.z, corners);
    let f0 = lanes_get(f, 0u);
    let right = lanes_get(f, 1u);
    let left = lanes_get(f, 2u);
    let up = lanes_get(f, 3u);
    let down = lanes_get(f, 4u);
    let both = lanes_get(f, 5u) + lanes_get(f, 6u);
    let g1 = mul(0.5, pin(right - left));
    let g2 = mul(0.5, pin(up - down));
    let across = pin(right + left);
    let along = pin(up + down);
    let twice = pin(mul(2.0, f0));
    let h11 = pin(across - twice);
    let h22 = pin(along - twice);
    let h12 = mul(0.5, pin(((both - across) - along) + twice));
    let determinant = pin(mul(h11, h22) - mul(h12, h12));
    if (!(h11 < 0.0 && h22 < 0.0 && determinant > 0.0)) {
      break;
    }
    // In units of the reach.
    var s1 = div(mul(h12, g2) - mul(h22, g1), determinant);
    var s2 = div(mul(h12, g1) - mul(h11, g2), determinant);
    let far = pin(mul(mul(s1, s1) + mul(s2, s2), refinement_reach * refinement_reach));
    if (far > refinement_step * refinement_step) {
      let shorter = div(refinement_step, root(far));
      s1 = mul(s1, shorter);
      s2 = mul(s2, shorter);
    }
    at = normalise((at + scale_vec3(e1, mul(s1, refinement_reach))) + scale_vec3(e2, mul(s2, refinement_reach)));
  }
  let kept = pin(dot_vec3(at, start)) >= refinement_cosine;
  return select(start, at, kept);
}

fn refined(corners: ptr<function, Corners>, vertex: vec3<f32>, ahead: vec3<f32>) -> vec3<f32> {
  let moved = refine_maximum(corners, vertex);
  return select(vertex, moved, dot_vec3(moved, ahead) >= plan.cos_max_angle);
}
