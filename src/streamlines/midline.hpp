// On which sides of the plane world x = midline a streamline lies. Two counts are in use and differ: whose ends lie on
// opposite sides (commissural), and which cross the plane anywhere, going back included. Called by comparison.cpp and
// the report.
#pragma once

#include <span>

namespace cingulum {

struct MidlineSides {
  bool ends_apart = false;  // the ends lie on opposite sides
  bool crosses = false;     // points lie on both sides; so whatever has its ends apart
};

// x y z of each point. The plane itself belongs to the side of greater x.
[[nodiscard]] inline MidlineSides midline_sides(std::span<const float> positions, double midline) {
  MidlineSides sides;
  if (positions.size() < 6) return sides;
  const auto is_left = [&](std::size_t i) { return static_cast<double>(positions[i]) < midline; };
  sides.ends_apart = is_left(0) != is_left(positions.size() - 3);
  for (std::size_t i = 3; i < positions.size() && !sides.crosses; i += 3) sides.crosses = is_left(i) != is_left(0);
  return sides;
}

}  // namespace cingulum
