// Directions for tests that want gradients without a scheme.
#pragma once

#include <cmath>
#include <vector>

#include "numerics/vec3.hpp"

namespace cingulum::test {

// Evenly spread over the hemisphere.
inline std::vector<numerics::Vec3d> spiral(int count) {
  std::vector<numerics::Vec3d> result;
  const double golden = 3.141592653589793 * (3 - std::sqrt(5.0));
  for (int i = 0; i < count; ++i) {
    const double z = 1 - (i + 0.5) / count;
    const double r = std::sqrt(1 - z * z);
    result.push_back({r * std::cos(golden * i), r * std::sin(golden * i), z});
  }
  return result;
}

}  // namespace cingulum::test
