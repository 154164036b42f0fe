// The box along the world's axes around streamlines, in millimetres. Called by the density map and the report.
#pragma once

#include "numerics/vec3.hpp"

namespace cingulum {

struct WorldBox {
  numerics::Vec3d low = {0, 0, 0};
  numerics::Vec3d high = {0, 0, 0};
};

}  // namespace cingulum
