// Gradient schemes of the phantom: which b-values and directions are measured, in which order. Directions are made at
// run time by a fixed number of steps of repulsion in our own arithmetic, so they are the same everywhere. In world
// axes (RAS+); the writer turns them into the frame of the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct PhantomScheme {
  std::string name;
  std::vector<double> b_values;             // s/mm^2, a volume each
  std::vector<numerics::Vec3d> directions;  // unit vectors in world axes; zero for b0

  [[nodiscard]] std::size_t volumes() const { return b_values.size(); }
};

constexpr int most_directions = 512;

// `count` directions that repel each other and each other's opposites.
[[nodiscard]] std::vector<numerics::Vec3d> spread_directions(int count);

// One shell of `directions` volumes per b-value, each turned against the others; a b0 before every ten volumes, or,
// with b0_count >= 0, so many at the beginning.
[[nodiscard]] Result<PhantomScheme> shell_scheme(int directions, const std::vector<double>& b_values,
                                                 int b0_count = -1);

[[nodiscard]] const std::vector<std::string>& scheme_names();
[[nodiscard]] Result<PhantomScheme> named_scheme(std::string_view name);

}  // namespace cingulum
