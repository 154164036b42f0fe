#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/trk.hpp"

namespace cingulum {

// The polar factor of A is the limit of X -> (X + X^-T) / 2 from X = A (Higham 1986, SIAM J. Sci. Stat. Comput.
// 7:1160).
Result<std::array<AxisOrientation, 3>> orientation_of(const Affine& affine) {
  const auto singular = [] {
    return fail(ErrorKind::corrupt,
                "the affine map is singular or not finite: the directions of its axes are not known");
  };
  if (!affine.is_finite()) return singular();
  Affine factor;
  const std::array<double, 3> edges = ImageGeometry{.size = {1, 1, 1}, .voxel_to_world = affine}.voxel_mm();
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      const double edge = edges[static_cast<std::size_t>(column)];
      if (!(edge > 0) || !std::isfinite(edge)) return singular();
      factor.at(row, column) = affine.at(row, column) / edge;
    }
  }
  constexpr double smallest_determinant = 1e-6;
  if (!(std::abs(factor.determinant()) > smallest_determinant)) return singular();
  constexpr int iterations = 60;  // converges quadratically; far fewer are needed
  for (int i = 0; i < iterations; ++i) {
    CGL_TRY_ASSIGN(const Affine inverse, factor.inverse());
    double change = 0;
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) {
        const double next = 0.5 * (factor.at(row, column) + inverse.at(column, row));
        change = std::max(change, std::abs(next - factor.at(row, column)));
        factor.at(row, column) = next;
      }
    }
    if (change < 1e-15) break;
  }
  const auto strength = [&](int column) {
    double largest = 0;
    for (int row = 0; row < 3; ++row) largest = std::max(largest, factor.at(row, column) * factor.at(row, column));
    return largest;
  };
  // The axis that agrees best with a world axis is settled first.
  std::array<int, 3> order = {0, 1, 2};
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strength(a) > strength(b); });
  std::array<AxisOrientation, 3> result;
  std::array<bool, 3> taken = {};
  for (const int column : order) {
    int best = -1;
    for (int row = 0; row < 3; ++row) {
      if (taken[static_cast<std::size_t>(row)]) continue;
      if (best < 0 || std::abs(factor.at(row, column)) > std::abs(factor.at(best, column))) best = row;
    }
    if (std::abs(factor.at(best, column)) < 1e-8) return singular();
    taken[static_cast<std::size_t>(best)] = true;
    result[static_cast<std::size_t>(column)] = {.world_axis = best, .direction = factor.at(best, column) < 0 ? -1 : 1};
  }
  return result;
}

}  // namespace cingulum
