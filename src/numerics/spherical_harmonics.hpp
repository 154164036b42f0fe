// Real spherical harmonics up to degree 12 in the three conventions in use, evaluated at a unit vector from x, y, z by
// recurrences without trigonometry, in float or double; the numbering of coefficients, their conversion between
// conventions, and their signs under mirrors. Called by model fits, file readers and the builders of sampling matrices.
// It fits nothing. The recurrence factors are computed by + - * / and root in the type itself, so that host, CUDA and
// WGSL agree in bits. Mirrored by wgsl/spherical_harmonics.wgsl.
//
// With Y_l^m the complex harmonics with the Condon-Shortley phase (as scipy has them) and C_lm, S_lm the real and
// imaginary part of sqrt(2) (-1)^m Y_l^m for m > 0, that is, without the phase:
//   descoteaux07_legacy  m < 0: (-1)^m C_l|m|   m > 0: (-1)^m S_lm    DIPY's legacy=True
//   descoteaux07         m < 0:        C_l|m|   m > 0: (-1)^m S_lm    Descoteaux 2007; DIPY's legacy=False
//   tournier07           m < 0: (-1)^m S_l|m|   m > 0: (-1)^m C_lm    MRtrix3; DIPY's legacy=False
// and Y_l^0 for m = 0 in all three.
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::numerics {

enum class HarmonicConvention : std::uint32_t { descoteaux07_legacy = 0, descoteaux07 = 1, tournier07 = 2 };

inline constexpr int largest_harmonic_degree = 12;
inline constexpr int largest_coefficient_count = 169;

struct HarmonicBasis {
  HarmonicConvention convention;
  int degree;  // the largest l; even unless `full`
  bool full;   // all l, or even l alone
};

struct HarmonicIndex {
  int l;
  int m;
};

// 1, 6, 15, 28, 45, 66, 91 for even degrees; (degree + 1)^2 for full bases.
CGL_HD constexpr int coefficient_count(int degree, bool full) {
  return full ? (degree + 1) * (degree + 1) : (degree + 1) * (degree + 2) / 2;
}

// l ascending, within l m from -l to l.
CGL_HD constexpr int coefficient_index(int l, int m, bool full) {
  return full ? l * l + l + m : l * (l + 1) / 2 + m;
}

CGL_HD constexpr HarmonicIndex harmonic_of_coefficient(int index, bool full) {
  const int step = full ? 1 : 2;
  int l = 0;
  while (index > coefficient_index(l, l, full)) l += step;
  return {l, index - coefficient_index(l, 0, full)};
}

// Whether the harmonic goes with cos(m phi) (m = 0 included) rather than sin(|m| phi).
CGL_HD constexpr bool is_cosine(HarmonicConvention convention, int m) {
  return convention == HarmonicConvention::tournier07 ? m >= 0 : m <= 0;
}

// +1 or -1: the sign with which C_l|m| or S_l|m| enters the convention.
CGL_HD constexpr int phase_sign(HarmonicConvention convention, int m) {
  const bool odd = m % 2 != 0;
  if (!odd) return 1;
  return convention == HarmonicConvention::descoteaux07 && m < 0 ? 1 : -1;
}

// Classes of even-degree harmonics under the mirrors x, y, z (contract, section 2).
enum class MirrorClass : std::uint32_t {
  even_in_all = 0,  // A
  odd_in_x_y = 1,   // B
  odd_in_x_z = 2,   // C
  odd_in_y_z = 3,   // D
};

// The class of a harmonic of even l. cos(m phi) is even in y and has the sign (-1)^m under x; sin(m phi) is odd in y
// and has
// -(-1)^m under x; for even l the sign under z is (-1)^m.
CGL_HD constexpr MirrorClass mirror_class(HarmonicConvention convention, int m) {
  const bool odd = m % 2 != 0;
  if (is_cosine(convention, m)) return odd ? MirrorClass::odd_in_x_z : MirrorClass::even_in_all;
  return odd ? MirrorClass::odd_in_y_z : MirrorClass::odd_in_x_y;
}

// Writes coefficient_count values. The Legendre functions are divided by sin^m theta, which (x + iy)^m brings back:
//   p_m = p_(m-1) sqrt((2m + 1) / 2m),   p_l = a_l (z p_(l-1) - b_l p_(l-2)),
//   a_l = sqrt((4 l^2 - 1) / (l^2 - m^2)),   b_l = 1 / a_(l-1)
// (the standard forward column method of Holmes and Featherstone, J. Geodesy 76, 2002, normalised over the sphere).
template <class Real>
CGL_HD inline void evaluate_harmonics(HarmonicBasis basis, BasicVec3<Real> direction, Real* values) {
  constexpr Real one_over_root_4_pi = Real(0x1.20dd750429b6dp-2);
  Real cosine_part = Real(1);  // real and imaginary part of (x + iy)^m
  Real sine_part = Real(0);
  Real sectoral = one_over_root_4_pi;
  for (int m = 0; m <= basis.degree; ++m) {
    if (m > 0) {
      const Real next = direction.x * cosine_part - direction.y * sine_part;
      sine_part = direction.x * sine_part + direction.y * cosine_part;
      cosine_part = next;
      // The factor 2 makes up for the sqrt(2) of all m > 0.
      sectoral = sectoral * root(Real((m == 1 ? 2 : 1) * (2 * m + 1)) / Real(2 * m));
    }
    Real before = Real(0);
    Real current = sectoral;
    for (int l = m; l <= basis.degree; ++l) {
      if (l > m) {
        const int k = l - 1;
        const Real a = root(Real(4 * l * l - 1) / Real(l * l - m * m));
        const Real b = root(Real(k * k - m * m) / Real(4 * k * k - 1));
        const Real next = a * (direction.z * current - b * before);
        before = current;
        current = next;
      }
      if (!basis.full && l % 2 != 0) continue;
      if (m == 0) {
        values[coefficient_index(l, 0, basis.full)] = current;
        continue;
      }
      for (int signed_m = -m; signed_m <= m; signed_m += 2 * m) {
        const Real part = is_cosine(basis.convention, signed_m) ? cosine_part : sine_part;
        const Real value = current * part;
        values[coefficient_index(l, signed_m, basis.full)] =
            phase_sign(basis.convention, signed_m) > 0 ? value : -value;
      }
    }
  }
}

// The coefficients of the same function in another convention. `from` and `to` must not overlap.
template <class Real>
CGL_HD inline void convert_coefficients(HarmonicBasis basis, HarmonicConvention target, const Real* from, Real* to) {
  const int step = basis.full ? 1 : 2;
  for (int l = 0; l <= basis.degree; l += step) {
    for (int m = -l; m <= l; ++m) {
      const int target_m = is_cosine(basis.convention, m) == is_cosine(target, m) ? m : -m;
      const Real value = from[coefficient_index(l, m, basis.full)];
      const int sign = phase_sign(basis.convention, m) * phase_sign(target, target_m);
      to[coefficient_index(l, target_m, basis.full)] = sign > 0 ? value : -value;
    }
  }
}

}  // namespace cingulum::numerics
