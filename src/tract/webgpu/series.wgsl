// Mirrors series_at of src/tract/kernel/series.hpp: an even series at each lane's own direction. series_coefficient(corners,
// i) of the getter's own text gives coefficient i of descoteaux07_legacy.

fn series_at(x: f32, y: f32, z: f32, corners: ptr<function, Corners>) -> f32 {
  let degree = harmonic_degree();
  var at = plan.at_recurrence;
  let zz = pin(mul(z, z));
  var total = 0.0;
  var cosine_part = 1.0;  // real and imaginary part of (x + iy)^m
  var sine_part = positive_zero();
  for (var m = 0u; m <= degree; m++) {
    if (m > 0u) {
      let next = mul(x, cosine_part) - mul(y, sine_part);
      sine_part = mul(x, sine_part) + mul(y, cosine_part);
      cosine_part = next;
    }
    var current = table_number(at);
    at += 1u;
    if ((m & 1u) != 0u) {
      current = mul(current, z);
    }
    var before = positive_zero();
    let first = m + (m & 1u);
    let middle = first * (first + 1u) / 2u;
    var of_cosine = mul(current, series_coefficient(corners, middle - m));
    var of_sine = mul(current, series_coefficient(corners, middle + m));
    for (var l = first + 2u; l <= degree; l += 2u) {
      let inner = mul(zz - table_number(at + 1u), current);
      let next = mul(table_number(at), inner) - mul(table_number(at + 2u), before);
      before = current;
      current = next;
      at += 3u;
      let centre = l * (l + 1u) / 2u;
      of_cosine = of_cosine + mul(current, series_coefficient(corners, centre - m));
      of_sine = of_sine + mul(current, series_coefficient(corners, centre + m));
    }
    if (m == 0u) {
      total = of_cosine;
    } else {
      total = total + (mul(cosine_part, of_cosine) + mul(sine_part, of_sine));
    }
  }
  return total;
}
