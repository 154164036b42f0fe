// A sphere as users write it, "x,y,z,r" in mm of world space. Read by regions and by seeds.
#pragma once

#include <optional>
#include <string_view>

#include "numerics/vec3.hpp"

namespace cingulum {

struct WorldSphere {
  numerics::Vec3d centre_world = {};
  double radius_mm = 0;
};

// Nothing where the text is not four numbers. Whether they make a sphere, its user says.
[[nodiscard]] std::optional<WorldSphere> parse_sphere(std::string_view text);

}  // namespace cingulum
