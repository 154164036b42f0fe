// Prints real spherical harmonics for tests/numerics/test_spherical_harmonics.py, which compares them with DIPY's.
// stdin: lines "convention degree full x y z" (convention 0, 1, 2 as in HarmonicConvention; full 0 or 1).
// stdout: a line for each, the float64 values followed by the float32 values.
#include <cstdio>

#include "numerics/spherical_harmonics.hpp"

int main() {
  using namespace cingulum::numerics;
  unsigned convention = 0;
  int degree = 0, full = 0;
  Vec3d direction{};
  while (std::scanf("%u %d %d %lf %lf %lf", &convention, &degree, &full, &direction.x, &direction.y, &direction.z) ==
         6) {
    if (convention > 2 || degree < 0 || degree > largest_harmonic_degree || (full == 0 && degree % 2 != 0)) {
      std::fprintf(stderr, "no basis with convention %u, degree %d, full %d\n", convention, degree, full);
      return 2;
    }
    const HarmonicBasis basis{static_cast<HarmonicConvention>(convention), degree, full != 0};
    double wide[largest_coefficient_count];
    float single[largest_coefficient_count];
    evaluate_harmonics(basis, direction, wide);
    evaluate_harmonics(
        basis, Vec3{static_cast<float>(direction.x), static_cast<float>(direction.y), static_cast<float>(direction.z)},
        single);
    const int count = coefficient_count(degree, basis.full);
    for (int i = 0; i < count; ++i) std::printf("%.17g ", wide[i]);
    for (int i = 0; i < count; ++i) std::printf("%.9g%c", static_cast<double>(single[i]), i + 1 < count ? ' ' : '\n');
  }
  return 0;
}
