// What a direction getter answers for one step.
#pragma once

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::kernel {

struct Step {
  bool found;
  numerics::Vec3 direction;     // unit vector in image axes: where the streamline heads now
  numerics::Vec3 displacement;  // in steps; the direction itself unless a method of higher order says otherwise
};

CGL_HD constexpr Step no_step() {
  return {false, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}};
}

CGL_HD constexpr Step step_along(numerics::Vec3 direction) {
  return {true, direction, direction};
}

}  // namespace cingulum::kernel
