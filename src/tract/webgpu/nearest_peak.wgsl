// Mirrors nearest_peak of src/tract/kernel/closest.hpp. There is at least one peak.

fn nearest_peak(peaks: ptr<function, Peaks>, ahead: vec3<f32>) -> vec3<f32> {
  var nearest = aligned_direction((*peaks).slot[0], ahead);
  var cosine = dot_vec3(nearest, ahead);
  for (var i = 1u; i < (*peaks).count; i++) {
    let direction = aligned_direction((*peaks).slot[i], ahead);
    let other = dot_vec3(direction, ahead);
    if (other > cosine) {
      nearest = direction;
      cosine = other;
    }
  }
  return nearest;
}
