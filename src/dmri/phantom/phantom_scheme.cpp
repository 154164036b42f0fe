#include "dmri/phantom/phantom_scheme.hpp"

#include <algorithm>

#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

std::vector<Vec3d> spread_directions(int count) {
  constexpr double golden_angle = 2.39996322972865332;
  constexpr int steps = 250;
  std::vector<Vec3d> directions;
  for (int i = 0; i < count; ++i) {
    const double z = 1 - (i + 0.5) / count;
    const double r = numerics::root(1 - z * z);
    // Reduced to a turn: our sine takes angles up to 256.
    const double turns = golden_angle * i * 0.15915494309189535;
    const auto angle = numerics::sine_cosine((turns - numerics::floor_of(turns)) * 6.283185307179586);
    directions.push_back({r * angle.cosine, r * angle.sine, z});
  }
  if (count < 2) return directions;
  std::vector<Vec3d> forces(directions.size());
  // Electrostatic repulsion of charges at +d and -d (Jones, Horsfield, Simmons, MRM 42, 1999), by steps whose length
  // falls linearly to zero.
  const double spacing = numerics::root(6.283185307179586 / count);
  for (int step = 0; step < steps; ++step) {
    double strongest = 0;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      Vec3d force{0, 0, 0};
      for (std::size_t j = 0; j < directions.size(); ++j) {
        if (i == j) continue;
        const Vec3d apart = directions[i] - directions[j];
        const Vec3d apart_from_opposite = directions[i] + directions[j];
        const double square = std::max(dot(apart, apart), 1e-12);
        const double opposite_square = std::max(dot(apart_from_opposite, apart_from_opposite), 1e-12);
        force = force + apart * (1.0 / (square * numerics::root(square))) +
                apart_from_opposite * (1.0 / (opposite_square * numerics::root(opposite_square)));
      }
      forces[i] = force - directions[i] * dot(force, directions[i]);
      strongest = std::max(strongest, numerics::length(forces[i]));
    }
    if (!(strongest > 1e-12)) break;
    const double reach = 0.25 * spacing * (1.0 - static_cast<double>(step) / steps) / strongest;
    for (std::size_t i = 0; i < directions.size(); ++i)
      directions[i] = numerics::normalise(directions[i] + forces[i] * reach);
  }
  return directions;
}

Result<PhantomScheme> shell_scheme(int directions, const std::vector<double>& b_values, int b0_count) {
  if (directions < 6 || directions > most_directions) {
    return fail_argument("directions", "{} directions (6 to {} are accepted)", directions, most_directions);
  }
  if (b_values.empty() || b_values.size() > 16) {
    return fail_argument("b_values", "{} shells (1 to 16 are accepted)", b_values.size());
  }
  for (const double b : b_values) {
    if (!(b > 50 && b <= 50'000)) {
      return fail_argument("b_values", "a shell of b = {} s/mm^2 (above 50, at most 50000)", b);
    }
  }
  if (b0_count > 1000) return fail_argument("b0", "{} b0 volumes (at most 1000)", b0_count);
  const std::vector<Vec3d> spread = spread_directions(directions);
  PhantomScheme scheme;
  const auto add_b0 = [&] {
    scheme.b_values.push_back(0);
    scheme.directions.push_back({0, 0, 0});
  };
  for (int i = 0; i < b0_count; ++i) add_b0();
  int weighted = 0;
  for (std::size_t shell = 0; shell < b_values.size(); ++shell) {
    // Rodrigues about (1, 1, 1)/sqrt(3).
    const auto angle = numerics::sine_cosine(0.7 * static_cast<double>(shell));
    constexpr double third = 0.57735026918962576;
    const Vec3d axis{third, third, third};
    for (const Vec3d& d : spread) {
      if (b0_count < 0 && weighted % 10 == 0) add_b0();
      ++weighted;
      scheme.b_values.push_back(b_values[shell]);
      scheme.directions.push_back(shell == 0 ? d
                                             : numerics::normalise(d * angle.cosine + cross(axis, d) * angle.sine +
                                                                   axis * (dot(axis, d) * (1 - angle.cosine))));
    }
  }
  scheme.name = fmt::format("dirs{}-b{:g}", directions, fmt::join(b_values, "-"));
  return scheme;
}

const std::vector<std::string>& scheme_names() {
  static const std::vector<std::string> names = {"dirs64-b1000", "dirs60-b2000", "shells3-64", "dirs150-b2000"};
  return names;
}

Result<PhantomScheme> named_scheme(std::string_view name) {
  Result<PhantomScheme> scheme = [&]() -> Result<PhantomScheme> {
    if (name == "dirs64-b1000") return shell_scheme(64, {1000});
    if (name == "dirs60-b2000") return shell_scheme(60, {2000});
    if (name == "shells3-64") return shell_scheme(64, {1000, 2000, 3000});
    if (name == "dirs150-b2000") return shell_scheme(150, {2000}, 10);  // as the Stanford HARDI set
    return fail_argument("scheme", "there is no scheme '{}' (known: {})", name, fmt::join(scheme_names(), ", "));
  }();
  if (scheme) scheme->name = name;
  return scheme;
}

}  // namespace cingulum
