// Mirrors src/numerics/spherical_harmonics.hpp in float32: numbering, signs and values of real spherical harmonics.

struct HarmonicBasis {
  convention: u32,
  degree: i32,
  full: bool,
}

struct HarmonicIndex {
  l: i32,
  m: i32,
}

fn coefficient_count(degree: i32, full: bool) -> i32 {
  return select((degree + 1) * (degree + 2) / 2, (degree + 1) * (degree + 1), full);
}

fn coefficient_index(l: i32, m: i32, full: bool) -> i32 {
  return select(l * (l + 1) / 2 + m, l * l + l + m, full);
}

fn harmonic_of_coefficient(index: i32, full: bool) -> HarmonicIndex {
  let step = select(2, 1, full);
  var l = 0;
  while (index > coefficient_index(l, l, full)) {
    l += step;
  }
  return HarmonicIndex(l, index - coefficient_index(l, 0, full));
}

fn is_cosine(convention: u32, m: i32) -> bool {
  return select(m <= 0, m >= 0, convention == tournier07);
}

fn phase_sign(convention: u32, m: i32) -> i32 {
  let odd = (m & 1) != 0;
  return select(1, -1, odd && !(convention == descoteaux07 && m < 0));
}

// 0 to 3 for the classes A to D.
fn mirror_class(convention: u32, m: i32) -> u32 {
  let odd = select(0u, 1u, (m & 1) != 0);
  return select(1u, 0u, is_cosine(convention, m)) + 2u * odd;
}

fn evaluate_harmonics(basis: HarmonicBasis, direction: vec3<f32>, values: ptr<function, array<f32, 169>>) {
  var cosine_part = 1.0;
  var sine_part = positive_zero();
  var sectoral = 0x1.20dd76p-2f;  // 1 / sqrt(4 pi)
  for (var m = 0; m <= basis.degree; m++) {
    if (m > 0) {
      let next = mul(direction.x, cosine_part) - mul(direction.y, sine_part);
      sine_part = mul(direction.x, sine_part) + mul(direction.y, cosine_part);
      cosine_part = next;
      sectoral = mul(sectoral, root(div(f32(select(1, 2, m == 1) * (2 * m + 1)), f32(2 * m))));
    }
    var before = positive_zero();
    var current = sectoral;
    for (var l = m; l <= basis.degree; l++) {
      if (l > m) {
        let k = l - 1;
        let a = root(div(f32(4 * l * l - 1), f32(l * l - m * m)));
        let b = root(div(f32(k * k - m * m), f32(4 * k * k - 1)));
        let next = mul(a, mul(direction.z, current) - mul(b, before));
        before = current;
        current = next;
      }
      if (!basis.full && (l & 1) != 0) {
        continue;
      }
      if (m == 0) {
        (*values)[coefficient_index(l, 0, basis.full)] = current;
        continue;
      }
      for (var signed_m = -m; signed_m <= m; signed_m += 2 * m) {
        let part = select(sine_part, cosine_part, is_cosine(basis.convention, signed_m));
        let value = mul(current, part);
        (*values)[coefficient_index(l, signed_m, basis.full)] =
            select(-value, value, phase_sign(basis.convention, signed_m) > 0);
      }
    }
  }
}
