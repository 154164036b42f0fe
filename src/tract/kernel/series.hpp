// An even series of spherical harmonics at any direction, a direction per lane: Legendre functions by a recurrence over
// even l alone, its factors made once on the host. Called by the refinement of det and by ptt; getters that need all
// slots of a sphere sample it through its matrix instead (amplitudes.hpp).
#pragma once

#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Floats in the table of factors: for each m the factor of the first even l >= m, then three per further l.
CGL_HD constexpr std::uint32_t series_table_size(int degree) {
  std::uint32_t size = 0;
  for (int m = 0; m <= degree; ++m) size += 1u + 3u * static_cast<std::uint32_t>((degree - m) / 2);
  return size;
}

// With a_l = sqrt((4 l^2 - 1) / (l^2 - m^2)) and p_l = a_l (z p_(l-1) - p_(l-2) / a_(l-1)) (spherical_harmonics.hpp),
// two steps at once are p_(l+2) = alpha ((z^2 - beta) p_l) - gamma p_(l-2), where alpha = a_(l+2) a_(l+1),
// beta = 1 / a_l^2 + 1 / a_(l+1)^2 and gamma = alpha / (a_l a_(l-1)); 1 / a_m = 0. The first factor holds the
// normalisation, sqrt(2) for m > 0 and the sign (-1)^m of descoteaux07_legacy.
inline void fill_series_table(int degree, float* table) {
  double sectoral = 0x1.20dd750429b6dp-2;  // 1 / sqrt(4 pi)
  for (int m = 0; m <= degree; ++m) {
    if (m > 0) {
      sectoral = sectoral * numerics::root((m == 1 ? 2.0 : 1.0) * (2.0 * m + 1.0) / (2.0 * m));
    }
    const auto inverse_square = [m](int l) {  // 1 / a_l^2
      return (static_cast<double>(l) * l - static_cast<double>(m) * m) / (4.0 * l * l - 1.0);
    };
    const int first = m + m % 2;
    double start = m % 2 != 0 ? -sectoral : sectoral;
    if (first > m) start = start / numerics::root(inverse_square(first));
    *table++ = static_cast<float>(start);
    for (int l = first; l + 2 <= degree; l += 2) {
      const double alpha = 1.0 / numerics::root(inverse_square(l + 2) * inverse_square(l + 1));
      *table++ = static_cast<float>(alpha);
      *table++ = static_cast<float>(inverse_square(l) + inverse_square(l + 1));
      // gamma multiplies p_(l-2), which for the first l is zero.
      *table++ =
          l == first ? 0.0f : static_cast<float>(alpha * numerics::root(inverse_square(l) * inverse_square(l - 1)));
    }
  }
}

// The series at each lane's unit vector; coefficient(i) gives coefficient i of descoteaux07_legacy for each lane. For
// each m the sums over l run in sequence, then the sums of the cosine and sine parts over m.
CGL_HD_GENERIC
template <class Lanes, class Coefficient>
CGL_HD inline typename Lanes::Float series_at(const HarmonicView& harmonics, const typename Lanes::Float& x,
                                              const typename Lanes::Float& y, const typename Lanes::Float& z,
                                              Coefficient&& coefficient) {
  using Float = typename Lanes::Float;
  const int degree = static_cast<int>(harmonics.degree);
  const float* table = harmonics.recurrence;
  const Float zz = Lanes::multiply(z, z);
  Float total = Lanes::broadcast(0.0f);
  Float cosine_part = Lanes::broadcast(1.0f);  // real and imaginary part of (x + iy)^m
  Float sine_part = Lanes::broadcast(0.0f);
  for (int m = 0; m <= degree; ++m) {
    if (m > 0) {
      const Float next = Lanes::subtract(Lanes::multiply(x, cosine_part), Lanes::multiply(y, sine_part));
      sine_part = Lanes::add(Lanes::multiply(x, sine_part), Lanes::multiply(y, cosine_part));
      cosine_part = next;
    }
    Float current = Lanes::broadcast(*table++);
    if (m % 2 != 0) current = Lanes::multiply(current, z);
    Float before = Lanes::broadcast(0.0f);
    const int first = m + m % 2;
    Float of_cosine = Lanes::multiply(current, coefficient(numerics::coefficient_index(first, -m, false)));
    Float of_sine = Lanes::multiply(current, coefficient(numerics::coefficient_index(first, m, false)));
    for (int l = first + 2; l <= degree; l += 2) {
      const Float inner = Lanes::multiply(Lanes::subtract(zz, Lanes::broadcast(table[1])), current);
      const Float next = Lanes::subtract(Lanes::multiply(Lanes::broadcast(table[0]), inner),
                                         Lanes::multiply(Lanes::broadcast(table[2]), before));
      before = current;
      current = next;
      table += 3;
      of_cosine =
          Lanes::add(of_cosine, Lanes::multiply(current, coefficient(numerics::coefficient_index(l, -m, false))));
      of_sine = Lanes::add(of_sine, Lanes::multiply(current, coefficient(numerics::coefficient_index(l, m, false))));
    }
    if (m == 0) {
      total = of_cosine;
      continue;
    }
    total = Lanes::add(total, Lanes::add(Lanes::multiply(cosine_part, of_cosine), Lanes::multiply(sine_part, of_sine)));
  }
  return total;
}

}  // namespace cingulum::kernel
